"""The contract tests of the `images` capability, and fakes for tests of tools and providers."""

from jackfield_testkit.images.fakes import ImageServer, MemoryImages, png
from jackfield_testkit.images.suite import ImagesContractTests

__all__ = ["ImageServer", "ImagesContractTests", "MemoryImages", "png"]

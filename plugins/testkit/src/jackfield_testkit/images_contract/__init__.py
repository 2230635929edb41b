"""The standard tests of pictures; pictures in memory for the tests of tools, and a scripted provider."""

from jackfield_testkit.images_contract.memory import MemoryImages
from jackfield_testkit.images_contract.server import ImageServer
from jackfield_testkit.images_contract.suite import ImagesContractTests

__all__ = ["ImageServer", "ImagesContractTests", "MemoryImages"]

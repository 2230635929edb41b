"""Tools and plugins that are made up on the spot."""

from jackfield_testkit.sites import site

__all__ = ["site"]

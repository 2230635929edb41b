"""Tools and plugins that are made up on the spot."""

from jackfield_testkit.sites import project, site

__all__ = ["project", "site"]

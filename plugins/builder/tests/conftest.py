"""Fixtures for generated tools and plugins."""

from jackfield_testkit.sites import project, site

__all__ = ["project", "site"]

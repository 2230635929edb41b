"""Fixtures for generated tools and plugins."""

from jackfield_testkit.site_packages import project, site

__all__ = ["project", "site"]

"""Fixtures: ad hoc tools and plugins."""

from jackfield_testkit.site_packages import site

__all__ = ["site"]

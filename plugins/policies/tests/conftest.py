"""Fixtures: ad hoc tools and plugins."""

from jackfield_testkit.sites import site

__all__ = ["site"]

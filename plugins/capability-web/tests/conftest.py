"""Shared fixtures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jackfield_testkit import WebSite as SitePackages


@pytest.fixture
def site() -> Iterator[SitePackages]:
    with SitePackages() as site:
        yield site

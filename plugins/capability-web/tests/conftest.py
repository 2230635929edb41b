"""Shared fixtures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jackfield_testkit import WebSite as Site


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site

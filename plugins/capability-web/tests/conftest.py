"""What the tests share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Test modules are imported by file, so what they share has to be found by name.
sys.path.insert(0, str(Path(__file__).parent))

from web_site import Site


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site

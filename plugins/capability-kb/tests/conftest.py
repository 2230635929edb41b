"""The folder of a test's library."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Test modules are imported by file, so what they share has to be found by name.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "knowledge"

"""Makes the helper modules importable, and gives each test a folder for its library."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Test modules are imported by file, so shared modules must be importable by name.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "knowledge"

"""Sets a key for the scripted servers, which accept any, and makes the helper modules importable."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "key-of-a-test")
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)

"""Reads the requests in the folder `unseen`; its README explains the fields and the split."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=ZoneInfo("Europe/Berlin"))
"""The moment of every request: a Monday."""

FOLDER = Path(__file__).parent / "unseen"


def rows(name: str) -> list[dict[str, Any]]:
    """All rows of one file, of both parts."""
    text = (FOLDER / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def is_held_out(key: str) -> bool:
    """Whether a row is kept for the last measurement; its key is what is said, or a conversation's name."""
    return hashlib.sha256(key.encode()).digest()[0] % 3 == 0

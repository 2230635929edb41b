"""A tool's answer as the model gets to read it: little, because every word costs it time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LIMIT = 1200
"""How long it may be, in characters."""

RECORDS = 3
_TOLD = ("id", "title", "snippet", "citation", "url")


def condensed(envelope: bytes, limit: int = LIMIT) -> str:
    """What a call came to, in short."""
    answer = json.loads(envelope)
    if not answer.get("ok"):
        error = answer.get("error", {})
        return f"it failed: {error.get('message', '')} {error.get('suggestion') or ''}".strip()[:limit]
    return json.dumps(_short(answer.get("data")), ensure_ascii=False)[:limit]


def _short(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {name: _short(value) for name, value in data.items() if value not in (None, [], {})}
    if isinstance(data, list):
        return [_record(each) for each in data[:RECORDS]]
    return data


def _record(each: Any) -> Any:
    if isinstance(each, Mapping) and {"id", "title"} <= set(each):
        return {name: str(each[name])[:300] for name in _TOLD if each.get(name)}
    return _short(each)

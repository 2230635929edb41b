"""Records that can be listened to: short, and free of what only a screen shows."""

from __future__ import annotations

import json
import re
from typing import Any

from jackfield_tool_kb_get.parts import part

_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^()\n]*\)")
_MARKS = re.compile(r"</?[a-z][^<>]*>|`{2,}|~{2,}|[|*]+|-{2,}|={2,}|#{1,6}\s", re.IGNORECASE)

_MOST = 1400
"""Characters of JSON that an answer in voice may take."""

_TEXTS = (600, 300, 160, 80, 40)
_LINE = 120
_FACTS = 6


def speakable(records: list[dict[str, Any]], missing: list[str], offset: int) -> dict[str, Any]:
    """The answer with texts as short as it takes, and as many of the first records as fit then."""
    for limit in _TEXTS:
        data: dict[str, Any] = {
            "records": [_short(each, limit, offset) for each in records],
            "missing": missing,
        }
        if _size(data) <= _MOST:
            return data
    kept = data["records"]
    while len(kept) > 1 and _size(data) > _MOST:
        kept.pop()
        data["left_out"] = [each["id"] for each in records[len(kept) :]]
    return data


def plain(text: str) -> str:
    """A text on one line, without markup and control characters."""
    bare = _MARKS.sub(" ", _LINK.sub(r"\1", text))
    return " ".join("".join(each if each.isprintable() else " " for each in bare).split())


def _short(record: dict[str, Any], limit: int, offset: int) -> dict[str, Any]:
    begin, inside = part(record["text"], 0, limit)
    return {
        "id": record["id"],
        "type": record["type"],
        "title": plain(record["title"])[:_LINE],
        "text": plain(begin),
        "next_offset": record["next_offset"] if inside is None else offset + inside,
        "source_type": record["source_type"],
        "last_updated": record["last_updated"],
        "url": record["url"] if len(record["url"] or "") <= _LINE else None,
        "metadata": _facts(record["metadata"]) if limit > _LINE else {},
    }


def _facts(metadata: dict[str, Any]) -> dict[str, Any]:
    """The first few short facts: what is long or nested cannot be said in a sentence."""
    short = {
        plain(name): plain(value) if isinstance(value, str) else value
        for name, value in metadata.items()
        if isinstance(value, str | bool | int | float) and len(f"{name}{value}") <= _LINE
    }
    return dict(list(short.items())[:_FACTS])


def _size(data: dict[str, Any]) -> int:
    return len(json.dumps(data, ensure_ascii=False, separators=(",", ":")))

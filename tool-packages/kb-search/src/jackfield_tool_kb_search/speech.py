"""Results that can be listened to: short, and free of what only a screen shows."""

from __future__ import annotations

import json
import re
from typing import Any

from jackfield_tool_kb_search.evidence import shortened

_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^()\n]*\)")
_MARKS = re.compile(r"</?[a-z][^<>]*>|`{2,}|~{2,}|[|*]+|-{2,}|={2,}|#{1,6}\s", re.IGNORECASE)

_MOST = 1400
"""Characters of JSON that an answer in voice may take."""

_SNIPPETS = (300, 200, 120, 60)
_LINE = 120
_FACTS = 4


def speakable(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results with texts as short as it takes, and as many of the best as fit then."""
    for limit in _SNIPPETS:
        kept = [_short(each, limit) for each in results]
        if _size(kept) <= _MOST:
            return kept
    while len(kept) > 1 and _size(kept) > _MOST:
        kept.pop()
    return kept


def plain(text: str) -> str:
    """A text on one line, without markup and control characters."""
    bare = _MARKS.sub(" ", _LINK.sub(r"\1", text))
    return " ".join("".join(each if each.isprintable() else " " for each in bare).split())


def _short(result: dict[str, Any], snippet: int) -> dict[str, Any]:
    kept = {**result, "title": shortened(plain(result["title"]), _LINE)}
    if kept.get("snippet"):
        kept["snippet"] = shortened(plain(kept["snippet"]), snippet)
    if len(kept.get("url") or "") > _LINE:
        kept["url"] = None
    if "citation" in kept:
        kept["citation"] = shortened(plain(kept["citation"]), _LINE)
    if "metadata" in kept:
        kept["metadata"] = _facts(kept["metadata"]) if snippet > _LINE else {}
    return kept


def _facts(metadata: dict[str, Any]) -> dict[str, Any]:
    """The first few short facts: what is long or nested cannot be said in a sentence."""
    short = {
        plain(name): plain(value) if isinstance(value, str) else value
        for name, value in metadata.items()
        if isinstance(value, str | bool | int | float) and len(f"{name}{value}") <= _LINE
    }
    return dict(list(short.items())[:_FACTS])


def _size(results: list[dict[str, Any]]) -> int:
    return len(json.dumps(results, ensure_ascii=False, separators=(",", ":")))

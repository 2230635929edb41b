"""For authors of tools that are used in voice: data that can be listened to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

VOICE_LIMIT = 1400
"""Characters of JSON that an answer in voice may take, with room for what else is said about it."""

LINE = 120
"""The longest thing that is said in one breath, in characters."""

_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^()\n]*\)")
_MARKS = re.compile(r"</?[a-z][^<>]*>|`{2,}|~{2,}|[|*\[\]]+|-{2,}|={2,}|#{1,6}\s", re.IGNORECASE)


def plain(text: str) -> str:
    """A text on one line, without markup and control characters."""
    bare = _MARKS.sub(" ", _LINK.sub(r"\1", text))
    return " ".join("".join(each if each.isprintable() else " " for each in bare).split())


def short_facts(metadata: Mapping[str, Any], most: int) -> dict[str, Any]:
    """The first few short facts: what is long or nested cannot be said in a sentence."""
    short = {
        plain(name): plain(value) if isinstance(value, str) else value
        for name, value in metadata.items()
        if isinstance(value, str | bool | int | float) and len(f"{name}{value}") <= LINE
    }
    return dict(list(short.items())[:most])


def characters(data: Any) -> int:
    """How long data is as JSON."""
    return len(orjson.dumps(data).decode())

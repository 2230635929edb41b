"""Helpers for tools in voice sessions: they make data short and plain enough to be spoken."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

VOICE_LIMIT = 1400
"""Maximum length of a result's JSON in voice, in characters; leaves room for the rest of the envelope."""

LINE = 120
"""Maximum length of a fact that is spoken in one sentence, in characters."""

_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^()\n]*\)")
_DASHES = r"(?<=[^\s`])-{2,}|-{2,}(?![a-z])"
"""Dashes that are not the beginning of a command's option, such as `--sample`."""

_MARKS = re.compile(rf"</?[a-z][^<>]*>|`{{2,}}|~{{2,}}|[|*\[\]]+|{_DASHES}|={{2,}}|#{{1,6}}\s", re.IGNORECASE)


def plain(text: str) -> str:
    """Return text on one line, without markup and control characters."""
    bare = _MARKS.sub(" ", _LINK.sub(r"\1", text))
    return " ".join("".join(each if each.isprintable() else " " for each in bare).split())


def short_facts(metadata: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return the first facts that are neither long nor nested, so that each can be spoken in a sentence."""
    short = {
        plain(name): plain(value) if isinstance(value, str) else value
        for name, value in metadata.items()
        if isinstance(value, str | bool | int | float) and len(f"{name}{value}") <= LINE
    }
    return dict(list(short.items())[:most])


def characters(data: Any) -> int:
    """Return the length of data as JSON, in characters."""
    return len(orjson.dumps(data).decode())

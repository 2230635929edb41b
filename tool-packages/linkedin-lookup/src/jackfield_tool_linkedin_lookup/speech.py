"""People that can be listened to: short lines, free of what only a screen shows."""

from __future__ import annotations

import json
import re
from typing import Any

_MARKS = re.compile(r"</?[a-z][^<>]*>|`{2,}|~{2,}|[|*\[\]]+|-{2,}|={2,}", re.IGNORECASE)

_MOST = 1400
"""Characters of JSON that an answer in voice may take."""

_LINE = 80


def speakable(data: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The answer with short lines, and as many of the best as fit."""
    kept = {name: [_short(each) for each in people] for name, people in data.items()}
    while len(json.dumps(kept, ensure_ascii=False, separators=(",", ":"))) > _MOST:
        # Whoever has no profile is of less use than the last of those who have one.
        longer = kept["without_profile"] or kept["people"]
        if kept["people"] == longer and len(longer) == 1:
            break
        longer.pop()
    return kept


def _short(person: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _plain(value)[:_LINE] if name in ("name", "role", "company") and value else value
        for name, value in person.items()
    }


def _plain(text: str) -> str:
    bare = _MARKS.sub(" ", text)
    return " ".join("".join(each if each.isprintable() else " " for each in bare).split())

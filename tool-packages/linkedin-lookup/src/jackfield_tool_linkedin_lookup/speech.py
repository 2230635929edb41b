"""People that can be listened to: short lines, free of what only a screen shows."""

from __future__ import annotations

from typing import Any

from jackfield.speech import VOICE_LIMIT, characters, plain

_LINE = 80


def speakable(data: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The answer with short lines, and as many of the best as fit."""
    kept = {name: [_short(each) for each in people] for name, people in data.items()}
    while characters(kept) > VOICE_LIMIT:
        # Whoever has no profile is of less use than the last of those who have one.
        longer = kept["without_profile"] or kept["people"]
        if kept["people"] == longer and len(longer) == 1:
            break
        longer.pop()
    return kept


def _short(person: dict[str, Any]) -> dict[str, Any]:
    return {
        name: plain(value)[:_LINE] if name in ("name", "role", "company") and value else value
        for name, value in person.items()
    }

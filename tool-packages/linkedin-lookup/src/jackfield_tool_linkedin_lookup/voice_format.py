"""People for voice: short lines, without markup."""

from __future__ import annotations

from typing import Any

from jackfield.speech import VOICE_LIMIT, characters, plain

_LINE = 80


def shorten_for_voice(data: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Shorten the lines and drop the last people until the answer fits."""
    kept = {name: [_short(each) for each in people] for name, people in data.items()}
    while characters(kept) > VOICE_LIMIT:
        # A person without a profile is less useful than the last one with a profile.
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

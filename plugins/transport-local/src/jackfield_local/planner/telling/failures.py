"""What went wrong, in plain words, with what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield_local.language.words import spoken_name

_OPENINGS = {
    "VALIDATION": "I did not put that well",
    "NOT_FOUND": "There is no such thing here",
    "MODE_RESTRICTED": "That is not possible here",
    "BUDGET_EXCEEDED": "That is enough for one turn",
    "LOOP_DETECTED": "I have tried that already",
    "TRANSIENT": "That did not work just now",
    "CONFLICT": "Something is in the way",
    "AUTH": "I was not let in",
    "RATE_LIMIT": "That was asked too often",
}


def tell_failure(tool_id: str, error: Mapping[str, Any]) -> str:
    """A failure as a person is told of it; a call that waits for approval is none."""
    if error.get("type") == "CONFIRMATION_REQUIRED":
        # What exactly waits is on the card that the client shows.
        return "This waits for your approval; nothing has been done yet."
    opening = _OPENINGS.get(str(error.get("type")), f"That did not work ({spoken_name(tool_id)})")
    text = f"{opening}: {error.get('message', '')}".rstrip(": .") + "."
    if error.get("partialSideEffects"):
        text += " It is not certain whether something was done."
    return f"{text} {error['suggestion']}" if error.get("suggestion") else text

"""What went wrong, in plain words, with what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield_local.planner.language.words import spoken_name
from jackfield_local.planner.telling.told import Manners

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


def tell_failure(tool_id: str, error: Mapping[str, Any], manners: Manners) -> str:
    """A failure as a person is told of it; a call that waits for approval is none."""
    if error.get("type") == "CONFIRMATION_REQUIRED":
        return _waiting(error, manners)
    opening = _OPENINGS.get(str(error.get("type")), f"That did not work ({spoken_name(tool_id)})")
    text = f"{opening}: {error.get('message', '')}".rstrip(": .") + "."
    if error.get("partialSideEffects"):
        text += " It is not certain whether something was done."
    return f"{text} {error['suggestion']}" if error.get("suggestion") else text


def _waiting(error: Mapping[str, Any], manners: Manners) -> str:
    request = error.get("confirmation_request")
    preview = str(request.get("preview", "")) if isinstance(request, Mapping) else ""
    if manners.spoken or not preview:
        return "This waits for your approval. Nothing has been done yet."
    return f"This waits for your approval; nothing has been done yet.\n\n{preview.strip()}"

"""A model that repeats itself is told so, instead of being let run in a circle."""

from __future__ import annotations

import math
from typing import Any

from jackfield import ErrorType, ToolResponse, fail
from jackfield.governance import Call, Check
from jackfield.offers import Services

from jackfield_policies.settings import LoopsSettings


class Loops(Check):
    """Answers the third identical call of a turn, and a tool's second empty result in it; 0 is never."""

    def __init__(self, settings: LoopsSettings, services: Services) -> None:  # noqa: ARG002
        self._identical = settings.identical_calls or math.inf
        self._empty = settings.empty_results or math.inf

    def before(self, call: Call) -> ToolResponse | None:
        """Let the call pass unless it goes in a circle."""
        if call.confirmed:
            return None
        repeated, fingerprint = call.turn.repeated, call.fingerprint
        times = repeated[fingerprint] = repeated.get(fingerprint, 0) + 1
        if times < self._identical:
            return None
        call.end("loops", "refused")
        return _refuse(
            f"{call.tool.id} was called {times} times in this turn with the same arguments.",
            "Use the answer you have, or call it with other arguments.",
        )

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:
        """Let an answer pass unless it says nothing, again."""
        if response.failure is None and not call.confirmed and is_empty(response.data):
            if response.intents or not call.tool.reads:
                # It did something, and need not say more than that.
                return response
            turn, tool_id = call.turn, call.tool.id
            found_nothing = turn.empty[tool_id] = turn.empty.get(tool_id, 0) + 1
            if found_nothing >= self._empty:
                call.decide("loops", "found nothing again")
                return _refuse(
                    f"{tool_id} found nothing {found_nothing} times in this turn; it may not be there.",
                    "Tell the user that nothing was found, or use another tool.",
                )
        return response


def is_empty(data: Any) -> bool:
    """Whether a result says nothing: no data, or only empty lists beside counts."""
    if not isinstance(data, dict):
        return data is None or data in ("", [])
    empty = not data
    for value in data.values():
        if isinstance(value, list):
            if value:
                return False
            empty = True
    return empty


def _refuse(message: str, suggestion: str) -> ToolResponse:
    return fail(ErrorType.LOOP_DETECTED, message, suggestion=suggestion)

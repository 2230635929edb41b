"""A model that repeats itself is told so, instead of being let run in a circle."""

from __future__ import annotations

from typing import Any

from jackfield import ErrorType, ToolResponse, fail
from jackfield.governance import Call, Proceed
from jackfield.offers import PluginSettings, Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_policies.settings import numbers


class Loops:
    """Answers the third identical call of a turn, and a tool's second empty result in it."""

    def __init__(self, settings: PluginSettings, services: Services) -> None:  # noqa: ARG002
        limits = numbers("loops", settings, {"identical_calls": 3, "empty_results": 2})
        self._identical, self._empty = limits["identical_calls"], limits["empty_results"]

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Every tool."""
        return True

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Let the call pass unless it goes in a circle."""
        if call.confirmed:
            return await proceed(call)
        turn, tool_id = call.turn, call.tool.id
        times = turn.repeated[call.fingerprint] = turn.repeated.get(call.fingerprint, 0) + 1
        if times >= self._identical:
            call.end("loops", "refused")
            return _refuse(
                f"{tool_id} was called {times} times in this turn with the same arguments.",
                "Use the answer you have, or call it with other arguments.",
            )
        response = await proceed(call)
        if response.failure is None and is_empty(response.data):
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

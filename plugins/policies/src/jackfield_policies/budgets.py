"""How much a turn may call: in voice every call is silence that the user hears."""

from __future__ import annotations

import logging

from jackfield import ErrorType, ToolResponse, fail
from jackfield.governance import Call, Check
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_policies.settings import BudgetsSettings

_log = logging.getLogger(__name__)


class Budgets(Check):
    """Refuses calls beyond a turn's budget; a limit of 0 is none. Time is told, not refused."""

    def __init__(self, settings: BudgetsSettings, services: Services) -> None:  # noqa: ARG002
        self._limits = {
            "voice": (settings.voice_calls, settings.voice_retrievals, settings.voice_tool_ms),
            "text": (settings.text_calls, settings.text_retrievals, settings.text_tool_ms),
        }

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:
        """Tools that one of the mode's limits counts."""
        calls, retrievals, tool_ms = self._limits[session.mode]
        return bool(calls or tool_ms or (retrievals and tool.manifest.category == "retrieval"))

    def before(self, call: Call) -> ToolResponse | None:
        """Count the call, or refuse it."""
        if call.confirmed:
            # The user said yes to it, and it was counted when it asked.
            return None
        calls, retrievals, _ = self._limits[call.session.mode]
        turn = call.turn
        retrieval = call.tool.manifest.category == "retrieval"
        if calls and turn.calls >= calls:
            return _refuse(
                call, f"A turn of a {call.session.mode} session may make {calls:g} calls, and has."
            )
        if retrieval and retrievals and turn.retrievals >= retrievals:
            return _refuse(
                call, f"A turn of a {call.session.mode} session may search {retrievals:g} times, and has."
            )
        turn.calls += 1
        turn.retrievals += retrieval
        return None

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:
        """Add up the time of the turn's tools, and tell when it is over."""
        if call.confirmed:
            return response
        turn, tool_ms = call.turn, self._limits[call.session.mode][2]
        turn.tool_ms += call.ran_for * 1000
        if tool_ms and turn.tool_ms > tool_ms:
            call.decide("budgets", "over time")
            _log.warning(
                "the tools of a turn took %.0f ms of %g, last %s", turn.tool_ms, tool_ms, call.tool.id
            )
            call.meta["turnTime"] = {"spentMs": round(turn.tool_ms), "budgetMs": tool_ms}
        return response


def _refuse(call: Call, message: str) -> ToolResponse:
    call.end("budgets", "refused")
    return fail(
        ErrorType.BUDGET_EXCEEDED, message, suggestion="Answer with what you have, or ask the user to go on."
    )

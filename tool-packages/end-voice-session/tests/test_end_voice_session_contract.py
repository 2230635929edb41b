"""The standard tests of the tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jackfield import Mode, ToolContext
from jackfield_testkit import Example, ToolContractTests, ToolTestContext


@dataclass(frozen=True)
class Conversation:
    """A session that goes on."""

    mode: Mode
    id: str = "s-1"
    user: str | None = "ann"
    turn: int = 1
    registry_version: str = "1.0.00000000"
    active: bool = True


class Messaging:
    """A client that takes everything."""

    async def send(self, event: str, **fields: Any) -> None: ...


class TestEndVoiceSession(ToolContractTests):
    tool_id = "end_voice_session"
    examples = (
        Example(
            {"reason": "user_request"},
            data={"reason": "user_request", "ends_after": "current_turn", "say": None, "text_sent": False},
        ),
        Example(
            {"reason": "task_complete", "closing_message": "Goodbye!", "text_message": "Booked for Friday."},
            data={
                "reason": "task_complete",
                "ends_after": "farewell_spoken",
                "say": "Goodbye!",
                "text_sent": True,
            },
            name="with both messages",
        ),
        Example({"reason": "inactivity", "closing_message": "x" * 200}, name="the longest to speak"),
        Example({"reason": "other", "text_message": "x" * 500}, name="the longest to read"),
        Example({}, error="VALIDATION", name="no reason"),
        Example({"reason": "bored"}, error="VALIDATION"),
        Example({"reason": "other", "closing_message": "x" * 201}, error="VALIDATION"),
        Example({"reason": "other", "text_message": "x" * 501}, error="VALIDATION"),
        Example({"reason": "other", "after": "current_turn"}, error="VALIDATION"),
    )

    def context(self, mode: Mode) -> ToolContext:
        context = ToolTestContext(mode, messaging=Messaging())
        context.session = Conversation(mode)  # type: ignore[assignment]
        return context

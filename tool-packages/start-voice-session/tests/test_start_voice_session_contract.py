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


class TestStartVoiceSession(ToolContractTests):
    tool_id = "start_voice_session"
    examples = (
        Example({}, data={"status": "requested", "pending_request": None}),
        Example({"pending_request": ""}, data={"status": "requested", "pending_request": None}),
        Example({"pending_request": " \n"}, data={"status": "requested", "pending_request": None}),
        Example(
            {"pending_request": "tell a joke"},
            data={"status": "requested", "pending_request": "tell a joke"},
            name="with a request",
        ),
        Example({"pending_request": "x" * 500}, name="the longest"),
        Example({"pending_request": "x" * 501}, error="VALIDATION"),
        Example({"pending_request": None}, error="VALIDATION"),
        Example({"request": "tell a joke"}, error="VALIDATION"),
    )

    def context(self, mode: Mode) -> ToolContext:
        context = ToolTestContext(mode, messaging=Messaging())
        context.session = Conversation(mode)  # type: ignore[assignment]
        return context

"""A tool runs only in the modes it allows."""

from __future__ import annotations

from jackfield import ErrorType, ToolResponse, fail
from jackfield.governance import Call, Check
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session


class Modes(Check):
    """Refuses a tool in a mode it is not made for; the mode of a session never changes."""

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:
        """Only where the answer is no."""
        return session.mode not in tool.manifest.allowed_modes

    def before(self, call: Call) -> ToolResponse:
        """Refuse."""
        call.end("modes", "refused")
        allowed = " or ".join(call.tool.manifest.allowed_modes)
        return fail(
            ErrorType.MODE_RESTRICTED,
            f"{call.tool.id} works in {allowed} sessions, and this is a {call.session.mode} session.",
            suggestion="Tell the user, and go on without it.",
        )

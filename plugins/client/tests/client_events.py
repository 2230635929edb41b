"""Events about calls, as a host sends them."""

from __future__ import annotations

from jackfield_client.messages import ConfirmationRequired, ToolComplete, ToolErrorEvent


def tool_error(
    call_id: str | None = "call-1", error: str = "INTERNAL", state: str | None = None
) -> ToolErrorEvent:
    return ToolErrorEvent(
        id=4,
        at=1.0,
        tool="book",
        call_id=call_id,
        duration_ms=1.0,
        error_type=error,
        message="It broke.",
        suggestion="Ask the user for another date.",
        recoverable=False,
        state=state,
    )


def confirmation_required(expires_at: float = 9.0) -> ConfirmationRequired:
    return ConfirmationRequired(
        id=1,
        at=1.0,
        confirmation="c",
        tool="book",
        call_id="call-1",
        preview="Book?",
        args={},
        expires_at=expires_at,
        token="token",
    )


OUTCOMES = [
    ToolComplete(id=4, at=1.0, tool="book", call_id="call-1", duration_ms=1.0, data={}),
    tool_error(),
    tool_error(error="PERMANENT", state="expired"),
    tool_error(state="in_doubt"),
]

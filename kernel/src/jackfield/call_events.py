"""The events by which clients learn about a call: that it started, what policies decided, how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from jackfield.confirmation import PendingConfirmation
from jackfield.contract.tool import ToolCall
from jackfield.outcomes import CallState, state_of
from jackfield.protocol.codec import event_fields
from jackfield.protocol.messages import (
    ConfirmationSettled,
    SessionEvent,
    ToolComplete,
    ToolDecisions,
    ToolErrorEvent,
    ToolStart,
)
from jackfield.registry.registry import Registry
from jackfield.session.session import Session
from jackfield.truncation import cut

if TYPE_CHECKING:
    from jackfield.orchestrator import CallResult

SHOWN = 4000
"""How much of arguments and of an answer a client is shown, in characters."""


def tool_start(registry: Registry, call: ToolCall) -> ToolStart:
    """The event that a call begins."""
    tool = registry.get(call.tool_id)
    arguments = call.arguments if isinstance(call.arguments, str) else call.arguments.decode()
    return ToolStart(
        tool=call.tool_id,
        call_id=call.call_id,
        description=tool.frozen.summary if tool else "",
        arguments=arguments[:SHOWN],
        budget_ms=tool.manifest.latency_budget_ms if tool else None,
    )


def tool_end(answer: CallResult) -> ToolComplete | ToolErrorEvent:
    """The event that a call has ended."""
    envelope = orjson.loads(cut(answer.wire, SHOWN))
    meta = envelope["meta"]
    if envelope["ok"]:
        return ToolComplete(
            tool=answer.tool_id,
            call_id=answer.call_id,
            duration_ms=meta["duration"],
            data=envelope["data"],
        )
    error = envelope["error"]
    return ToolErrorEvent(
        tool=answer.tool_id,
        call_id=answer.call_id,
        duration_ms=meta["duration"],
        error_type=error["type"],
        message=error["message"],
        suggestion=error.get("suggestion"),
        recoverable=error["retryable"],
        state=meta.get("state") or None,
    )


def confirmation_settled(pending: PendingConfirmation, *, approved: bool) -> ConfirmationSettled:
    """The event that the user has decided about a call."""
    return ConfirmationSettled(tool=pending.tool_id, call_id=pending.call_id, approved=approved)


def call_outcome(answer: CallResult) -> SessionEvent:
    """The event that tells the outcome of a call which needed approval."""
    if state_of(answer.wire) is CallState.DECLINED:
        return ConfirmationSettled(tool=answer.tool_id, call_id=answer.call_id, approved=False)
    return tool_end(answer)


def publish_decisions(session: Session, answer: CallResult) -> None:
    """Publish what policies decided about a call; clients know no call without an id."""
    if answer.call is not None and answer.call_id is not None:
        decisions = ToolDecisions(tool=answer.tool_id, call_id=answer.call_id, decisions=answer.decisions)
        session.publish(*event_fields(decisions))

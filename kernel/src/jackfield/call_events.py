"""Builds the events that tell clients about a call: its start, the policy decisions and its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from jackfield.call_states import CallState, state_of
from jackfield.confirmation import PendingConfirmation
from jackfield.contract.tool import ToolCall
from jackfield.protocol.codec import event_fields
from jackfield.protocol.messages import (
    ConfirmationSettled,
    SessionEvent,
    ToolComplete,
    ToolDecisions,
    ToolErrorEvent,
    ToolStart,
)
from jackfield.registry.registry import ToolCatalog
from jackfield.session.session import Session
from jackfield.truncation import truncate_result

if TYPE_CHECKING:
    from jackfield.orchestrator import CallResult

MAX_CHARACTERS = 4000
"""Maximum length of the arguments and of the result in an event, in characters."""


def tool_start(catalog: ToolCatalog, call: ToolCall) -> ToolStart:
    """Return the event for the start of a call."""
    tool = catalog.tools.get(call.tool_id)
    arguments = call.arguments if isinstance(call.arguments, str) else call.arguments.decode()
    return ToolStart(
        tool=call.tool_id,
        call_id=call.call_id,
        description=tool.frozen.summary if tool else "",
        arguments=arguments[:MAX_CHARACTERS],
        budget_ms=tool.manifest.latency_budget_ms if tool else None,
    )


def tool_end(result: CallResult, *, encoded: bool = False) -> ToolComplete | ToolErrorEvent:
    """Return the event for the end of a call.

    With `encoded`, its data may be a part of the envelope that is already JSON; such an event can only be
    encoded.
    """
    success = result.sealed_success if encoded and len(result.wire) <= MAX_CHARACTERS else None
    if success is not None:
        return ToolComplete(
            tool=result.tool_id,
            call_id=result.call_id,
            duration_ms=success.duration_ms,
            data=orjson.Fragment(success.encoded_data),
        )
    envelope = orjson.loads(truncate_result(result.wire, MAX_CHARACTERS))
    meta = envelope["meta"]
    if envelope["ok"]:
        return ToolComplete(
            tool=result.tool_id,
            call_id=result.call_id,
            duration_ms=meta["duration"],
            data=envelope["data"],
        )
    error = envelope["error"]
    return ToolErrorEvent(
        tool=result.tool_id,
        call_id=result.call_id,
        duration_ms=meta["duration"],
        error_type=error["type"],
        message=error["message"],
        suggestion=error.get("suggestion"),
        recoverable=error["retryable"],
        state=meta.get("state") or None,
    )


def confirmation_settled(pending: PendingConfirmation, *, approved: bool) -> ConfirmationSettled:
    """Return the event for the user's decision on a call."""
    return ConfirmationSettled(tool=pending.tool_id, call_id=pending.call_id, approved=approved)


def call_outcome(result: CallResult) -> SessionEvent:
    """Return the event for the outcome of a call that needed confirmation."""
    if state_of(result.wire) is CallState.DECLINED:
        return ConfirmationSettled(tool=result.tool_id, call_id=result.call_id, approved=False)
    return tool_end(result)


def publish_decisions(session: Session, result: CallResult) -> None:
    """Publish the policy decisions on a call; calls without an id are unknown to clients and skipped."""
    if result.call is not None and result.call_id is not None:
        trace = result.call.policy_trace()
        decisions = ToolDecisions(tool=result.tool_id, call_id=result.call_id, decisions=trace)
        session.publish(*event_fields(decisions))

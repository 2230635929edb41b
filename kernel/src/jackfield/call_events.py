"""The events by which clients learn about a call: that it started, what policies decided, how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from jackfield.confirmation import PendingConfirmation
from jackfield.contract.call import ToolCall
from jackfield.outcomes import CallState, state_of
from jackfield.registry.registry import Registry
from jackfield.session.session import Session
from jackfield.truncation import cut

if TYPE_CHECKING:
    from jackfield.orchestrator import Answer

SHOWN = 4000
"""How much of arguments and of an answer a client is shown, in characters."""


def tool_start(registry: Registry, call: ToolCall) -> dict[str, Any]:
    """The fields of `tool_start`."""
    tool = registry.get(call.tool_id)
    arguments = call.arguments if isinstance(call.arguments, str) else call.arguments.decode()
    return {
        "tool": call.tool_id,
        "callId": call.call_id,
        "description": tool.frozen.summary if tool else "",
        "arguments": arguments[:SHOWN],
        "budgetMs": tool.manifest.latency_budget_ms if tool else None,
    }


def tool_end(answer: Answer) -> tuple[str, dict[str, Any]]:
    """`tool_complete` or `tool_error`, with its fields."""
    envelope = orjson.loads(cut(answer.wire, SHOWN))
    fields = {"tool": answer.tool_id, "callId": answer.call_id, "durationMs": envelope["meta"]["duration"]}
    if envelope["ok"]:
        return "tool_complete", {**fields, "data": envelope["data"]}
    error = envelope["error"]
    told = {"errorType": error["type"], "message": error["message"], "suggestion": error.get("suggestion")}
    state = envelope["meta"].get("state")
    also = {"state": state} if state else {}
    return "tool_error", {**fields, **told, "recoverable": error["retryable"], **also}


def confirmation_settled(pending: PendingConfirmation, *, approved: bool) -> dict[str, Any]:
    """The fields of `confirmation_settled`."""
    return {"tool": pending.tool_id, "callId": pending.call_id, "approved": approved}


def call_outcome(answer: Answer) -> tuple[str, dict[str, Any]]:
    """The event that tells the outcome of a call which needed approval, with its fields."""
    if state_of(answer.wire) is CallState.DECLINED:
        return "confirmation_settled", {"tool": answer.tool_id, "callId": answer.call_id, "approved": False}
    return tool_end(answer)


def publish_decisions(session: Session, answer: Answer) -> None:
    """Publish what policies decided about a call; clients know no call without an id."""
    if answer.call is not None and answer.call_id is not None:
        fields = {"tool": answer.tool_id, "callId": answer.call_id, "decisions": answer.decisions}
        session.publish("tool_decisions", fields)

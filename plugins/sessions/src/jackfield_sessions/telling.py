"""What a client is told about a call: that it began, and what became of it."""

from __future__ import annotations

from typing import Any

import orjson
from jackfield.contract.call import ToolCall
from jackfield.orchestrator import Answer
from jackfield.outcomes import CallState, state_of
from jackfield.registry.registry import Registry
from jackfield.truncation import cut

SHOWN = 4000
"""How much of arguments and of an answer a client is shown, in characters."""


def begun(registry: Registry, call: ToolCall) -> dict[str, Any]:
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


def ended(answer: Answer) -> tuple[str, dict[str, Any]]:
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


def decided(answer: Answer) -> tuple[str, dict[str, Any]]:
    """The event that tells what became of a call its user has decided about, with its fields."""
    if state_of(answer.wire) is CallState.DECLINED:
        return "confirmation_settled", {"tool": answer.tool_id, "callId": answer.call_id, "approved": False}
    return ended(answer)

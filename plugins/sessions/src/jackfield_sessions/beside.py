"""Calls that nobody waits for: the model is told that they began, and later what came of them."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from jackfield.contract.call import ToolCall
from jackfield.contract.response import ok
from jackfield.orchestrator import Answer
from jackfield.registry.registry import Registry

LONGEST_WAIT_MS = 60_000
"""A tool that may take longer than this runs beside the conversation."""

BEGUN_SECONDS = 1.0
"""What is answered within so long, such as a refusal, is answered as usual."""

_BEGUN = {
    "status": "running",
    "note": "It has begun and goes on in the background. Say so, and go on with the user; its answer comes "
    "by itself. Do not call it again.",
}


def runs_beside(registry: Registry, call: ToolCall) -> bool:
    """Whether a call may take so long that a model must not wait for it."""
    tool = registry.get(call.tool_id)
    return tool is not None and tool.manifest.latency_budget_ms > LONGEST_WAIT_MS


def parts(registry: Registry, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
    """The calls of one message as they run: those that are waited for together, each other one alone."""
    alone = [call for call in calls if runs_beside(registry, call)]
    together = [call for call in calls if call not in alone]
    return [part for part in (together, *([call] for call in alone)) if part]


def provisional(call: ToolCall) -> Answer:
    """What the model gets for a call that goes on."""
    response = ok(_BEGUN).with_meta(toolId=call.tool_id, provisional=True)
    wire = orjson.dumps(response.to_wire())
    return Answer(call.tool_id, call.call_id, response, wire, wire.decode())

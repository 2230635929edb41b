"""The delegated work, the progress shown to the user, and the answer for the model."""

from __future__ import annotations

import asyncio
import json
from importlib import resources
from typing import Any

import pytest
from jackfield import ErrorType, ToolError, ToolResponse
from jackfield.contract.manifest import ToolManifest
from jackfield.invocation import as_handler
from jackfield_testkit import ToolTestContext
from jackfield_tool_task.handler import execute
from stub_agents import SOURCE, StubAgents

SCHEMA = resources.files("jackfield_tool_task").joinpath("schema.json").read_text("utf-8")
run_task: Any = as_handler(execute)
MANIFEST = ToolManifest.from_wire(json.loads(SCHEMA))


def call(context: ToolTestContext, **given: Any) -> ToolResponse:
    work = {"title": " Rooms ", "instructions": " Find out. ", "tools": [], **given}
    answer: ToolResponse = asyncio.run(run_task(work, context))
    return answer


def test_the_manifest_matches_the_tool_table() -> None:
    assert (MANIFEST.category, MANIFEST.side_effects, MANIFEST.idempotent) == ("action", "writes", False)
    assert set(MANIFEST.allowed_modes) == {"text", "voice"}
    assert (MANIFEST.latency_budget_ms, MANIFEST.timeout_ms) == (300_000, 300_000)
    assert (MANIFEST.requires_confirmation, MANIFEST.requires) == ("policy", ("agents",))


def test_the_task_is_delegated_and_every_step_is_shown() -> None:
    agents = StubAgents()
    context = ToolTestContext("voice", agents=agents)
    data = call(context, tools=["kb_search"]).data
    assert agents.asked == [("Find out.", ("kb_search",))]
    assert [each.message for each in context.progressed] == ["Rooms: begun", "Rooms: step 1, kb_search"]
    assert data == {
        "title": "Rooms",
        "report": "Found.",
        "complete": True,
        "steps": 2,
        "tools": ["kb_search"],
        "sources": [SOURCE],
        "seconds": 1.5,
    }
    assert "".join(context.shown) == "It was found."
    assert context.audited == [("agent_worked", {"session": "s1", "steps": 2, "complete": True})]


def test_incomplete_work_states_the_reason_and_omits_empty_parts() -> None:
    agents = StubAgents(cut_short="Its time was over.", tools=(), sources=())
    data = call(ToolTestContext(agents=agents)).data
    assert (data["complete"], data["note"]) == (False, "Its time was over.")
    assert "tools" not in data
    assert "sources" not in data


def test_a_failure_of_the_capability_reaches_the_model_unchanged() -> None:
    refusal = ToolError(ErrorType.RATE_LIMIT, "Too many.", retryable=True)
    with pytest.raises(ToolError) as raised:
        call(ToolTestContext(agents=StubAgents(refusal)))
    assert raised.value is refusal

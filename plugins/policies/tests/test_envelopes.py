"""The members of every answer for the model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jackfield_policies
import pytest
from jackfield import ErrorType, Intent, ToolResponse, fail, ok
from jackfield_policies.access import Bans
from jackfield_testkit.runtime import VERSION, TestRuntime, make_tool

PARAMETERS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "query": {"type": "string", "maxLength": 5},
        "mood": {"type": "string", "enum": ["glad", "sad"]},
    },
}
GUIDE = """# tool

Finds things.

## Parameters

- **query** (required): what to look for, in a few words
- mood: glad or sad
"""
WRITES = {"sideEffects": "writes", "idempotent": False}


async def fine(args: dict[str, Any], ctx: Any) -> ToolResponse:
    return ok({"found": 1})


def make_runtime(handler: Any = fine, **fields: Any) -> TestRuntime:
    return TestRuntime(
        make_tool("tool", handler, guide=GUIDE, **{"parameters": PARAMETERS, "version": "2.3.4", **fields}),
        policies=jackfield_policies.jackfield_policies(),
        capabilities=jackfield_policies.jackfield_capabilities(),
    )


def envelope(answer: Any) -> Any:
    return json.loads(answer.wire)


@pytest.mark.parametrize("works", [True, False])
def test_every_envelope_has_tool_registry_format_and_duration(works: bool) -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        return ok({"found": 1}) if works else fail(ErrorType.PERMANENT, "No.")

    work = make_runtime(handler)
    told = envelope(asyncio.run(work.call(work.session(), "tool")))
    assert set(told) == ({"ok", "data", "intents", "meta"} if works else {"ok", "error", "meta"})
    assert told["ok"] is works
    duration = told["meta"].pop("duration")
    assert isinstance(duration, float)
    assert duration > 0
    assert told["meta"] == {
        "toolId": "tool",
        "toolVersion": "2.3.4",
        "registryVersion": VERSION,
        "responseSchemaVersion": "1.0.0",
    }


def test_invalid_arguments_are_reported_with_paths_and_guide_lines() -> None:
    work = make_runtime()
    error = envelope(asyncio.run(work.call(work.session(), "tool", '{"query": "a long one"}')))["error"]
    assert error["type"] == "VALIDATION"
    assert [each["path"] for each in error["details"]["errors"]] == ["/query"]
    assert error["suggestion"] == "**query** (required): what to look for, in a few words"


async def refusal_of(kind: str) -> Any:
    """Return an answer of this type to a call to a writing tool, made before the tool could run."""
    ran: list[int] = []

    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        ran.append(1)
        return ok({"done": True})

    asks: dict[str, dict[str, Any]] = {
        "MODE_RESTRICTED": {"allowedModes": ["text"]},
        "CONFIRMATION_REQUIRED": {"requiresConfirmation": True},
        "RATE_LIMIT": {"rateLimit": {"calls": 1, "windowMs": 60_000}},
    }
    work = make_runtime(handler, **WRITES, **asks.get(kind, {}))
    session = work.session("voice", user="ada")
    if kind == "AUTH":
        await Bans(work.store).add("ada", 60)
    before = {"BUDGET_EXCEEDED": ["a", "b", "c"], "LOOP_DETECTED": ["x", "x"], "RATE_LIMIT": ["a"]}
    for query in before.get(kind, ()):
        await work.call(session, "tool", json.dumps({"query": query}), f"call_{len(ran):08}")
    if kind == "CONFLICT":
        await work.call(session, "tool", "{}", "call_stable_1")
    runs = len(ran)
    tool, arguments = "tool", '{"query": "x"}'
    if kind == "NOT_FOUND":
        tool = "another"
    if kind == "VALIDATION":
        arguments = '{"query": 5}'
    answer = await work.call(session, tool, arguments, "call_stable_1")
    assert len(ran) == runs
    return envelope(answer)["error"]


@pytest.mark.parametrize(
    "kind",
    [
        "VALIDATION",
        "NOT_FOUND",
        "MODE_RESTRICTED",
        "BUDGET_EXCEEDED",
        "LOOP_DETECTED",
        "CONFIRMATION_REQUIRED",
        "RATE_LIMIT",
        "AUTH",
        "CONFLICT",
    ],
)
def test_a_rejection_before_the_run_says_that_nothing_was_done(kind: str) -> None:
    error = asyncio.run(refusal_of(kind))
    assert error["type"] == kind
    assert error["partialSideEffects"] is False


def test_a_refused_intent_is_reported_to_the_model_and_keeps_the_answer() -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        return ok({"found": 1}, Intent("HANG_UP"))

    work = make_runtime(handler)
    told = envelope(asyncio.run(work.call(work.session(), "tool")))
    assert (told["data"], told["intents"]) == ({"found": 1}, [])
    assert told["meta"]["refusedIntents"] == [{"type": "HANG_UP", "reason": "no plugin handles it"}]


def test_a_handler_reaches_only_the_capabilities_it_named() -> None:
    seen: dict[str, Any] = {}

    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        seen["bans"] = ctx.bans
        for name in ("kb", "store", "socket", "provider"):
            with pytest.raises(AttributeError, match=f"does not list '{name}' in"):
                getattr(ctx, name)
        with pytest.raises(AttributeError):
            ctx.session.mode = "voice"
        return ok()

    work = make_runtime(handler, requires=["bans"])
    assert envelope(asyncio.run(work.call(work.session(), "tool")))["ok"]
    assert isinstance(seen["bans"], Bans)


def test_a_tool_cannot_publish_reserved_events() -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        for event in ("confirmation_settled", "message", "tool_complete"):
            with pytest.raises(ValueError, match="reserved for the host"):
                await ctx.messaging.send(event)
        await ctx.messaging.send("picture", id="p1")
        await ctx.progress("half way", fraction=0.5)
        return ok()

    work = make_runtime(handler)
    assert envelope(asyncio.run(work.call(work.session(), "tool", "{}", "call_1")))["ok"]
    assert work.events == [
        ("picture", {"id": "p1"}),
        ("tool_progress", {"tool": "tool", "callId": "call_1", "message": "half way", "fraction": 0.5}),
    ]

"""Answers are checked against the `returns` of their tool: violations are reported, or fail if enforced."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jackfield_policies
import pytest
from jackfield import ErrorType, Intent, ToolResponse, fail, ok
from jackfield.registry import result_validator as returns_module
from jackfield.registry.result_validator import MAX_REPORTED
from jackfield_testkit.runtime import TestRuntime, make_tool

RETURNS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["found"],
    "properties": {
        "found": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        "all": {"type": "array", "items": {"type": "string"}},
    },
}
WRITES = {"sideEffects": "writes", "idempotent": False}


def make_runtime(answer: Any, *, enforce_returns: bool = False, **fields: Any) -> TestRuntime:
    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        return answer if isinstance(answer, ToolResponse) else ok(answer)

    return TestRuntime(
        make_tool("tool", handler, **{"returns": RETURNS, **fields}),
        policies=jackfield_policies.jackfield_policies(),
        capabilities=jackfield_policies.jackfield_capabilities(),
        enforce_returns=enforce_returns,
    )


def told(work: TestRuntime) -> Any:
    return json.loads(asyncio.run(work.call(work.session(), "tool")).wire)


@dataclass
class Found:
    found: int


@pytest.mark.parametrize(
    "data",
    [
        {"found": 1},
        {"found": 1, "at": "2026-03-02T09:00:00Z", "all": ["a"]},
        {"found": 1, "at": datetime(2026, 3, 2, tzinfo=UTC), "all": ("a", "b")},
        Found(1),
    ],
)
def test_data_that_matches_returns_passes_unmarked(data: Any) -> None:
    answer = told(make_runtime(data))
    assert answer["ok"]
    assert "returnsViolations" not in answer["meta"]


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        ({}, "/", '"found" is a required property'),
        ({"found": "1"}, "/found", 'the value is not of type "integer"'),
        ({"found": 1, "at": "tomorrow"}, "/at", 'the value is not a "date-time"'),
        ({"found": 1, "more": 2}, "/", "Additional properties are not allowed ('more' was unexpected)"),
        ({"found": 1, "all": ["a", 2]}, "/all/1", 'the value is not of type "string"'),
        ({"found": math.nan}, "/found", 'the value is not of type "integer"'),
        ([], "/", 'the value is not of type "object"'),
        (None, "/", 'the value is not of type "object"'),
    ],
)
def test_data_that_violates_returns_is_passed_on_with_a_report(data: Any, path: str, message: str) -> None:
    answer = told(make_runtime(data))
    assert answer["ok"]
    assert answer["meta"]["returnsViolations"] == [{"path": path, "message": message}]


def test_a_report_is_bounded_and_quotes_no_values() -> None:
    secret = "hunter2" * 1000
    answer = told(make_runtime({"found": secret, "all": list(range(1000)), "x" * 5000: secret}))
    reported = answer["meta"]["returnsViolations"]
    assert len(reported) == MAX_REPORTED
    assert "hunter2" not in json.dumps(reported)
    assert len(json.dumps(reported)) < 2000


@pytest.mark.parametrize(("fields", "partial"), [({}, False), (WRITES, True)])
def test_an_enforced_violation_fails_the_call_without_passing_on_data(
    fields: dict[str, Any], partial: bool
) -> None:
    broken = ok({"found": "hunter2"}, Intent("END_SESSION"))
    answer = told(make_runtime(broken, enforce_returns=True, **fields))
    assert answer["ok"] is False
    assert answer["error"] == {
        "type": "INTERNAL",
        "message": "The tool's result does not match its `returns` schema and is withheld.",
        "retryable": False,
        "partialSideEffects": partial,
    }
    assert answer["meta"]["returnsViolations"][0]["path"] == "/found"
    assert "hunter2" not in json.dumps(answer)


def test_data_that_matches_enforced_returns_passes() -> None:
    assert told(make_runtime({"found": 1}, enforce_returns=True))["data"] == {"found": 1}


@pytest.mark.parametrize("enforce", [True, False])
def test_a_failure_of_the_handler_is_not_checked(enforce: bool) -> None:
    answer = told(make_runtime(fail(ErrorType.NOT_FOUND, "Nothing there."), enforce_returns=enforce))
    assert answer["error"]["type"] == "NOT_FOUND"
    assert "returnsViolations" not in answer["meta"]


def test_an_answer_of_another_tool_is_checked_when_it_is_passed_on() -> None:
    async def inner(args: dict[str, Any], ctx: Any) -> ToolResponse:
        return ok(["what the inner tool promises"])

    async def outer(args: dict[str, Any], ctx: Any) -> ToolResponse:
        passed_on: ToolResponse = await ctx.call_tool("inner", {})
        return passed_on

    work = TestRuntime(
        make_tool("inner", inner, returns={"type": "array"}), make_tool("tool", outer, returns=RETURNS)
    )
    assert told(work)["meta"]["returnsViolations"] == [
        {"path": "/", "message": 'the value is not of type "object"'}
    ]


def test_a_tool_cannot_report_violations_itself() -> None:
    answer = told(make_runtime(ok({"found": 1}).with_meta(returnsViolations=["made up"], more=1)))
    assert answer["meta"]["more"] == 1
    assert "returnsViolations" not in answer["meta"]


@pytest.mark.parametrize("enforce", [True, False])
def test_a_replayed_answer_keeps_its_bytes(enforce: bool) -> None:
    work = make_runtime({"found": "1"}, enforce_returns=enforce, **WRITES)
    session = work.session()

    async def twice() -> tuple[bytes, bytes]:
        first = await work.call(session, "tool", "{}", "call_stable_1")
        return first.wire, (await work.call(session, "tool", "{}", "call_stable_1")).wire

    first, second = asyncio.run(twice())
    assert first == second
    assert b"returnsViolations" in first


def test_a_tool_without_returns_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("nothing is compiled or read for a tool without `returns`")

    monkeypatch.setattr(returns_module, "compile_schema", never)
    assert told(make_runtime(["anything"], returns=None))["data"] == ["anything"]

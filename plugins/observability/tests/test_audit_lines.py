"""The content of an audit line."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import UTC, datetime
from types import ModuleType
from typing import Any
from uuid import UUID

import orjson
import pytest
from jackfield import ErrorType, ToolCall, ToolResponse, fail, ok
from jackfield.offers import Stage
from jackfield_observability.audit import MAX_LINE


class PassPolicy:
    """A policy that passes a call, with or without a note."""

    def __init__(self, name: str, decision: str | None = None, *, refuses: bool = False) -> None:
        self._name, self._decision, self._refuses = name, decision, refuses

    def applies_to(self, tool: Any, session: Any) -> bool:
        return True

    async def apply(self, call: Any, proceed: Any) -> ToolResponse:
        call.key = "key-1"
        if self._refuses:
            call.end(self._name, self._decision)
            return fail(ErrorType.BUDGET_EXCEEDED, "Enough.")
        if self._decision:
            call.decide(self._name, self._decision)
        return await proceed(call)  # type: ignore[no-any-return]


def test_a_call_is_one_line_with_everything_about_it(
    audited: Callable[..., Any], audited_host: ModuleType
) -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> Any:
        ctx.audit("looked up", source="cache")
        return ok({"said": args["text"]})

    talk = audited(
        audited_host.tool(handler),
        policies=[
            ("modes", Stage.ADMIT, PassPolicy("modes")),
            ("clamping", Stage.SHAPE, PassPolicy("clamping", "top_k 9 -> 3")),
        ],
    )
    before = datetime.now(UTC)
    answer = talk.call(text="hello", call_id="call-1")
    (line,) = talk.lines()

    when = datetime.fromisoformat(line.pop("time"))
    assert 0 <= line.pop("durationMs") < 1000
    assert abs((when - before).total_seconds()) < 1
    assert line == {
        "event": "call",
        "host": socket.gethostname(),
        "tool": "echo",
        "toolVersion": "2.3.4",
        "registryVersion": audited_host.VERSION,
        "pinnedVersion": audited_host.VERSION,
        "category": "utility",
        "ok": True,
        "error": None,
        "stopped": None,
        "session": "session-1",
        "user": "ada",
        "mode": "text",
        "turn": 1,
        "callId": "call-1",
        "key": "key-1",
        "parent": None,
        "confirmed": False,
        "defaultsFilled": False,
        "decisions": {"modes": "pass", "validation": "pass", "clamping": "top_k 9 -> 3"},
        "responseCharacters": len(answer.wire),
        "arguments": {"text": "hello"},
        "notes": [{"event": "looked up", "source": "cache"}],
    }
    assert list(line["decisions"]) == ["modes", "validation", "clamping"]


def test_a_refused_call_names_the_policy_and_those_not_reached(audited: Callable[..., Any]) -> None:
    talk = audited(
        policies=[
            ("modes", Stage.ADMIT, PassPolicy("modes")),
            ("budgets", Stage.ADMIT, PassPolicy("budgets", "refused", refuses=True)),
            ("loops", Stage.ADMIT, PassPolicy("loops")),
        ]
    )
    talk.call()
    (line,) = talk.lines()

    assert (line["ok"], line["error"]) == (False, "BUDGET_EXCEEDED")
    assert line["decisions"] == {
        "modes": "pass",
        "budgets": "refused",
        "loops": "not reached",
        "validation": "not reached",
    }


def test_invalid_and_malformed_arguments_are_audited(
    audited: Callable[..., Any], audited_host: ModuleType
) -> None:
    strict = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    talk = audited(audited_host.tool(parameters=strict))
    talk.call(n="many")
    talk.send("echo", b"{")
    broken, malformed = talk.lines()

    assert (broken["error"], broken["arguments"]) == ("VALIDATION", {"n": "many"})
    assert (malformed["error"], malformed["arguments"]) == ("VALIDATION", {})


def test_filled_in_defaults_are_audited(audited: Callable[..., Any], audited_host: ModuleType) -> None:
    with_default = {"type": "object", "properties": {"n": {"type": "integer", "default": 5}}}
    talk = audited(audited_host.tool(parameters=with_default))
    talk.call()
    (line,) = talk.lines()

    assert line["decisions"] == {"validation": "defaults filled in"}
    assert line["arguments"] == {"n": 5}


def test_a_call_made_by_a_tool_names_the_tool(audited: Callable[..., Any], audited_host: ModuleType) -> None:
    async def outer(args: dict[str, Any], ctx: Any) -> Any:
        await ctx.call_tool("made_up", {})
        return await ctx.call_tool("echo", {"text": "inner"})

    talk = audited(audited_host.tool(), audited_host.tool(outer, "outer"))
    talk.call("outer")

    assert [(line["tool"], line["parent"]) for line in talk.lines()] == [
        ("made_up", "outer"),
        ("echo", "outer"),
        ("outer", None),
    ]


def test_characters_are_counted_not_bytes(audited: Callable[..., Any]) -> None:
    talk = audited()
    answer = talk.call(text="日本語")
    (line,) = talk.lines()

    assert line["responseCharacters"] == len(answer.wire.decode()) < len(answer.wire)


def test_every_concurrent_call_has_its_line(audited: Callable[..., Any]) -> None:
    talk = audited()
    calls = [ToolCall("echo", orjson.dumps({"number": number})) for number in range(500)]
    for _ in range(4):
        talk.run(talk.orchestrator.handle(talk.session, calls))

    assert sorted(line["arguments"]["number"] for line in talk.lines()) == sorted([*range(500)] * 4)


def test_arguments_can_be_left_out(audited: Callable[..., Any], path: Any) -> None:
    talk = audited(arguments=False)
    talk.call(text="private matters")
    (line,) = talk.lines()

    assert "arguments" not in line
    assert b"private matters" not in path.read_bytes()


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("not even this")


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC), "2026-05-04T03:02:01Z"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({3}, [3]),
        ((1, 2), [1, 2]),
        ({1: "one"}, {"1": "one"}),
        (2**70, "[integer of 71 bits]"),
        (10**5000, "[integer of 16610 bits]"),
        (float("nan"), None),
        ("half a \ud83d pair", "half a ? pair"),
        (Odd(), "[Odd]"),
        (b"bytes", "[bytes]"),
        ("x" * 501, "x" * 500 + "[cut: 501 characters]"),
        ("x" * 100_000, "x" * 500 + "[cut: 100000 characters]"),
        ([0] * 150, [0] * 100 + ["[50 more]"]),
        (ErrorType.AUTH, "AUTH"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_note_may_contain_any_object(
    audited: Callable[..., Any], audited_host: ModuleType, value: Any, shown: Any
) -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> Any:
        ctx.audit("noted", value=value, circle=_circle())
        return ok()

    talk = audited(audited_host.tool(handler))
    talk.call()
    (line,) = talk.lines()

    assert line["notes"][0]["value"] == shown
    assert "[too deep]" in str(line["notes"][0]["circle"])


def test_a_line_over_the_limit_keeps_its_facts(audited: Callable[..., Any], path: Any) -> None:
    talk = audited()
    talk.call(**{f"name{number}": ["y" * 400] * 90 for number in range(20)})
    (line,) = talk.lines()

    assert line["arguments"].startswith("[left out: the line had ")
    assert line["tool"] == "echo"
    assert path.stat().st_size < MAX_LINE


def test_a_call_that_cannot_be_encoded_is_counted_and_reported(
    audited: Callable[..., Any], audited_host: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    class Explosive(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("changed while it was read")

    async def handler(args: dict[str, Any], ctx: Any) -> Any:
        ctx.audit("noted", value=Explosive(a=1))
        return ok()

    talk = audited(audited_host.tool(handler), audited_host.tool(tool_id="fine"))
    talk.call()
    talk.call("fine")
    fine, dropped = talk.lines()

    assert fine["tool"] == "fine"
    assert (dropped["event"], dropped["lines"]) == ("dropped", 1)
    assert "a call to echo could not be encoded" in caplog.text


def test_a_line_counts_violations_of_returns(audited: Callable[..., Any], audited_host: ModuleType) -> None:
    returns = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    talk = audited(audited_host.tool(returns=returns))
    talk.call(a=1, b=2)
    talk.call(a="one", b="two")
    kept, broken = talk.lines()

    assert "returnsViolations" not in kept
    assert broken["returnsViolations"] == 2
    assert broken["ok"] is True
    assert [each["path"] for each in broken["meta"]["returnsViolations"]] == ["/a", "/b"]

"""A streaming handler shows partial results, in order and within limits, and they are never the answer."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from jackfield import ErrorType, Partial, ToolContext, ToolError, ToolResponse, fail, ok, partial
from jackfield import partial_results as limits
from jackfield.handler_types import handler_types
from jackfield.invocation import as_handler

# When the kernel is tested alone, the test kit is not installed.
invoke = pytest.importorskip("jackfield_testkit.tool.runner").invoke


class Client:
    """Records the partial results as a client would get them."""

    def __init__(self, *, wants: int = 1_000_000) -> None:
        self.wants = wants
        self.got: list[tuple[int, Any]] = []
        self.results: list[Partial] = []
        self.truncated: list[bool] = []
        self.got_second = asyncio.Event()

    def report_partial(self, result: Partial, number: int, *, truncated: bool) -> bool:
        self.got.append((number, result.data))
        self.results.append(result)
        self.truncated.append(truncated)
        if number == 2:
            self.got_second.set()
        return len(self.got) < self.wants

    @property
    def text(self) -> str:
        return "".join(data for _, data in self.got)


def answer(execute: Any, client: Client, *, timeout_ms: int = 10_000, writes: bool = False) -> ToolResponse:
    given: ToolResponse = asyncio.run(
        invoke(as_handler(execute), {"n": 1}, client, timeout_ms=timeout_ms, writes=writes)
    )
    return given


def test_parts_arrive_in_order_and_the_first_value_that_is_no_part_is_the_answer() -> None:
    async def execute(args: dict[str, Any], ctx: ToolContext) -> AsyncIterator[Partial | ToolResponse]:
        for letter in "abc":
            yield partial(letter, f"at {letter}", fraction=0.5)
            await asyncio.sleep(0)
        yield ok({"n": args["n"]})
        raise AssertionError("nothing runs after the answer")

    client = Client()
    assert answer(execute, client) == ok({"n": 1})
    assert client.text == "abc"
    assert [number for number, _ in client.got] == list(range(1, len(client.got) + 1))
    assert client.got[0] == (1, "a")
    assert client.results[-1] == partial(client.got[-1][1], "at c", fraction=0.5)


def test_the_rate_limit_joins_parts_and_loses_none() -> None:
    async def text(args: dict[str, Any], ctx: ToolContext) -> Any:
        for number in range(1000):
            yield partial(f"{number},")
        yield ok()

    async def items(args: dict[str, Any], ctx: ToolContext) -> Any:
        shared = {"n": 0}
        for number in range(100):
            shared["n"] = number
            yield partial(shared)
        yield partial([{"n": 100}, {"n": 101}])
        yield ok()

    client = Client()
    assert answer(text, client).ok
    assert client.text == "".join(f"{number}," for number in range(1000))
    assert len(client.got) < 1000
    client = Client()
    assert answer(items, client).ok
    assert [item["n"] for _, data in client.got for item in data] == list(range(102))


def test_what_the_rate_limit_holds_back_is_sent_while_the_handler_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "INTERVAL_SECONDS", 0.01)
    client = Client()

    async def execute(args: dict[str, Any], ctx: ToolContext) -> Any:
        yield partial("a")
        yield partial("b")
        await client.got_second.wait()
        yield ok()

    assert answer(execute, client).ok
    assert client.got == [(1, "a"), (2, "b")]


def test_size_and_number_are_limited_and_the_answer_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def large(args: dict[str, Any], ctx: ToolContext) -> Any:
        for _ in range(100):
            yield partial("é" * 1000)
        yield ok("whole")

    client = Client()
    assert answer(large, client) == ok("whole")
    assert limits.MAX_BYTES - 2000 < len(client.text.encode()) <= limits.MAX_BYTES
    assert client.truncated == [False] * (len(client.got) - 1) + [True]

    async def large_record(args: dict[str, Any], ctx: ToolContext) -> Any:
        yield partial({"text": "x" * limits.MAX_BYTES})
        yield partial("more")
        yield ok("whole")

    client = Client()
    assert answer(large_record, client) == ok("whole")
    assert (client.got, client.truncated) == ([(1, [])], [True])

    monkeypatch.setattr(limits, "INTERVAL_SECONDS", 0.0)

    async def many(args: dict[str, Any], ctx: ToolContext) -> Any:
        for _ in range(limits.MAX_EVENTS + 10):
            yield partial("x")
        yield ok("whole")

    client = Client()
    assert answer(many, client) == ok("whole")
    assert len(client.got) == limits.MAX_EVENTS
    assert client.truncated[-2:] == [False, True]


def test_values_that_json_cannot_represent_do_not_fail_the_call() -> None:
    async def execute(args: dict[str, Any], ctx: ToolContext) -> Any:
        yield partial("half \udc80")
        yield partial({1, 2})
        yield partial(float("nan"))
        yield ok()

    client = Client()
    assert answer(execute, client).ok
    assert client.got[0] == (1, "half ?")


def test_a_part_is_never_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    closed: list[str] = []

    async def without_answer(args: dict[str, Any], ctx: ToolContext) -> Any:
        yield partial("all of it")

    async def crashes(args: dict[str, Any], ctx: ToolContext) -> Any:
        yield partial("half")
        raise RuntimeError("password=hunter2")

    async def fails(args: dict[str, Any], ctx: ToolContext) -> Any:
        yield partial("half")
        raise ToolError(ErrorType.CONFLICT, "Taken.")

    async def hangs(args: dict[str, Any], ctx: ToolContext) -> Any:
        try:
            yield partial("half")
            await asyncio.Event().wait()
            yield ok("never")
        finally:
            closed.append("hangs")

    async def swallows(args: dict[str, Any], ctx: ToolContext) -> Any:
        yield partial("half")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield partial("after the deadline")

    for execute, kind in ((without_answer, "INTERNAL"), (crashes, "INTERNAL"), (fails, "CONFLICT")):
        response = answer(execute, client := Client())
        assert response.failure is not None
        assert response.failure.type == kind
        assert response.data is None
        assert "hunter2" not in response.failure.message
        assert client.got
    assert "without an answer" in caplog.text
    for execute in (hangs, swallows):
        response = answer(execute, Client(), timeout_ms=50, writes=True)
        assert response.failure is not None
        assert (response.failure.type, response.data) == ("TRANSIENT", None)
    assert closed == ["hangs"]


def test_a_generator_is_closed_when_it_has_answered() -> None:
    closed = []

    async def execute(args: dict[str, Any], ctx: ToolContext) -> Any:
        try:
            yield partial("a")
            yield fail(ErrorType.PERMANENT, "No.")
        finally:
            closed.append(asyncio.current_task())

    assert answer(execute, Client()) == fail(ErrorType.PERMANENT, "No.")
    assert closed


def test_nothing_is_sent_to_a_client_that_wants_no_more() -> None:
    async def execute(args: dict[str, Any], ctx: ToolContext) -> Any:
        for _ in range(3):
            yield partial("a")
        yield ok("done")

    client = Client(wants=1)
    assert answer(execute, client) == ok("done")
    assert client.got == [(1, "a")]


@dataclass
class Booking:
    table: int


async def typed_handler(args: dict[str, Any], ctx: Any) -> AsyncIterator[Partial | Booking]:
    yield partial("looking")
    yield Booking(4)


def test_types_of_a_streaming_handler_describe_its_answer() -> None:
    assert handler_types(typed_handler).result is Booking
    assert answer(typed_handler, Client()) == ok({"table": 4})


def test_other_handlers_are_not_wrapped() -> None:
    async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        return ok()

    assert as_handler(execute) is execute
    assert inspect.iscoroutinefunction(as_handler(typed_handler))

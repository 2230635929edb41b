"""A handler gives exactly one answer in every case, and no internals leak."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
import time
from typing import Any, cast

import pytest
from jackfield import ErrorType, ToolContext, ToolError, ToolResponse, fail, ok
from jackfield.invocation import as_handler

# When the kernel is tested alone, the test kit is not installed.
invoke = pytest.importorskip("jackfield_testkit.tool.runner").invoke

CTX = cast("ToolContext", None)


def answer(execute: Any, *, timeout_ms: int = 1000, writes: bool = False) -> ToolResponse:
    running = invoke(as_handler(execute), {"n": 1}, CTX, timeout_ms=timeout_ms, writes=writes)
    given: ToolResponse = asyncio.run(running)
    return given


def test_coroutines_and_plain_functions_are_both_handlers() -> None:
    async def coroutine(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        return ok(args["n"])

    def plain(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        return ok(threading.current_thread() is threading.main_thread())

    assert answer(coroutine) == ok(1)
    assert answer(plain) == ok(False)


def test_failure_responses_pass_through_and_tool_errors_become_failures() -> None:
    async def returns(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        return fail(ErrorType.CONFLICT, "That slot is taken.", suggestion="Offer another.")

    async def raises(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        raise ToolError(ErrorType.AUTH, "The calendar refused.", retryable=True, details={"status": 401})

    assert answer(returns).to_wire()["error"] == {
        "type": "CONFLICT",
        "message": "That slot is taken.",
        "retryable": False,
        "partialSideEffects": False,
        "suggestion": "Offer another.",
    }
    error = answer(raises).to_wire()["error"]
    assert (error["type"], error["retryable"], error["details"]) == ("AUTH", True, {"status": 401})


def test_any_other_exception_is_an_internal_error_without_details(caplog: pytest.LogCaptureFixture) -> None:
    async def crashes(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        raise RuntimeError("password=hunter2")

    with caplog.at_level(logging.ERROR):
        response = answer(crashes)
    assert response.failure is not None
    assert response.failure.type is ErrorType.INTERNAL
    assert response.failure.partial_side_effects is True
    assert "hunter2" not in str(response.to_wire())
    assert "RuntimeError" in caplog.text


def test_data_by_itself_is_a_success() -> None:
    async def short(args: dict[str, Any], ctx: ToolContext) -> Any:
        return {"table": 4}

    assert answer(short) == ok({"table": 4})


def test_a_handler_that_returns_nothing_is_an_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    async def forgetful(args: dict[str, Any], ctx: ToolContext) -> Any:
        args.clear()

    response = answer(forgetful)
    assert response.failure is not None
    assert response.failure.type is ErrorType.INTERNAL
    assert "it returned None" in caplog.text


@pytest.mark.parametrize("writes", [True, False])
def test_a_handler_is_stopped_at_its_deadline_and_the_failure_names_possible_effects(writes: bool) -> None:
    async def slow(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        await asyncio.sleep(30)
        return ok()

    response = answer(slow, timeout_ms=20, writes=writes)
    assert response.failure is not None
    assert response.failure.type is ErrorType.TRANSIENT
    assert response.failure.partial_side_effects is writes
    assert response.failure.retryable is not writes


def test_a_blocking_handler_gets_a_timeout_response_at_its_deadline() -> None:
    release = threading.Event()

    def blocks(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        release.wait(10)
        return ok()

    async def run() -> tuple[ToolResponse, float]:
        began = time.monotonic()
        response = await invoke(as_handler(blocks), {}, CTX, timeout_ms=50, writes=False)
        waited = time.monotonic() - began
        release.set()
        return response, waited

    response, waited = asyncio.run(run())
    assert response.failure is not None
    assert response.failure.type is ErrorType.TRANSIENT
    assert waited < 5


def test_a_timeout_error_raised_by_the_handler_is_not_the_deadline() -> None:
    async def impatient(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        raise TimeoutError

    response = answer(impatient)
    assert response.failure is not None
    assert response.failure.type is ErrorType.INTERNAL


def test_external_cancellation_passes_through() -> None:
    async def waits(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        await asyncio.sleep(30)
        return ok()

    async def run() -> None:
        task = asyncio.create_task(invoke(as_handler(waits), {}, CTX, timeout_ms=60_000, writes=False))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


class Panic(BaseException):
    """An exception like those of extensions in other languages."""


async def waits_for_what_was_cancelled(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    child = asyncio.ensure_future(asyncio.sleep(30))
    child.cancel()
    await child
    return ok()


async def panics(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    raise Panic


def runs_out(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    return ok(next(iter(())))


def gives_up_in_its_thread(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    raise concurrent.futures.CancelledError


@pytest.mark.parametrize(
    "handler",
    [waits_for_what_was_cancelled, panics, runs_out, gives_up_in_its_thread],
    ids=lambda each: each.__name__,
)
def test_a_call_is_answered_whatever_its_handler_raises(handler: Any) -> None:
    response = answer(handler, timeout_ms=20_000)
    assert response.failure is not None
    assert response.failure.type is ErrorType.INTERNAL


def test_a_handler_that_swallows_its_cancellation_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jackfield.invocation.RECANCEL_SECONDS", 0.01)
    told: list[int] = []

    async def stubborn(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        while True:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                told.append(1)
                if len(told) == 3:
                    raise

    async def run() -> tuple[ToolResponse, int]:
        response = await invoke(stubborn, {}, CTX, timeout_ms=10, writes=False)
        task = asyncio.current_task()
        assert task is not None
        return response, task.cancelling()

    response, cancelling = asyncio.run(run())
    assert response.failure is not None
    assert response.failure.details == {"stopped": "timeout"}
    assert (len(told), cancelling) == (3, 0)


def test_an_exception_during_cancellation_is_reported_as_the_timeout() -> None:
    async def converts(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise ConnectionError("closed") from None
        return ok()

    response = answer(converts, timeout_ms=10)
    assert response.failure is not None
    assert response.failure.details == {"stopped": "timeout"}

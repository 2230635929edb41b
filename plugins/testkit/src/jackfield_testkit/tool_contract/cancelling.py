"""Cancelling a call while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

from jackfield import ToolResponse

from jackfield_testkit.tool_contract import wording
from jackfield_testkit.tool_contract.case import Case
from jackfield_testkit.tool_contract.running import invocation, run

_abandoned: list[tuple[asyncio.Runner, asyncio.Task[ToolResponse]]] = []
"""Calls that no cancellation ends; closing their loop would wait for them for ever."""


def problems(case: Case, grace_ms: float) -> Iterator[str]:
    """What is wrong with the way a call ends when it is cancelled, at one moment of its run or another."""
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner(loop_factory=asyncio.new_event_loop))
        for moment in runner.run(_moments(case)) if case.valid else ():
            task = runner.run(_cancelled(case, moment, grace_ms))
            if task is None or task.cancelled():
                continue
            if not task.done():
                runner.get_loop().set_exception_handler(lambda _loop, _context: None)
                _abandoned.append((runner, task))
                stack.pop_all()
            yield f"cancelled after {moment * 1000:.0f} ms, {_problem(task, grace_ms)}"
            return


async def _moments(case: Case) -> list[float]:
    """Seconds after the start: at the first step, and later for a tool that may run more than once."""
    if not case.tool.repeatable:
        return [0.0]
    whole = (await run(case.tool, case.completed(), case.context())).seconds
    return [0.0, whole / 3, whole * 2 / 3]


async def _cancelled(case: Case, moment: float, grace_ms: float) -> asyncio.Task[ToolResponse] | None:
    """The call after it was cancelled at that moment; nothing when it was over by then."""
    task = asyncio.create_task(invocation(case.tool, case.completed(), case.context()))
    await asyncio.sleep(moment)
    if task.done():
        return None
    task.cancel()
    await asyncio.wait({task}, timeout=grace_ms / 1000)
    return task


def _problem(task: asyncio.Task[ToolResponse], grace_ms: float) -> str:
    if not task.done():
        return (
            f"the call still ran {grace_ms:.0f} ms later; let asyncio.CancelledError through, and keep what "
            "has to follow it short"
        )
    return (
        f"the call went on to answer {wording.answer(task.result())}; the cancellation was swallowed: catch "
        "Exception rather than BaseException, or raise it again"
    )

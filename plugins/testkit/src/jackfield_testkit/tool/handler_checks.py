"""Checks of a running handler: defaults, unknown arguments, time budget, cancellation, blocking."""

from __future__ import annotations

import asyncio
import copy
import math
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from jackfield import ToolError, ToolResponse, ok
from jackfield.contract.tool import fail_from
from jackfield.strict_json import pointer

from jackfield_testkit.json_values import at, objects, same_json
from jackfield_testkit.tool import report
from jackfield_testkit.tool.loop_watch import LoopBlock, LoopWatch
from jackfield_testkit.tool.runner import ExampleCase, call_tool, invocation, run_async, run_once

# The results of a random tool may differ by chance; those of a tool that disagrees with its schema always do.
_ROUNDS = 3

_UNKNOWN = "no_tool_has_this_argument"

_abandoned: list[tuple[asyncio.Runner, asyncio.Task[ToolResponse]]] = []
"""Calls that ignore cancellation; closing their loop would wait for them forever."""


def default_problems(case: ExampleCase) -> Iterator[str]:
    """Yield every argument for which the handler assumes a different default than the schema declares."""
    for omission in _omissions(case) if case.valid else ():
        if problem := run_async(_default_problem(case, omission)):
            yield problem


class _Omission(NamedTuple):
    """Complete arguments without one that equals its default."""

    path: str
    default: Any
    arguments: dict[str, Any]


def _omissions(case: ExampleCase) -> Iterator[_Omission]:
    """Yield every way to omit one argument that the registry would fill in."""
    parameters, completed = case.tool.arguments, case.completed()
    for path, holder in objects(completed):
        for name in holder:
            omitted = case.completed()
            del at(omitted, path)[name]
            refilled = copy.deepcopy(omitted)
            parameters.fill_defaults(refilled)
            if same_json(refilled, completed) and not parameters.violations(omitted):
                yield _Omission(pointer(*path, name), holder[name], omitted)


async def _default_problem(case: ExampleCase, omission: _Omission) -> str | None:
    problem = None
    for _ in range(_ROUNDS):
        problem = await _disagreement(case, omission)
        if problem is None:
            break
    return problem


async def _disagreement(case: ExampleCase, omission: _Omission) -> str | None:
    declared = (await run_once(case.tool, case.completed(), case.context())).response
    own = await _own_response(case, copy.deepcopy(omission.arguments))
    if own is None or _same(own, declared):
        return None
    again = (await run_once(case.tool, case.completed(), case.context())).response
    if not _same(again, declared):
        return None  # The tool is not deterministic, so a difference proves nothing.
    return (
        f"{omission.path} has the default {omission.default!r}, but the handler assumes a different "
        "one; read the argument without a fallback, or use the same default\n"
        f"with the declared default: {report.response(declared)}\n"
        f"without the argument: {report.response(own)}"
    )


async def _own_response(case: ExampleCase, arguments: dict[str, Any]) -> ToolResponse | None:
    """Return the response to incomplete arguments; None if the handler fails and so has no default."""
    try:
        # Without the registry, which would log this as a fault of the tool.
        async with asyncio.timeout(case.tool.manifest.timeout_ms / 1000):
            response: Any = await case.tool.handler(arguments, case.context())
    except ToolError as error:
        return fail_from(error)
    except Exception:  # noqa: BLE001 - any failure means that there is no response
        return None
    if response is None or isinstance(response, ToolResponse):
        return response
    return ok(response)


def _same(one: ToolResponse, other: ToolResponse) -> bool:
    """Return whether the model would get the same response."""
    return same_json(one.data, other.data) and one.failure == other.failure and one.intents == other.intents


def unknown_argument_problems(case: ExampleCase) -> Iterator[str]:
    """Yield every object in the arguments that accepts an unknown member."""
    for path, _ in objects(case.arguments()):
        arguments = case.arguments()
        at(arguments, path)[_UNKNOWN] = True
        if run_async(call_tool(case.tool, arguments, case.context())).reached:
            yield (
                f"{pointer(*path, _UNKNOWN)} is accepted and reaches the handler; "
                'set "additionalProperties": false in the schema of that object, and list its properties'
            )


def time_problems(case: ExampleCase, best_of: int) -> Iterator[str]:
    """Yield a problem if even the fastest of a few runs exceeds the latency budget."""
    budget = case.tool.manifest.latency_budget_ms
    fastest = math.inf
    for _ in range(case.tool.runs(best_of)):
        fastest = min(fastest, case.run().seconds * 1000)
        if fastest <= budget:
            return
    yield f"it took {fastest:.0f} ms at best, but latencyBudgetMs is {budget}"


def cancellation_problems(case: ExampleCase, grace_ms: float) -> Iterator[str]:
    """Yield a problem if a call does not end when it is cancelled; several moments are tried."""
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
            yield f"cancelled after {moment * 1000:.0f} ms, {_cancellation_problem(task, grace_ms)}"
            return


async def _moments(case: ExampleCase) -> list[float]:
    """Return when to cancel, in seconds: at the first step, and later too if the tool may run repeatedly."""
    if not case.tool.repeatable:
        return [0.0]
    whole = (await run_once(case.tool, case.completed(), case.context())).seconds
    return [0.0, whole / 3, whole * 2 / 3]


async def _cancelled(case: ExampleCase, moment: float, grace_ms: float) -> asyncio.Task[ToolResponse] | None:
    """Return the call, cancelled at that moment; None if it had ended by then."""
    task = asyncio.create_task(invocation(case.tool, case.completed(), case.context()))
    await asyncio.sleep(moment)
    if task.done():
        return None
    task.cancel()
    await asyncio.wait({task}, timeout=grace_ms / 1000)
    return task


def _cancellation_problem(task: asyncio.Task[ToolResponse], grace_ms: float) -> str:
    if not task.done():
        return (
            f"the call still ran {grace_ms:.0f} ms later; do not catch asyncio.CancelledError, and keep "
            "cleanup short"
        )
    return (
        f"the call returned {report.response(task.result())}; the cancellation was swallowed; catch "
        "Exception rather than BaseException, or raise it again"
    )


def blocking_problems(case: ExampleCase, limit_ms: float, best_of: int) -> Iterator[str]:
    """Yield a problem if even the best of a few runs blocks the loop for longer than the limit."""
    blocks: list[LoopBlock] = []
    for _ in range(case.tool.runs(best_of)):
        blocks.append(run_async(_watched(case)))
        if blocks[-1].ms <= limit_ms:
            return
    best = min(blocks)
    place = f" at {best.place}" if best.place else ""
    yield (
        f"the handler blocked the loop for {best.ms:.0f} ms, {best.how}{place}; "
        f"the limit is {limit_ms:.0f} ms; await I/O, move computation into asyncio.to_thread, "
        "or make execute a plain def"
    )


async def _watched(case: ExampleCase) -> LoopBlock:
    arguments, context = case.arguments(), case.context()
    async with LoopWatch(case.tool.source.folder) as watch:
        await call_tool(case.tool, arguments, context)
    return watch.longest

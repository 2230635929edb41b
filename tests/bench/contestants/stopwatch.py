"""What one call costs a contestant, once it is warm."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bench.contestants.job import ARGUMENTS, WRONG, found

Answer = Callable[[str, int], Awaitable[str]]
"""Answers a call, given as JSON, with JSON; the number tells one call from the next."""

WARM_UP = 300
REPEATS = 9
REPEAT_SECONDS = 0.05
# More would overflow the queue of the audit, which would then have less to do.
MOST = 4000


class Cost(NamedTuple):
    """Microseconds of one call."""

    us: float
    """CPU time of the whole process, its other threads and what they do later included."""
    path_us: float
    """CPU time of the event loop's thread until the result is there."""
    wall_us: float


def _nothing() -> None:
    pass


async def cost(answer: Answer, first: int, calls: int, settle: Callable[[], object] = _nothing) -> Cost:
    """The mean of some calls; `settle` does at once what other threads would do later."""
    settle()
    whole, path, wall = time.process_time(), time.thread_time(), time.perf_counter()
    for number in range(first, first + calls):
        await answer(ARGUMENTS, number)
    wall, path = time.perf_counter() - wall, time.thread_time() - path
    settle()
    whole = time.process_time() - whole
    return Cost(whole / calls * 1e6, path / calls * 1e6, wall / calls * 1e6)


def middle(costs: list[Cost]) -> Cost:
    """The median of each figure."""
    return Cost(*(statistics.median(figures) for figures in zip(*costs, strict=True)))


async def measure(answer: Answer, settle: Callable[[], object] = _nothing) -> None:
    """Warm up, measure, count what is refused, and print it as JSON."""
    if not found(await answer(ARGUMENTS, 0)):
        raise SystemExit("the result does not hold what was found")
    warm = await cost(answer, 0, WARM_UP, settle)
    calls = max(20, min(MOST, int(REPEAT_SECONDS * 1e6 / warm.wall_us)))
    taken = middle([await cost(answer, WARM_UP + repeat * calls, calls, settle) for repeat in range(REPEATS)])
    print(json.dumps({**taken._asdict(), "refused": await _refused(answer)}))


async def _refused(answer: Answer) -> int:
    """How many of the wrong arguments do not get through."""
    refused = 0
    for number, arguments in enumerate(WRONG.values()):
        try:
            # Numbers far behind those measured, and even ones, which begin a turn.
            refused += not found(await answer(arguments, 10**9 + 2 * number))
        except Exception:  # noqa: BLE001 - every contestant has its own way to refuse
            refused += 1
    return refused


def run(main: Awaitable[None]) -> None:
    """Run a contestant."""

    async def running() -> None:
        await main

    asyncio.run(running())

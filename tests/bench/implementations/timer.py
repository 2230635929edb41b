"""Measures the cost of one call of a warm implementation, in short interleaved turns."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bench.implementations.workload import ARGUMENTS, WRONG, found

Answer = Callable[[str, int, str], Awaitable[str]]
"""Answers a call, given as JSON, with JSON; a number and an id distinguish calls."""

WARM_UP = 300
REPEATS = 9

TURN_SECONDS = 0.02
"""The duration of a turn: longer than caches take to fill, and shorter than a change of machine speed."""

# As many as a store in memory keeps, as in a host that has run for a while.
SETTLED = 8000


class Cost(NamedTuple):
    """The cost of one call in microseconds."""

    us: float
    """CPU time of the whole process, including other threads and their later work."""
    path_us: float
    """CPU time of the event loop's thread until the result is available."""
    wall_us: float


def _nothing() -> None:
    pass


async def cost(
    answer: Answer, first: int, calls: int, flush_observers: Callable[[], object] = _nothing
) -> Cost:
    """The mean of some calls; `flush_observers` does at once what other threads would do later."""
    # The provider creates them; this is not part of a call.
    numbered = [(number, f"call_{number:010}") for number in range(first, first + calls)]
    flush_observers()
    whole, path, wall = time.process_time(), time.thread_time(), time.perf_counter()
    for number, call_id in numbered:
        await answer(ARGUMENTS, number, call_id)
    wall, path = time.perf_counter() - wall, time.thread_time() - path
    flush_observers()
    whole = time.process_time() - whole
    return Cost(whole / calls * 1e6, path / calls * 1e6, wall / calls * 1e6)


def middle(costs: list[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(*(statistics.median(figures) for figures in zip(*costs, strict=True)))


async def measure(answer: Answer, flush_observers: Callable[[], object] = _nothing) -> None:
    """Warm up, then measure a turn for every input line and print the result as JSON."""
    if not found(await answer(ARGUMENTS, 0, "call_first")):
        raise SystemExit("the result does not hold what was found")
    warm = await cost(answer, 0, WARM_UP, flush_observers)
    if counted := os.environ.get("BENCH_CALLS"):
        # Instructions are counted from outside, from one line of input to the next.
        _wait_for_line()
        await cost(answer, WARM_UP, int(counted), flush_observers)
        _wait_for_line()
        return
    calls = max(20, int(TURN_SECONDS * 1e6 / warm.wall_us) // 2 * 2)
    first = WARM_UP
    while first < SETTLED and warm.wall_us * SETTLED < 1e6:
        await cost(answer, first, calls, flush_observers)
        first += calls
    print(json.dumps({"refused": await _refused(answer)}), flush=True)
    for _ in sys.stdin:
        # The first calls of a turn do not count, because the other programs have evicted the caches.
        await cost(answer, first, few := max(2, calls // 20 * 2), flush_observers)
        taken = await cost(answer, first + few, calls, flush_observers)
        first += few + calls
        print(json.dumps(taken._asdict()), flush=True)


def _wait_for_line() -> None:
    """Print a line, and wait for one in return."""
    print(flush=True)
    sys.stdin.readline()


async def _refused(answer: Answer) -> int:
    """Return how many invalid arguments are rejected."""
    refused = 0
    for number, arguments in enumerate(WRONG.values()):
        try:
            # Even numbers begin a turn.
            refused += not found(await answer(arguments, 2 * number, f"call_wrong_{number}"))
        except Exception:  # noqa: BLE001 - every implementation has its own way to refuse
            refused += 1
    return refused


def run(main: Awaitable[None]) -> None:
    """Run an implementation."""

    async def running() -> None:
        await main

    asyncio.run(running())

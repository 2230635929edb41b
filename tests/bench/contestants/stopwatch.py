"""What one call costs a contestant, once it is warm: in short turns, beside the others."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bench.contestants.job import ARGUMENTS, WRONG, found

Answer = Callable[[str, int, str], Awaitable[str]]
"""Answers a call, given as JSON, with JSON; a number and an id tell one call from the next."""

WARM_UP = 300
REPEATS = 9

TURN_SECONDS = 0.02
"""How long a contestant works until it is the next one's turn: longer than caches take to fill, and shorter
than it takes a machine to become faster or slower."""

# As many as a store in memory keeps, so that it is measured as it is in a host that has run for a while.
SETTLED = 8000


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
    # A provider sends them; to make them is no part of a call.
    numbered = [(number, f"call_{number:010}") for number in range(first, first + calls)]
    settle()
    whole, path, wall = time.process_time(), time.thread_time(), time.perf_counter()
    for number, call_id in numbered:
        await answer(ARGUMENTS, number, call_id)
    wall, path = time.perf_counter() - wall, time.thread_time() - path
    settle()
    whole = time.process_time() - whole
    return Cost(whole / calls * 1e6, path / calls * 1e6, wall / calls * 1e6)


def middle(costs: list[Cost]) -> Cost:
    """The median of each figure."""
    return Cost(*(statistics.median(figures) for figures in zip(*costs, strict=True)))


async def measure(answer: Answer, settle: Callable[[], object] = _nothing) -> None:
    """Warm up, then measure a turn for every line that comes in; print what was found as JSON."""
    if not found(await answer(ARGUMENTS, 0, "call_first")):
        raise SystemExit("the result does not hold what was found")
    warm = await cost(answer, 0, WARM_UP, settle)
    calls = max(20, int(TURN_SECONDS * 1e6 / warm.wall_us) // 2 * 2)
    first = WARM_UP
    while first < SETTLED and warm.wall_us * SETTLED < 1e6:
        await cost(answer, first, calls, settle)
        first += calls
    print(json.dumps({"refused": await _refused(answer)}), flush=True)
    for _ in sys.stdin:
        # The first calls of a turn do not count: the others have emptied the caches meanwhile.
        await cost(answer, first, few := max(2, calls // 20 * 2), settle)
        taken = await cost(answer, first + few, calls, settle)
        first += few + calls
        print(json.dumps(taken._asdict()), flush=True)


async def _refused(answer: Answer) -> int:
    """How many of the wrong arguments do not get through."""
    refused = 0
    for number, arguments in enumerate(WRONG.values()):
        try:
            # Even numbers, which begin a turn.
            refused += not found(await answer(arguments, 2 * number, f"call_wrong_{number}"))
        except Exception:  # noqa: BLE001 - every contestant has its own way to refuse
            refused += 1
    return refused


def run(main: Awaitable[None]) -> None:
    """Run a contestant."""

    async def running() -> None:
        await main

    asyncio.run(running())

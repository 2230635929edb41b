"""Breakdown of the time of a governed call: JSON encoding, the policies, the observers and the kernel.

The share of a policy is the cost of a call with it minus the cost without it; all variants run interleaved.
What a call costs beyond `orjson` and the handler is governance; the kernel's share is what remains of it.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import orjson
from jackfield.runtime import Runtime

from bench.implementations.runtime import flush_observers, session_caller, started_runtime
from bench.implementations.timer import REPEATS, WARM_UP, Answer, cost
from bench.implementations.workload import TOOL, evidence

CALLS = 1500
TIMES = 2000
OTHERS = ("bans", "budgets", "loops", "clamping", "recovery", "latency")
"""Policies that can be disabled for this tool, besides the one against duplicates."""
WITHOUT: dict[str, tuple[str, ...]] = {"nothing": (), "duplicates": ("duplicates",), "others": OTHERS}
UNGOVERNED = "governance"


def microseconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(REPEATS):
        began = time.process_time()
        for _ in range(TIMES):
            work()
        taken.append((time.process_time() - began) / TIMES * 1e6)
    return statistics.median(taken)


def ungoverned(runtime: Runtime) -> Answer:
    """Return a function that does only what a call cannot do without, with the fastest parser."""
    handler = runtime.registry.tools[TOOL].handler
    context: Any = None

    async def answer(arguments: str, _: int, __: str) -> str:
        response = await handler(orjson.loads(arguments), context)
        return orjson.dumps(response.data).decode()

    return answer


async def switched() -> dict[str, float]:
    """Return what a call with everything costs beyond one without observers, policies or any governance."""
    async with AsyncExitStack() as stack:
        runtimes = {
            name: await stack.enter_async_context(started_runtime(without=off))
            for name, off in WITHOUT.items()
        }
        runtimes["observers"] = await stack.enter_async_context(started_runtime(observed=False))
        answers = {
            name: session_caller(each, await each.open_session("text", user="ada"))
            for name, each in runtimes.items()
        }
        runtimes[UNGOVERNED] = runtimes["nothing"]
        answers[UNGOVERNED] = ungoverned(runtimes[UNGOVERNED])
        taken: dict[str, list[float]] = {name: [] for name in answers}
        for answer in answers.values():
            await cost(answer, 0, WARM_UP)
        for first in range(WARM_UP, WARM_UP + REPEATS * CALLS, CALLS):
            for name, answer in answers.items():
                spent = await cost(answer, first, CALLS, partial(flush_observers, runtimes[name]))
                taken[name].append(spent.us)
    return {
        name: statistics.median(whole - less for whole, less in zip(taken["nothing"], costs, strict=True))
        for name, costs in taken.items()
    }


async def main() -> None:
    answer = evidence(5)
    written = orjson.dumps(answer)
    saved = await switched()
    found = {
        "`json.dumps` of the five results, as in the plain call": microseconds(lambda: json.dumps(answer)),
        "`orjson.dumps` of the same results, as in Jackfield": microseconds(lambda: orjson.dumps(answer)),
        "decoding the bytes": microseconds(written.decode),
        "the duplicates policy": saved["duplicates"],
        f"each of {len(OTHERS)} other policies, on average": saved["others"] / len(OTHERS),
        "audit and metrics": saved["observers"],
        "the kernel": saved[UNGOVERNED] - sum(saved[part] for part in ("duplicates", "others", "observers")),
        "**governance beyond `orjson` and `await`**": saved[UNGOVERNED],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())

"""Cost of a call in a registry of many tools: calls of one of them, and calls spread over all.

The first shows whether the path searches the registry. The second also uses the validator and policy chain of
every tool, so it only adds cache misses.
"""

from __future__ import annotations

import asyncio
import json

from bench.implementations.runtime import flush_observers, session_caller, started_runtime
from bench.implementations.timer import REPEATS, cost, middle
from bench.implementations.workload import TOOL

CALLS = 2000


async def main() -> None:
    async with started_runtime() as runtime:
        taken = {}
        for name, tools in (("one", (TOOL,)), ("spread", tuple(runtime.registry.tools))):
            answer = session_caller(runtime, await runtime.open_session("text", user="ada"), tools)
            # The first calls do not count: a chain is composed at a tool's first call in a session.
            costs = [
                await cost(answer, repeat * CALLS, CALLS, lambda: flush_observers(runtime))
                for repeat in range(REPEATS + 1)
            ]
            taken[name] = middle(costs[1:]).us
        print(json.dumps({**taken, "tools": len(runtime.registry.tools)}))


if __name__ == "__main__":
    asyncio.run(main())

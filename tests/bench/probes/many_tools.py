"""What a call costs in a registry of many tools: calls of one of them, and calls spread over all.

The first says whether anything on the path looks through the registry. The second also touches the validator
and the chain of policies of every tool, so what it adds is the processor's cache and nothing else.
"""

from __future__ import annotations

import asyncio
import json

from bench.contestants.hosting import answering, settle, started
from bench.contestants.job import TOOL
from bench.contestants.stopwatch import REPEATS, cost, middle

CALLS = 2000


async def main() -> None:
    async with started() as runtime:
        taken = {}
        for name, tools in (("one", (TOOL,)), ("spread", tuple(runtime.registry.tools))):
            answer = answering(runtime, await runtime.open_session("text", user="ada"), tools)
            # The first time is not counted: a chain is composed at a tool's first call in a session.
            costs = [
                await cost(answer, repeat * CALLS, CALLS, lambda: settle(runtime))
                for repeat in range(REPEATS + 1)
            ]
            taken[name] = middle(costs[1:]).us
        print(json.dumps({**taken, "tools": len(runtime.registry.tools)}))


if __name__ == "__main__":
    asyncio.run(main())

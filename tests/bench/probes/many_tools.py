"""Cost of a call in a registry of many tools: calls of one of them, and calls spread over all.

The first shows whether the path searches the registry. The second also uses the validator and policy chain of
every tool, so it only adds cache misses. Plain calls of the same handlers, with and without the same
validators, show how many of these misses are not Jackfield's.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from jackfield.registry.registry import RegisteredTool
from jackfield.runtime import Runtime

from bench.implementations.runtime import flush_observers, session_caller, started_runtime
from bench.implementations.timer import REPEATS, Answer, cost, middle
from bench.implementations.workload import TOOL

CALLS = 2000


def plain_caller(tools: tuple[RegisteredTool, ...], *, validated: bool) -> Answer:
    """Return a function that answers calls without any governance, each with the next tool."""
    # Without the tools themselves, so that a plain call touches nothing else of them.
    handlers = [tool.handler for tool in tools]
    checks = [tool.arguments.is_valid for tool in tools] if validated else []
    several = len(tools)

    async def answer(arguments: str, number: int, _: str) -> str:
        args = json.loads(arguments)
        if checks and not checks[number % several](args):
            raise SystemExit("the arguments are not valid")
        context: Any = None
        return json.dumps((await handlers[number % several](args, context)).data)

    return answer


async def measured(runtime: Runtime, answer: Answer) -> float:
    """Return the CPU time of one call in microseconds."""
    # The first calls do not count: a chain is composed at a tool's first call in a session.
    costs = [
        await cost(answer, repeat * CALLS, CALLS, lambda: flush_observers(runtime))
        for repeat in range(REPEATS + 1)
    ]
    return middle(costs[1:]).us


async def main() -> None:
    async with started_runtime() as runtime:
        taken, tools = {}, runtime.registry.tools
        for name, called in (("one", (TOOL,)), ("spread", tuple(tools))):
            session = await runtime.open_session("text", user="ada")
            taken[name] = await measured(runtime, session_caller(runtime, session, called))
        # Afterwards, because a validator is compiled at a tool's first call.
        for name, validated in (("handlers", False), ("validated", True)):
            answer = plain_caller(tuple(tools.values()), validated=validated)
            taken[name] = await measured(runtime, answer)
        print(json.dumps({**taken, "tools": len(tools)}))


if __name__ == "__main__":
    asyncio.run(main())

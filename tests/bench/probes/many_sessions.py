"""Cost of a call while many sessions are open: calls of one of them, and calls spread over all."""

from __future__ import annotations

import asyncio
import json
import os

from bench.implementations.runtime import flush_observers, session_caller, started_runtime
from bench.implementations.timer import REPEATS, Answer, cost, middle

CALLS = 2000


async def main() -> None:
    async with started_runtime() as runtime:
        sessions = [
            await runtime.open_session("text", user=f"user_{number}")
            for number in range(int(os.environ["BENCH_SESSIONS"]))
        ]
        callers = [session_caller(runtime, session) for session in sessions]
        several = len(callers)

        async def spread(arguments: str, number: int, call_id: str) -> str:
            # Both calls of a turn go to the same session.
            return await callers[number // 2 % several](arguments, number, call_id)

        answers: dict[str, Answer] = {"one": callers[0], "spread": spread}
        for caller in callers:
            # The chain of policies is composed at a tool's first call in a session, which is not counted.
            await cost(caller, 0, 2, lambda: flush_observers(runtime))
        taken = {}
        for name, answer in answers.items():
            costs = [
                await cost(answer, (repeat + 1) * CALLS, CALLS, lambda: flush_observers(runtime))
                for repeat in range(REPEATS + 1)
            ]
            taken[name] = middle(costs[1:]).us
    print(json.dumps(taken))


if __name__ == "__main__":
    asyncio.run(main())

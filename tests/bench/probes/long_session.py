"""What a call costs in the first and in the last turns of sessions of a thousand turns."""

from __future__ import annotations

import asyncio
import json

from bench.contestants.hosting import answering, settle, started
from bench.contestants.stopwatch import cost

TURNS = 1000
LOOKED_AT = 50
SESSIONS = 12


async def main() -> None:
    async with started() as runtime:

        async def session() -> tuple[float, float]:
            answer = answering(runtime, await runtime.open_session("text", user="ada"))
            # Those in between are measured too, so that the last find everything as the first did.
            costs = [
                await cost(answer, first, 2 * LOOKED_AT, lambda: settle(runtime))
                for first in range(0, 2 * TURNS, 2 * LOOKED_AT)
            ]
            return costs[0].us, costs[-1].us

        await session()
        taken = [await session() for _ in range(SESSIONS)]
    first, last = (sorted(costs)[len(costs) // 2] for costs in zip(*taken, strict=True))
    print(json.dumps({"first": first, "last": last}))


if __name__ == "__main__":
    asyncio.run(main())

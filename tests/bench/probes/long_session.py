"""What a call costs in the first, some middle and the last turns of sessions of a thousand turns."""

from __future__ import annotations

import asyncio
import json

from bench.contestants.hosting import answering, settle, started
from bench.contestants.stopwatch import cost

TURNS = 1000
LOOKED_AT = 50
SESSIONS = 12
SHOWN = (50, 250, 500, 750, 1000)
"""The last turns of the stretches that are told."""


async def main() -> None:
    async with started() as runtime:

        async def session() -> list[float]:
            answer = answering(runtime, await runtime.open_session("text", user="ada"))
            # All are measured, so that the last find everything as the first did.
            costs = [
                await cost(answer, first, 2 * LOOKED_AT, lambda: settle(runtime))
                for first in range(0, 2 * TURNS, 2 * LOOKED_AT)
            ]
            return [each.us for each in costs]

        await session()
        taken = [await session() for _ in range(SESSIONS)]
    middle = [sorted(costs)[len(costs) // 2] for costs in zip(*taken, strict=True)]
    shown = {f"{end - LOOKED_AT + 1} to {end}": middle[end // LOOKED_AT - 1] for end in SHOWN}
    print(json.dumps(shown))


if __name__ == "__main__":
    asyncio.run(main())

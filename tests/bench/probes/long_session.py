"""Cost of a call in the first, some middle and the last turns of sessions of a thousand turns."""

from __future__ import annotations

import asyncio
import json

from bench.implementations.runtime import flush_observers, session_caller, started_runtime
from bench.implementations.timer import cost

TURNS = 1000
LOOKED_AT = 50
SESSIONS = 12
SHOWN = (50, 250, 500, 750, 1000)
"""The last turn of each reported range."""


async def main() -> None:
    async with started_runtime() as runtime:

        async def session() -> list[float]:
            answer = session_caller(runtime, await runtime.open_session("text", user="ada"))
            # All turns are measured, so that the last ones have the same conditions as the first.
            costs = [
                await cost(answer, first, 2 * LOOKED_AT, lambda: flush_observers(runtime))
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

"""The job: a number of frames from the model, as fast as they arrive, and as many to it."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable

FRAMES = 4000
FRAME = bytes(range(256)) * 3 + bytes(192)
"""20 ms of PCM16 at 24 kHz."""

PORT = int(os.environ.get("BENCH_PORT", "0"))


def measure(
    program: Callable[[], Awaitable[tuple[Callable[[], Awaitable[int]], Callable[[], Awaitable[None]]]]],
) -> None:
    """Run both directions and print the CPU time of a frame in microseconds.

    The program connects and returns a function that receives `FRAMES` frames and returns their bytes, and one
    that sends `FRAMES` frames and returns when the other side has them all.
    """

    async def run() -> dict[str, float]:
        take, give = await program()
        figures = {}
        # The first pass is a warm-up.
        for _ in range(2):
            began = time.process_time()
            taken = await take()
            figures["in"] = (time.process_time() - began) / FRAMES * 1e6
            assert taken == FRAMES * len(FRAME), taken
            began = time.process_time()
            await give()
            figures["out"] = (time.process_time() - began) / FRAMES * 1e6
        return figures

    print(json.dumps(asyncio.run(run())), flush=True)
    # Connections end with the process, after the measurement.
    os._exit(0)

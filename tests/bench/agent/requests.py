"""The held-out requests of the local agent, each asked in a session of its own: how many it serves right."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import time
from importlib import import_module
from typing import Any


async def main() -> None:
    # They stand beside the agent's own tests, which hold it to a floor.
    held_out: Any = import_module("local_held_out")
    sessions: Any = import_module("local_session")
    mind, modes = await thinking()
    try:
        # The first answer loads the models.
        await sessions.tried(held_out.REQUESTS[0], mind)
        right, seconds = 0, []
        for request in held_out.REQUESTS:
            began = time.perf_counter()
            right += not await sessions.tried(request, mind)
            seconds.append((time.perf_counter() - began) / (len(request.before) + 1))
        talk = [await calls(sessions, said, mode, mind) for mode in modes for said in held_out.SMALL_TALK]
    finally:
        if mind is not None:
            await mind.close()
    found = {
        "right": right,
        "requests": len(held_out.REQUESTS),
        "called": sum(talk),
        "lines": len(talk),
        "seconds": statistics.median(seconds),
    }
    print(json.dumps(found))


async def thinking() -> tuple[Any, tuple[str, ...]]:
    """Who answers, None being the planner, and the modes in which small talk is tried."""
    if os.environ["BENCH_MIND"] == "planner":
        return None, ("text", "voice")
    from jackfield_local.llama.mind import Llama
    from jackfield_local.options import Options

    now = import_module("local_requests").NOW
    options = Options(
        mind="llama", model_path=os.environ["JACKFIELD_TEST_GGUF"], time_zone="Europe/Berlin", threads=1
    )
    return Llama(options, clock=lambda: now), ("text",)


async def calls(sessions: Any, said: str, mode: str, mind: Any) -> bool:
    """Whether small talk led to a call."""
    async with sessions.session(mode, mind) as talk:
        await talk.says(said)
        return bool(talk.calls)


if __name__ == "__main__":
    asyncio.run(main())

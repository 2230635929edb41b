"""The held-out requests of the local agent, each asked in a session of its own: how many it serves right."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from importlib import import_module
from typing import Any


async def main() -> None:
    # They stand beside the agent's own tests, which hold it to a floor.
    held_out: Any = import_module("local_held_out")
    sessions: Any = import_module("local_session")
    # The first answer loads the models.
    await sessions.tried(held_out.REQUESTS[0])
    right, seconds = 0, []
    for request in held_out.REQUESTS:
        began = time.perf_counter()
        right += not await sessions.tried(request)
        seconds.append((time.perf_counter() - began) / (len(request.before) + 1))
    modes = ("text", "voice")
    talk = [await calls(sessions, said, mode) for mode in modes for said in held_out.SMALL_TALK]
    found = {
        "right": right,
        "requests": len(held_out.REQUESTS),
        "called": sum(talk),
        "lines": len(talk),
        "seconds": statistics.median(seconds),
    }
    print(json.dumps(found))


async def calls(sessions: Any, said: str, mode: str) -> bool:
    """Whether small talk led to a call."""
    async with sessions.session(mode) as talk:
        await talk.says(said)
        return bool(talk.calls)


if __name__ == "__main__":
    asyncio.run(main())

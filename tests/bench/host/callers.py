"""Callers: each sends an audio frame every 20 milliseconds, and counts and times the frames it gets back."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections import deque
from typing import NamedTuple

import uvloop
from websockets.asyncio.client import ClientConnection, connect

FRAME = bytes(range(240)) * 4
FRAME_SECONDS = 0.02


class Counted(NamedTuple):
    """What one caller sent and got back, and how long each frame took, in seconds."""

    sent: int
    taken: int
    seconds: list[float]


async def call(url: str, seconds: float, delay: float, ready: asyncio.Barrier) -> Counted:
    """Make one call; it begins after a delay, because real callers do not speak in step."""
    async with connect(url, compression=None, origin=f"http://{url.split('/')[2]}") as socket:  # type: ignore[arg-type]
        if "/ws/" in url:
            await socket.send(json.dumps({"type": "start"}))
            while json.loads(await socket.recv())["type"] != "session":
                pass
        if await ready.wait() == 0:
            print("ready", flush=True)
        await asyncio.sleep(delay)
        # The provider echoes every frame, so the oldest one that is under way is the next to come back.
        under_way: deque[float] = deque()
        taking = asyncio.create_task(take(socket, under_way))
        sent = await speak(socket, seconds, under_way)
        # Frames in flight get a moment to arrive.
        await asyncio.sleep(2.0)
        taking.cancel()
        waits = await taking
        return Counted(sent, len(waits), waits)


async def speak(socket: ClientConnection, seconds: float, under_way: deque[float]) -> int:
    began = time.perf_counter()
    frames = int(seconds / FRAME_SECONDS)
    for count in range(frames):
        # The time at which it is due, so that a caller that is late itself does not hide a wait.
        under_way.append(began + count * FRAME_SECONDS)
        await socket.send(FRAME)
        await asyncio.sleep(max(0.0, began + (count + 1) * FRAME_SECONDS - time.perf_counter()))
    return frames


async def take(socket: ClientConnection, under_way: deque[float]) -> list[float]:
    waits: list[float] = []
    try:
        async for message in socket:
            if isinstance(message, bytes):
                waits.append(time.perf_counter() - under_way.popleft())  # noqa: PERF401 - kept if cancelled
    except asyncio.CancelledError:
        pass
    return waits


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--callers", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=5.0)
    asked = parser.parse_args()
    ready = asyncio.Barrier(asked.callers)
    calls = [
        call(asked.url, asked.seconds, FRAME_SECONDS * number / asked.callers, ready)
        for number in range(asked.callers)
    ]
    counts = await asyncio.gather(*calls)
    waits = [1000 * wait for each in counts for wait in each.seconds]
    percentiles = statistics.quantiles(waits, n=100, method="inclusive") if len(waits) > 1 else [0.0] * 99
    figures = {
        "sent": sum(each.sent for each in counts),
        "taken": sum(each.taken for each in counts),
        "p50_ms": percentiles[49],
        "p99_ms": percentiles[98],
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    uvloop.run(main())

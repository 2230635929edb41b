"""Callers: each sends an audio frame every 20 milliseconds and counts the frames it gets back."""

from __future__ import annotations

import argparse
import asyncio
import json
import time

import uvloop
from websockets.asyncio.client import ClientConnection, connect

FRAME = bytes(range(240)) * 4
FRAME_SECONDS = 0.02


async def call(url: str, seconds: float, ready: asyncio.Barrier) -> tuple[int, int]:
    """Return how many frames one caller sent and how many it got back."""
    async with connect(url, compression=None, origin=f"http://{url.split('/')[2]}") as socket:  # type: ignore[arg-type]
        if "/ws/" in url:
            await socket.send(json.dumps({"type": "start"}))
            while json.loads(await socket.recv())["type"] != "session":
                pass
        if await ready.wait() == 0:
            print("ready", flush=True)
        taking = asyncio.create_task(take(socket))
        sent = await speak(socket, seconds)
        # Frames in flight get a moment to arrive.
        await asyncio.sleep(2.0)
        taking.cancel()
        return sent, await taking


async def speak(socket: ClientConnection, seconds: float) -> int:
    began = time.perf_counter()
    frames = int(seconds / FRAME_SECONDS)
    for count in range(frames):
        await socket.send(FRAME)
        await asyncio.sleep(max(0.0, began + (count + 1) * FRAME_SECONDS - time.perf_counter()))
    return frames


async def take(socket: ClientConnection) -> int:
    taken = 0
    try:
        async for message in socket:
            taken += isinstance(message, bytes)
    except asyncio.CancelledError:
        pass
    return taken


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--callers", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=5.0)
    asked = parser.parse_args()
    ready = asyncio.Barrier(asked.callers)
    calls = [call(asked.url, asked.seconds, ready) for _ in range(asked.callers)]
    counts = await asyncio.gather(*calls)
    print(json.dumps({"sent": sum(sent for sent, _ in counts), "taken": sum(taken for _, taken in counts)}))


if __name__ == "__main__":
    uvloop.run(main())

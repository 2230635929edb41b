"""The Realtime protocol, handwritten with the standard library."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable

from websockets.asyncio.client import connect

from bench.relays.workload import FRAME, FRAMES, PORT, measure


async def program() -> tuple[Callable[[], Awaitable[int]], Callable[[], Awaitable[None]]]:
    socket = await connect(f"ws://127.0.0.1:{PORT}/v1/realtime", compression=None, max_size=None)

    async def take() -> int:
        await socket.send(json.dumps({"type": "response.create"}))
        taken = 0
        while True:
            event = json.loads(await socket.recv())
            if event["type"] == "response.output_audio.delta":
                taken += len(base64.b64decode(event["delta"]))
            elif event["type"] == "response.done":
                return taken

    async def give() -> None:
        for _ in range(FRAMES):
            audio = base64.b64encode(FRAME).decode()
            await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
        await socket.recv()

    return take, give


if __name__ == "__main__":
    measure(program)

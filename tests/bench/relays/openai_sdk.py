"""The SDK as in its documentation: an object for every event, a method call for every frame."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable

from openai import AsyncOpenAI

from bench.relays.workload import FRAME, FRAMES, PORT, measure


async def program() -> tuple[Callable[[], Awaitable[int]], Callable[[], Awaitable[None]]]:
    client = AsyncOpenAI(api_key="none", base_url=f"http://127.0.0.1:{PORT}/v1")
    connection = await client.realtime.connect(model="m").enter()

    async def take() -> int:
        await connection.response.create()
        taken = 0
        async for event in connection:
            if event.type == "response.output_audio.delta":
                taken += len(base64.b64decode(event.delta))
            elif event.type == "response.done":
                return taken
        return taken

    async def give() -> None:
        for _ in range(FRAMES):
            await connection.input_audio_buffer.append(audio=base64.b64encode(FRAME).decode())
        await connection.recv()

    return take, give


if __name__ == "__main__":
    measure(program)

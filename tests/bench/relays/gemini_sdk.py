"""The SDK as in its documentation: an object for every message, and 16 kHz without resampling."""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from google.genai import Client
from google.genai.types import Blob, HttpOptions

from bench.relays.workload import FRAME, FRAMES, PORT, measure

OPEN = AsyncExitStack()
OUT = FRAME[: len(FRAME) * 2 // 3]


async def program() -> tuple[Callable[[], Awaitable[int]], Callable[[], Awaitable[None]]]:
    trusted = ssl.create_default_context(cafile=os.environ["BENCH_CA"])
    address = f"https://127.0.0.1:{PORT}"
    shared = {"ssl": trusted, "verify": trusted, "compression": None}
    client = Client(api_key="none", http_options=HttpOptions(base_url=address, async_client_args=shared))
    session = await OPEN.enter_async_context(client.aio.live.connect(model="gemini-3.8-live"))

    async def take() -> int:
        await session.send_client_content(turns=[{"role": "user", "parts": [{"text": "Go."}]}])
        taken = 0
        async for message in session.receive():
            turn = message.server_content and message.server_content.model_turn
            for part in (turn and turn.parts) or ():
                taken += len((part.inline_data and part.inline_data.data) or b"")
        return taken

    async def give() -> None:
        for _ in range(FRAMES):
            await session.send_realtime_input(audio=Blob(data=OUT, mime_type="audio/pcm;rate=16000"))
        async for message in session.receive():
            if message.voice_activity:
                return

    return take, give


if __name__ == "__main__":
    measure(program)

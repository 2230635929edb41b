"""Jackfield's transport to Gemini, which also resamples outgoing audio from 24 kHz to 16 kHz."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

from jackfield.transport.events import Audio, SpeechStarted, TurnComplete
from jackfield.transport.protocol import ConnectionConfig
from jackfield_gemini.settings import GeminiSettings
from jackfield_gemini.transport import GeminiTransport

from bench.relays.workload import FRAME, FRAMES, PORT, measure


async def program() -> tuple[Callable[[], Awaitable[int]], Callable[[], Awaitable[None]]]:
    settings = GeminiSettings(base_url=f"https://127.0.0.1:{PORT}", ca_file=os.environ["BENCH_CA"])
    transport = GeminiTransport(settings)
    connection = await transport.connect(ConnectionConfig("voice", "", {}))
    events = connection.events()

    async def take() -> int:
        await connection.send_text("Go.")
        taken = 0
        async for event in events:
            if isinstance(event, Audio):
                taken += len(event.pcm)
            elif isinstance(event, TurnComplete):
                return taken
        return taken

    async def give() -> None:
        for _ in range(FRAMES):
            await connection.send_audio(FRAME)
        async for event in events:
            if isinstance(event, SpeechStarted):
                return

    return take, give


if __name__ == "__main__":
    measure(program)

"""Jackfield's transport to OpenAI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from jackfield.transport.events import Audio, Transcript, TurnComplete
from jackfield.transport.protocol import ConnectionConfig
from jackfield_openai.settings import OpenAISettings
from jackfield_openai.transport import OpenAITransport

from bench.relays.workload import FRAME, FRAMES, PORT, measure


async def program() -> tuple[Callable[[], Awaitable[int]], Callable[[], Awaitable[None]]]:
    transport = OpenAITransport(OpenAISettings(base_url=f"http://127.0.0.1:{PORT}/v1"))
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
            if isinstance(event, Transcript):
                return

    return take, give


if __name__ == "__main__":
    measure(program)

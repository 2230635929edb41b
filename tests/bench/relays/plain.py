"""Unchanged frames, through the library that all implementations use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from websockets.asyncio.client import connect

from bench.relays.workload import FRAME, FRAMES, PORT, measure


async def program() -> tuple[Callable[[], Awaitable[int]], Callable[[], Awaitable[None]]]:
    socket = await connect(f"ws://127.0.0.1:{PORT}/plain", compression=None, max_size=None)

    async def take() -> int:
        await socket.send("go")
        taken = 0
        for _ in range(FRAMES):
            taken += len(await socket.recv())
        return taken

    async def give() -> None:
        for _ in range(FRAMES):
            await socket.send(FRAME)
        await socket.recv()

    return take, give


if __name__ == "__main__":
    measure(program)

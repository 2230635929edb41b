"""What a session costs that nobody speaks in, and what is left of those that have ended."""

from __future__ import annotations

import asyncio
import resource
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect

from bench.clock import table
from bench.hosting.programs import Program, running

SESSIONS = 1000
CHURN = 10_000


def run() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    rows = []
    with running("bench.hosting.bare") as bare:
        rows.append(("a bare Starlette socket", held(bare, "/echo", start=False)))
    with tempfile.TemporaryDirectory() as folder, running("bench.hosting.provider") as provider:
        env = {"BENCH_PORT": str(provider.port), "OPENAI_API_KEY": "none"}
        with running("bench.hosting.ours", Path(folder), env) as ours:
            rows.append(("a socket at the host that has said nothing", held(ours, "/ws/text", start=False)))
            rows.append(("**an idle text session**", held(ours, "/ws/text", start=True)))
            left = churned(ours)
    print(f"## Memory of an idle session, over {SESSIONS} of them\n")
    table(("what", "kB"), [(name, f"{size / 1024:.0f}") for name, size in rows])
    print(f"Sessions opened and ended, and the megabytes the host holds then: {left}.\n")


def held(program: Program, path: str, *, start: bool) -> float:
    """Bytes for each of many connections."""
    return asyncio.run(_held(program, path, start=start))


async def _held(program: Program, path: str, *, start: bool) -> float:
    await _many(program, path, 50, start=start, between=_nothing)
    before = program.memory
    grown = 0

    async def look() -> None:
        nonlocal grown
        await asyncio.sleep(1.0)
        grown = program.memory - before

    await _many(program, path, SESSIONS, start=start, between=look)
    return grown / SESSIONS


async def _nothing() -> None: ...


async def _many(
    program: Program, path: str, count: int, *, start: bool, between: Callable[[], Awaitable[None]]
) -> None:
    sockets = [await _open(program, path, start=start) for _ in range(count)]
    await between()
    for socket in sockets:
        if start:
            await socket.send('{"type":"end"}')
        await socket.close()


async def _open(program: Program, path: str, *, start: bool) -> ClientConnection:
    origin = f"http://127.0.0.1:{program.port}"
    url = f"ws://127.0.0.1:{program.port}{path}"
    socket = await connect(url, compression=None, origin=origin, ping_interval=None)  # type: ignore[arg-type]
    if start:
        await socket.send('{"type":"start"}')
        await socket.recv()
    return socket


def churned(program: Program) -> str:
    """How much the host holds after so many sessions have come and gone."""

    async def churn() -> list[str]:
        seen = []
        for done in range(0, CHURN + 1, CHURN // 5):
            if done:
                for _ in range(CHURN // 5):
                    await _many(program, "/ws/text", 1, start=True, between=_nothing)
            seen.append(f"{done}: {program.memory / 1e6:.0f}")
        return seen

    return ", ".join(asyncio.run(churn()))

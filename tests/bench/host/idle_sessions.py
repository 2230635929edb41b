"""Memory of an idle session, and memory left after sessions have ended."""

from __future__ import annotations

import asyncio
import resource
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect

from bench.host.processes import Program, running
from bench.report import Report, RunOptions, Table

MEMORY = Table("memory", "The host", "what", {"kB": ".0f"})
CHURNED = Table("sessions", "The host", "sessions opened and ended", {"MB": ".0f"})
SESSIONS = 1000
CHURN, CHURN_FULL = 2_000, 10_000


def run(report: Report, asked: RunOptions) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    kept = {}
    with running("bench.host.bare_host") as bare:
        kept["a bare Starlette socket"] = held(bare, "/echo", start=False)
    with tempfile.TemporaryDirectory() as folder, running("bench.host.provider") as provider:
        env = {"BENCH_PORT": str(provider.port), "OPENAI_API_KEY": "none"}
        with running("bench.host.jackfield_host", Path(folder), env) as ours:
            kept["a socket at the host without a session"] = held(ours, "/ws/text", start=False)
            kept["**an idle text session**, with its connection to a provider"] = held(
                ours, "/ws/text", start=True
            )
            left = churned(ours, CHURN_FULL if asked.full else CHURN)
    caption = f"Private memory of the host per connection, measured with {SESSIONS:,} connections."
    report.table(MEMORY, caption, {name: (size / 1024,) for name, size in kept.items()})
    rows = {f"{count:,}": (size / 1e6,) for count, size in left.items()}
    report.table(
        CHURNED, "Memory of the host after this many sessions, opened and closed one after the other.", rows
    )


def held(program: Program, path: str, *, start: bool) -> float:
    """Return the bytes for each of many connections."""
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


def churned(program: Program, count: int) -> dict[int, int]:
    """Return the bytes that the host holds after many sessions have ended."""

    async def churn() -> dict[int, int]:
        seen = {0: program.memory}
        for done in range(count // 5, count + 1, count // 5):
            for _ in range(count // 5):
                await _many(program, "/ws/text", 1, start=True, between=_nothing)
            seen[done] = program.memory
        return seen

    return asyncio.run(churn())

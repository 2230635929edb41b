"""A host with ten thousand sockets open in which nobody speaks: what they take, and whether others notice."""

from __future__ import annotations

import asyncio
import resource
import tempfile
from pathlib import Path

from websockets.asyncio.client import ClientConnection

from bench.hosting import words
from bench.hosting.programs import Program, running
from bench.recording import Asked, Report, Table

CROWD = Table("crowd", "The host", "silent sockets", {"MB": ".0f", "the first word, ms": ".1f"})
SOCKETS = 10_000
AT_ONCE = 100


def run(report: Report, asked: Asked) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most <= SOCKETS:
        report.note(CROWD.section, f"This machine opens {most} files at most, too few for {SOCKETS} sockets.")
    count = min(SOCKETS, most // 2)
    with tempfile.TemporaryDirectory() as folder, running("bench.hosting.provider") as provider:
        env = {"BENCH_PORT": str(provider.port), "OPENAI_API_KEY": "none"}
        with running("bench.hosting.ours", Path(folder), env) as ours:
            rows = asyncio.run(_measured(ours, count))
    report.table(CROWD, "Memory of the host, and how long one who speaks waits.", rows)


async def _measured(host: Program, count: int) -> dict[str, tuple[float, float]]:
    async with words.connected(host.port) as speaker:
        await words.begun(speaker)
        rows = {"0": (host.memory / 1e6, await words.first_word(speaker))}
        silent: list[ClientConnection] = []
        while len(silent) < count:
            more = min(AT_ONCE, count - len(silent))
            silent += await asyncio.gather(*[words.connected(host.port) for _ in range(more)])
        rows[f"{count:,}"] = (host.memory / 1e6, await words.first_word(speaker))
        await speaker.send('{"type":"end"}')
        for socket in silent:
            # Nobody takes leave of ten thousand: what is to be seen has been seen.
            socket.transport.abort()
    return rows

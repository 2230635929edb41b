"""A host with ten thousand idle sockets: their memory, and the latency of other sessions."""

from __future__ import annotations

import asyncio
import resource
import tempfile
from pathlib import Path

from websockets.asyncio.client import ClientConnection

from bench.host import text_latency
from bench.host.processes import Program, running
from bench.report import Report, RunOptions, Table

IDLE_SOCKETS = Table("crowd", "The host", "silent sockets", {"MB": ".0f", "the first word, ms": ".1f"})
SOCKETS = 10_000
AT_ONCE = 100


def run(report: Report, asked: RunOptions) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most <= SOCKETS:
        report.note(
            IDLE_SOCKETS.section,
            f"This machine can open at most {most} files, too few for {SOCKETS} sockets.",
        )
    count = min(SOCKETS, most // 2)
    with tempfile.TemporaryDirectory() as folder, running("bench.host.provider") as provider:
        env = {"BENCH_PORT": str(provider.port), "OPENAI_API_KEY": "none"}
        with running("bench.host.jackfield_host", Path(folder), env) as ours:
            rows = asyncio.run(_measured(ours, count))
    report.table(IDLE_SOCKETS, "Memory of the host, and how long the active client waits.", rows)


async def _measured(host: Program, count: int) -> dict[str, tuple[float, float]]:
    async with text_latency.connected(host.port) as speaker:
        await text_latency.begun(speaker)
        rows = {"0": (host.memory / 1e6, await text_latency.first_word(speaker))}
        silent: list[ClientConnection] = []
        while len(silent) < count:
            more = min(AT_ONCE, count - len(silent))
            silent += await asyncio.gather(*[text_latency.connected(host.port) for _ in range(more)])
        rows[f"{count:,}"] = (host.memory / 1e6, await text_latency.first_word(speaker))
        await speaker.send('{"type":"end"}')
        for socket in silent:
            # The sockets are not closed one by one: the measurement is over.
            socket.transport.abort()
    return rows

"""Latency for a client: the start of its session, the first word, a tool, compared with an echo."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect

from bench.host.processes import running
from bench.report import Report, RunOptions, Table, rounds_text

WAITS = Table("waits", "The host", "what", {"ms": ".2f", "echo = 1": ".1f"})
TIMES = 20
MOST_ROUNDS = 3

Taken = dict[str, list[float]]


def run(report: Report, asked: RunOptions) -> None:
    rounds = min(asked.rounds, MOST_ROUNDS)
    taken: Taken = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder, running("bench.host.provider") as provider:
            env = {"BENCH_PORT": str(provider.port), "OPENAI_API_KEY": "none"}
            with (
                running("bench.host.bare_host") as bare,
                running("bench.host.jackfield_host", Path(folder), env) as ours,
            ):
                for name, milliseconds in asyncio.run(_measured(bare.port, ours.port, provider.port)).items():
                    taken.setdefault(name, []).append(milliseconds)
    rows = {}
    for name, base in BASES.items():
        ratios = [each / plain for each, plain in zip(taken[name], taken[base], strict=True)]
        rows[name] = (statistics.median(taken[name]), statistics.median(ratios))
    report.table(
        WAITS, f"How long a client waits; medians of {rounds_text(rounds)} of {TIMES} measurements.", rows
    )


CONNECT, ECHO = "an echo: connect, send, receive", "an echo: send, receive"
SESSION = "**session**: connect, `start`, `session`"
ASKED = "the same request through the SDK alone, to the first word"
WORD = "**first word**: `text` to `text_delta`, including the provider's time"
TOOL = "**tool**: `text` to the answer after a tool call, including two answers from the provider"
BASES = {CONNECT: CONNECT, SESSION: CONNECT, ECHO: ECHO, ASKED: ECHO, WORD: ECHO, TOOL: ECHO}


async def _measured(bare: int, ours: int, provider: int) -> dict[str, float]:
    async def connects() -> None:
        async with connect(f"ws://127.0.0.1:{bare}/echo", compression=None) as socket:
            await socket.send("x")
            await socket.recv()

    async def begins() -> None:
        async with connected(ours) as socket:
            await begun(socket)
            await socket.send('{"type":"end"}')

    taken = {CONNECT: await _median(connects), SESSION: await _median(begins)}
    async with connect(f"ws://127.0.0.1:{bare}/echo", compression=None) as socket:

        async def echoed() -> None:
            await socket.send("x")
            await socket.recv()

        taken[ECHO] = await _median(echoed)
    async with connected(ours) as socket:
        await begun(socket)
        taken[WORD] = await first_word(socket)
        taken[ASKED] = await _directly(provider)
        taken[TOOL] = await _median(lambda: _said(socket, "Use the tool.", "text_delta"))
    return taken


def connected(port: int) -> connect:
    """Connect a socket to the host."""
    origin = f"http://127.0.0.1:{port}"
    return connect(f"ws://127.0.0.1:{port}/ws/text", compression=None, origin=origin)  # type: ignore[arg-type]


async def begun(socket: ClientConnection) -> None:
    """Start a session."""
    await socket.send('{"type":"start"}')
    while json.loads(await socket.recv())["type"] != "session":
        pass


async def first_word(socket: ClientConnection) -> float:
    """Return the milliseconds until an answer begins."""
    return await _median(lambda: _said(socket, "Well?", "text_delta"))


async def _said(socket: ClientConnection, text: str, until: str) -> float:
    """Return the latency; the rest of the turn is awaited but not counted."""
    began = time.perf_counter()
    await socket.send(json.dumps({"type": "text", "text": text}))
    waited = 0.0
    while (kind := json.loads(await socket.recv())["type"]) != "turn_complete":
        if kind == until and not waited:
            waited = time.perf_counter() - began
    # The host limits the messages per second.
    await asyncio.sleep(0.1)
    return waited


async def _directly(port: int) -> float:
    os.environ.setdefault("OPENAI_API_KEY", "none")
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/last") as answer:  # noqa: ASYNC210 - before the clock runs
        request = json.load(answer)

    async def ask() -> None:
        stream = await client.chat.completions.create(**request)
        async for _ in stream:
            break
        await stream.close()

    return await _median(ask)


async def _median(act: Callable[[], Awaitable[float | None]]) -> float:
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        said = await act()
        taken.append((time.perf_counter() - began if said is None else said) * 1000)
    return statistics.median(taken)

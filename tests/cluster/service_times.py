"""The CPU times of single calls and messages, measured on a real host with PostgreSQL, and kept in a file.

    nox -s cluster -- --measure

Calls and messages come one after the other, so that each can be told from the next, and the CPU time that
the processes of the host and of the database have used in between is read from outside. The capacity model
and its simulation use these times.
"""

from __future__ import annotations

import asyncio
import json
import platform
import random
import statistics
import tempfile
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bench.host.processes import running
from bench.host.text_latency import begun, connected
from faults.database import Database
from faults.deployment import Host
from jackfield_scripted import ScriptedModel
from jackfield_scripted.openai import OpenAIServer

from cluster.cluster import ClusterDeployment
from cluster.throughput import Caller

FILE = Path(__file__).with_suffix(".json")

SAMPLES = 400
WARM_UP = 50
"""Calls and messages that are not counted: the first ones load modules and prepare statements."""

MESSAGES = 8
"""Messages of a session: what a message costs grows with those before it."""

WORDS = 60
"""Words of the model's answer to a message, each of which arrives by itself."""

PAUSE_SECONDS = 0.1
"""Between two messages: the host limits the messages of a client."""


class CpuTime(NamedTuple):
    """What one call or message cost, in microseconds."""

    host: int
    database: int


class ServiceTimes(NamedTuple):
    """The measured times; a draw returns those of one call or message."""

    call: list[CpuTime]
    session: list[CpuTime]
    """The start and the end of a text session, with its connection."""
    message: list[CpuTime]

    @classmethod
    def read(cls, file: Path = FILE) -> ServiceTimes:
        """Return the times of a file."""
        kept = json.loads(file.read_text("utf-8"))
        return cls(*([CpuTime(*each) for each in kept[kind]] for kind in cls._fields))

    def write(self, file: Path = FILE) -> None:
        """Write the times to a file, with what they depend on."""
        kept = {"python": platform.python_version(), "machine": platform.machine(), **self._asdict()}
        lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in kept.items())
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


@cache
def measured() -> ServiceTimes:
    """Return the times of the repository."""
    return ServiceTimes.read()


def mean(times: list[CpuTime]) -> tuple[float, float]:
    """Return the mean times of host and database."""
    return statistics.fmean(each.host for each in times), statistics.fmean(each.database for each in times)


def draw(chance: random.Random, times: list[CpuTime]) -> CpuTime:
    """Return the times of a random call or message."""
    return chance.choice(times)


def cpu_ns(pid: int) -> dict[int, int]:
    """Return the CPU time of every thread of a process and its children, in nanoseconds."""
    found: dict[int, int] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        found[int(task.name)] = int((task / "schedstat").read_text().split()[0])
        for child in (task / "children").read_text().split():
            found |= cpu_ns(int(child))
    return found


class Meter:
    """Measures what a host and a database use between two moments."""

    def __init__(self, host: int, database: int) -> None:
        self._processes = host, database
        self._before: list[dict[int, int]] = []

    def start(self) -> None:
        """Begin to count."""
        self._before = [cpu_ns(each) for each in self._processes]

    def stop(self) -> CpuTime:
        """Return what was used since then."""
        return CpuTime(*map(used_us, self._before, [cpu_ns(each) for each in self._processes]))


def used_us(before: dict[int, int], after: dict[int, int]) -> int:
    """Return the microseconds between two readings; a thread that ended in between is not counted."""
    return round(sum(now - before.get(thread, 0) for thread, now in after.items()) / 1000)


async def measure() -> ServiceTimes:
    """Measure calls and messages."""
    async with AsyncExitStack() as closing:
        database = closing.enter_context(Database.temporary(standby=False))
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        host = Host(ClusterDeployment(folder, database.store), 1)
        closing.push_async_callback(host.close)
        await host.start()
        caller = Caller(host)
        await caller.connect()
        closing.callback(caller.close)
        calls = await _calls(caller, Meter(host.pid, database.primary.pid))
        await host.kill()
        sessions, messages = await _conversations(database)
    return ServiceTimes(calls, sessions, messages)


async def _conversations(database: Database) -> tuple[list[CpuTime], list[CpuTime]]:
    """Return what sessions and their messages cost."""

    async def answer(model: ScriptedModel) -> None:
        for _ in range(MESSAGES):
            await model.hears()
            await model.says(" ".join(["word"] * WORDS), pieces=WORDS)

    count = (WARM_UP + SAMPLES) // MESSAGES
    async with AsyncExitStack() as closing:
        served = await closing.enter_async_context(OpenAIServer(*[answer] * count))
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        variables = {
            "BENCH_PORT": served.base_url.partition("127.0.0.1:")[2].partition("/")[0],
            "BENCH_STORE": "postgres",
            "JACKFIELD_POSTGRES_URL": database.url.replace("/jackfield?", "/postgres?"),
            "OPENAI_API_KEY": "none",
        }
        host = closing.enter_context(running("bench.host.jackfield_host", folder, variables))
        meter = Meter(host.pid, database.primary.pid)
        sessions, messages = [], []
        for _ in range(count):
            meter.start()
            async with connected(host.port) as socket:
                await begun(socket)
                await asyncio.sleep(PAUSE_SECONDS)
                opened = meter.stop()
                for _ in range(MESSAGES):
                    meter.start()
                    await socket.send('{"type":"text","text":"Well?"}')
                    while json.loads(await socket.recv())["type"] != "turn_complete":
                        pass
                    # What follows the answer, such as saving the session, belongs to the message.
                    await asyncio.sleep(PAUSE_SECONDS)
                    messages.append(meter.stop())
                meter.start()
                await socket.send('{"type":"end"}')
                await asyncio.sleep(PAUSE_SECONDS)
            ended = meter.stop()
            sessions.append(CpuTime(opened.host + ended.host, opened.database + ended.database))
    return sessions[WARM_UP // MESSAGES :], messages[WARM_UP:]


async def _calls(caller: Caller, meter: Meter) -> list[CpuTime]:
    """Return what calls cost."""
    found = []
    for _ in range(WARM_UP + SAMPLES):
        meter.start()
        await caller.call()
        found.append(meter.stop())
    return found[WARM_UP:]


def summary(times: ServiceTimes) -> str:
    """Return the times as a table of docs/scaling.md."""
    lines = ["| CPU time, us | mean | p50 | p90 | p99 |", "|---|---|---|---|---|"]
    for kind, samples in times._asdict().items():
        for part, values in (
            ("the host", [each.host for each in samples]),
            ("the database", [each.database for each in samples]),
        ):
            hundredths = statistics.quantiles(values, n=100)
            figures = (statistics.fmean(values), *(hundredths[at] for at in (49, 89, 98)))
            lines.append(f"| a {kind}, {part} | {' | '.join(f'{each:,.0f}' for each in figures)} |")
    return "\n".join(lines)

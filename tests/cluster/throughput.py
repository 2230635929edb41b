"""How many calls per second hosts and their store carry, and the CPU time of each call, by process.

    python -m cluster.throughput        (with tests on PYTHONPATH)

Callers, hosts and database share the cores of this machine, so the calls per second are a lower bound. The
CPU time of a call does not depend on that, and docs/scaling.md computes with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from faults.database import Database
from faults.deployment import NOTE, Host, Store

from cluster.cluster import ClusterDeployment
from cluster.cpu_share import limited

SECONDS = 5.0
CALLERS = 16


class Setup(NamedTuple):
    """A combination of processes and store."""

    name: str
    store: str
    hosts: int = 1
    workers: int = 1
    standby: bool = False
    share: float | None = None
    """The part of a core that each host may use; None for no limit."""


SETUPS = (
    Setup("one host, memory", "memory"),
    Setup("one host, SQLite", "sqlite"),
    Setup("one host with two workers, SQLite", "sqlite", workers=2),
    Setup("one host, PostgreSQL", "postgres"),
    Setup("two hosts, PostgreSQL", "postgres", hosts=2),
    Setup("two hosts, PostgreSQL with a synchronous standby", "postgres", hosts=2, standby=True),
)


class Figures(NamedTuple):
    """What was measured."""

    calls_per_second: float
    p50_ms: float
    p99_ms: float
    host_us: float
    """CPU time of all hosts for one call."""
    database_us: float
    """CPU time of the database servers for one call."""


class Caller:
    """One keep-alive connection that calls in its own session; it takes little of the cores."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._session = ""
        self._count = 0

    async def connect(self) -> None:
        """Open the connection."""
        self._reader, self._writer = await asyncio.open_connection(self._host.address, self._host.port)

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()

    async def call(self) -> None:
        """Make one call."""
        self._count += 1
        body = json.dumps({"arguments": {"call": f"t{id(self)}-{self._count}"}}).encode()
        headers = {"Host": "127.0.0.1", "Content-Type": "application/json", **self._host.headers}
        headers["Content-Length"] = str(len(body))
        if self._session:
            headers["Jackfield-Session"] = self._session
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._writer.write(f"POST /execute/{NOTE} HTTP/1.1\r\n{lines}\r\n".encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
        answer = json.loads(await self._reader.readexactly(size))
        if not head.startswith(b"http/1.1 200") or not answer["envelope"]["ok"]:
            raise RuntimeError(f"a call failed: {answer}")
        self._session = answer.get("token") or self._session

    async def run(self, until: float, waits: list[float]) -> None:
        """Call until a time, and collect how long each call took."""
        await self.connect()
        while (asked := time.monotonic()) < until:
            await self.call()
            waits.append(time.monotonic() - asked)
        self.close()


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its children, alive or ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(int(fields[place]) for place in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(cpu_seconds(int(child)) for child in children)


async def measure(setup: Setup, seconds: float = SECONDS, callers: int = CALLERS) -> Figures:
    """Run hosts and callers, and return the figures."""
    async with AsyncExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        servers = []
        store = Store("memory", {}) if setup.store == "memory" else None
        if setup.store == "postgres":
            database = closing.enter_context(Database.temporary(standby=setup.standby))
            servers = [each.pid for each in (database.primary, database.standby) if each is not None]
            store = database.store
        deployment = ClusterDeployment(folder, store)
        deployment.workers = setup.workers
        hosts = [Host(deployment, number + 1) for number in range(setup.hosts)]
        for host in hosts:
            closing.push_async_callback(host.close)
            await host.start()
            if setup.share is not None:
                closing.enter_context(limited(host.pid, setup.share))
        waits: list[float] = []
        made = [Caller(hosts[number % len(hosts)]) for number in range(callers)]
        await _call(made, min(2.0, seconds), [])
        before = [sum(map(cpu_seconds, pids)) for pids in ([host.pid for host in hosts], servers)]
        began = time.monotonic()
        await _call(made, seconds, waits)
        took = time.monotonic() - began
        after = [sum(map(cpu_seconds, pids)) for pids in ([host.pid for host in hosts], servers)]
    percentiles = statistics.quantiles(waits, n=100)
    host_us, database_us = ((now - then) / len(waits) * 1e6 for then, now in zip(before, after, strict=True))
    return Figures(len(waits) / took, percentiles[49] * 1e3, percentiles[98] * 1e3, host_us, database_us)


async def _call(callers: list[Caller], seconds: float, waits: list[float]) -> None:
    until = time.monotonic() + seconds
    await asyncio.gather(*(caller.run(until, waits) for caller in callers))


def table(setups: Iterable[Setup]) -> None:
    """Print the figures of some setups."""
    print("| setup | calls/s | p50, ms | p99, ms | hosts, us of CPU a call | database, us of CPU a call |")
    print("|---|---|---|---|---|---|")
    for setup in setups:
        figures = asyncio.run(measure(setup))
        print(
            f"| {setup.name} | {figures.calls_per_second:.0f} | {figures.p50_ms:.1f} | {figures.p99_ms:.1f} "
            f"| {figures.host_us:.0f} | {figures.database_us:.0f} |",
            flush=True,
        )


def compare(share: float, rounds: int) -> None:
    """Print what two hosts carry relative to one, each with a part of a core, in alternation."""
    ratios = []
    for _ in range(rounds):
        one, two = (
            asyncio.run(measure(Setup("limited", "postgres", hosts=hosts, share=share))) for hosts in (1, 2)
        )
        ratios.append(two.calls_per_second / one.calls_per_second)
        print(
            f"one host {one.calls_per_second:.0f} calls/s, two hosts {two.calls_per_second:.0f} calls/s, "
            f"{ratios[-1]:.2f} times; host {one.host_us:.0f} and {two.host_us:.0f} us a call",
            flush=True,
        )
    print(f"median: two hosts carry {statistics.median(ratios):.2f} times the load of one")


def main() -> None:
    """Measure what the options ask for."""
    parser = argparse.ArgumentParser(prog="python -m cluster.throughput", description=__doc__)
    parser.add_argument(
        "--share",
        type=float,
        metavar="PART",
        help="compare two hosts with one, each limited to this part of a core (needs root and cgroups)",
    )
    parser.add_argument("--rounds", type=int, default=3, help="of the comparison (default: 3)")
    options = parser.parse_args()
    if options.share is None:
        table(SETUPS)
    elif 0 < options.share <= 1 and options.rounds > 0:
        compare(options.share, options.rounds)
    else:
        parser.error("--share is between 0 and 1, and --rounds at least 1")


if __name__ == "__main__":
    main()

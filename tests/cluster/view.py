"""The live view of a cluster: its hosts, their sessions and their calls per second."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import NamedTuple, TextIO

import httpx
from faults.deployment import Host

from cluster.cluster import Cluster

INTERVAL_SECONDS = 2.0
TIMEOUT_SECONDS = 1.5


class HostFigures(NamedTuple):
    """One host at one moment."""

    number: int
    port: int
    state: str
    sessions: int = 0
    calls: float = 0.0
    """The calls since the host started."""


async def figures(host: Host) -> HostFigures:
    """Ask a host for its figures."""
    number, port = host.number, host.port
    if not host.is_up:
        return HostFigures(number, port, "down")
    try:
        health = await host.http.get("/health", timeout=TIMEOUT_SECONDS)
        stats = await host.http.get("/stats", timeout=TIMEOUT_SECONDS)
        state = health.json()["status"]
        return HostFigures(
            number, port, state, health.json()["active_sessions"], stats.json()["totals"]["calls"]
        )
    except (httpx.HTTPError, ValueError, KeyError):
        return HostFigures(number, port, "no answer")


class View:
    """Prints the figures of a cluster at regular intervals; on a terminal, in place."""

    def __init__(self, cluster: Cluster, out: TextIO = sys.stdout) -> None:
        self._cluster = cluster
        self._out = out
        self._in_place = out.isatty()
        self._before: dict[int, tuple[float, float]] = {}
        self._printed = 0

    async def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Print until the condition is true or the task is cancelled."""
        while not until():
            self.show(await asyncio.gather(*map(figures, self._cluster.hosts)), time.monotonic())
            await asyncio.sleep(INTERVAL_SECONDS)

    def show(self, hosts: list[HostFigures], now: float) -> None:
        """Print one state of the hosts."""
        rates = {each.number: self._rate(each, now) for each in hosts}
        if self._in_place:
            self._replace(self._table(hosts, rates))
        else:
            self._out.write(self._line(hosts, rates) + "\n")
        self._out.flush()

    def _rate(self, host: HostFigures, now: float) -> float:
        calls, at = self._before.get(host.number, (host.calls, now))
        self._before[host.number] = host.calls, now
        # A host that was restarted counts from zero.
        return max(0.0, host.calls - calls) / (now - at) if now > at else 0.0

    @staticmethod
    def _table(hosts: list[HostFigures], rates: dict[int, float]) -> list[str]:
        lines = [f"{'host':>5} {'port':>6}  {'state':<10} {'sessions':>9} {'calls/s':>8}"]
        lines += [
            f"{each.number:>5} {each.port:>6}  {each.state:<10} {each.sessions:>9} {rates[each.number]:>8.1f}"
            for each in hosts
        ]
        total = sum(each.sessions for each in hosts)
        return [*lines, f"{'all':>5} {'':>6}  {'':<10} {total:>9} {sum(rates.values()):>8.1f}"]

    @staticmethod
    def _line(hosts: list[HostFigures], rates: dict[int, float]) -> str:
        parts = [
            f"host {each.number}: {each.state}, {each.sessions} sessions, {rates[each.number]:.1f} calls/s"
            for each in hosts
        ]
        return " | ".join(parts)

    def _replace(self, lines: list[str]) -> None:
        if self._printed:
            self._out.write(f"\x1b[{self._printed}A")
        self._out.write("".join(f"\x1b[2K{line}\n" for line in lines))
        self._printed = len(lines)

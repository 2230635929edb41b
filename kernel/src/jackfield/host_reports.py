"""The hosts that share a store: their reports about themselves, and which of them still report.

Every host writes a report at regular intervals. The report of a host that was killed stays readable for a
while, so that its last figures can be shown and marked as out of date.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import orjson

from jackfield.store import ClaimState, Store

REPORT_SECONDS = 5.0
"""The interval between two reports of a host."""

SILENT_SECONDS = 15.0
"""A host that has not reported for this long counts as gone."""

KEPT_SECONDS = 600.0
"""How long the last report of a host is kept."""

PREFIX = "host/reports/"
"""The key prefix of reports; its two parts put all reports in one shard of a store."""

NAMES = "host/names/"
"""The key prefix of the claims that hosts make on their names."""

NAME_SECONDS = 24 * 3600.0
"""How long the claim on a name lasts if its host does not renew it."""

MAX_NAME = 64

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""The pattern of a host's name, which becomes part of log lines, file names and metrics."""

_CACHE_SECONDS = 1.0


def default_name() -> str:
    """Return the name of the machine with a random suffix, which differs for each process."""
    machine = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[: MAX_NAME - 5].strip("-._")
    return f"{machine or 'host'}-{os.urandom(2).hex()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """A host's report about itself; times are by the store's clock."""

    id: str
    name: str
    address: str = ""
    """The address that the host listens on; empty if its settings do not state it."""
    version: str = ""
    registry: str = ""
    started_at: float = 0.0
    reported_at: float = 0.0
    draining: bool = False
    sessions: int = 0
    """The number of its live sessions."""
    calls_per_second: float | None = None
    """The rate over the last interval; None if the host does not count its calls."""
    totals: Mapping[str, float] = field(default_factory=dict)
    """The host's counters since it started."""

    def is_silent(self, now: float) -> bool:
        """Return whether the host no longer reports, so that its figures are out of date."""
        return now - self.reported_at > SILENT_SECONDS


_FIELDS = frozenset(each.name for each in fields(HostReport))


class HostDirectory:
    """The hosts of a deployment, and this process as one of them."""

    def __init__(self, store: Store, name: str | None = None) -> None:
        self.id = os.urandom(8).hex()
        """Identifies this process among those that share the store."""
        self.name = name or default_name()
        self.count = 1
        """The number of hosts that reported at the last read, including this one."""
        self._store = store
        self._read_at = float("-inf")
        self._reporting = frozenset((self.id,))

    async def report(self, **figures: Any) -> None:
        """Write this host's report; `figures` are members of `HostReport`."""
        report = HostReport(id=self.id, name=self.name, reported_at=self._store.now(), **figures)
        await self._store.put(PREFIX + self.id, orjson.dumps(asdict(report)), ttl=KEPT_SECONDS)
        self._read_at = float("-inf")
        await self.reporting()

    async def withdraw(self) -> None:
        """Remove the report of this host when it stops."""
        await self._store.delete(PREFIX + self.id)

    async def reports(self) -> list[HostReport]:
        """Return the last report of every host, sorted by name; some hosts may be silent."""
        found = await read_reports(self._store)
        self._note(found)
        return sorted(found, key=lambda each: (each.name, each.id))

    async def reporting(self, *known: str) -> frozenset[str]:
        """Return the ids of the reporting hosts, including this one; the result is at most a second old.

        If one of the `known` ids is missing, the reports are read again: its host may have just started.
        """
        if time.monotonic() - self._read_at >= _CACHE_SECONDS or not self._reporting.issuperset(known):
            self._note(await read_reports(self._store))
        return self._reporting

    def _note(self, found: Iterable[HostReport]) -> None:
        now = self._store.now()
        self._reporting = frozenset({each.id for each in found if not each.is_silent(now)} | {self.id})
        self.count = len(self._reporting)
        self._read_at = time.monotonic()

    async def take_name(self, within: float = 0.0) -> bool:
        """Claim this host's name, or keep it; return False if another live host has it.

        A host that was killed counts as alive until the store regards it as dead, so its successor has to
        wait, at most `within` seconds.
        """
        key, store, deadline = NAMES + self.name, self._store, time.monotonic() + within
        while not await store.holds(key):
            claim = await store.claim(key, b"", ttl=NAME_SECONDS, durable=False)
            if claim.state is ClaimState.RUN:
                break
            if claim.state is ClaimState.IN_DOUBT and await store.reclaim(key):
                break
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            await store.outcome(key, within=remaining)
        return True

    async def release_name(self) -> None:
        """Release this host's name, so that another host can take it."""
        await self._store.release(NAMES + self.name)

    async def namesakes(self) -> list[HostReport]:
        """Return the other hosts that report under this host's name."""
        reporting = await self.reporting()
        return [
            each
            for each in await read_reports(self._store)
            if each.name == self.name and each.id != self.id and each.id in reporting
        ]


async def read_reports(store: Store) -> list[HostReport]:
    """Return the last report of every host, except silent hosts whose name another host has taken over."""
    found = [await store.get(key) for key in await store.keys(PREFIX)]
    reports = [report for value in found if value is not None and (report := _parse(value)) is not None]
    now = store.now()
    # A name belongs to one host at a time, so a host that was killed and restarted has two reports.
    reporting = {each.name for each in reports if not each.is_silent(now)}
    return [each for each in reports if each.name not in reporting or not each.is_silent(now)]


def _parse(value: bytes) -> HostReport | None:
    """Return a report; None if a host of another version wrote one that this version cannot read."""
    members = orjson.loads(value)
    try:
        return HostReport(**{name: members[name] for name in members.keys() & _FIELDS})
    except TypeError:
        return None

"""The figures of all hosts: each host adds to its own record in the store, and can read all records."""

from __future__ import annotations

from collections.abc import Collection

import orjson
from jackfield.host_reports import HostDirectory
from jackfield.store import Store

from jackfield_experiments.figures import Figures

PREFIX = "experiment/figures/"

KEPT_SECONDS = 90 * 24 * 3600.0
"""How long the record of a host is kept after its last change."""

ABANDONED_SECONDS = 60.0
"""After this time without a change, the record of a host that no longer reports is taken over."""


class SharedFigures:
    """The record of this host, and the sum of all records."""

    def __init__(self, store: Store, hosts: HostDirectory) -> None:
        self._store = store
        self._hosts = hosts
        self._pending = Figures()

    async def add(self, figures: Figures, keys: Collection[str]) -> None:
        """Add figures to this host's record, and drop the figures of definitions outside `keys`.

        If the store fails, the figures are added the next time.
        """
        self._pending.merge(figures)
        await self._take_over()
        if not self._pending:
            return
        name = PREFIX + self._hosts.id
        record = _parse(await self._store.get(name))
        record.merge(self._pending)
        for key in record.keys() - set(keys):
            del record[key]
        wire = orjson.dumps({"at": self._store.now(), "figures": record.to_wire()})
        await self._store.put(name, wire, ttl=KEPT_SECONDS)
        self._pending = Figures()

    async def _take_over(self) -> None:
        """Take over the records of hosts that are gone, so that their number stays small."""
        own = PREFIX + self._hosts.id
        others = [each for each in await self._store.keys(PREFIX) if each != own]
        if not others:
            return
        alive = await self._hosts.reporting()
        for name in others:
            if name.removeprefix(PREFIX) in alive:
                continue
            value = await self._store.get(name)
            abandoned = self._store.now() - ABANDONED_SECONDS
            # If several hosts try, one of them gets the record.
            if value and orjson.loads(value)["at"] < abandoned and (taken := await self._store.take(name)):
                self._pending.merge(_parse(taken))


async def read_totals(store: Store) -> Figures:
    """Return the sum of the figures of all hosts."""
    totals = Figures()
    for name in await store.keys(PREFIX):
        totals.merge(_parse(await store.get(name)))
    return totals


def _parse(value: bytes | None) -> Figures:
    return Figures() if value is None else Figures.from_wire(orjson.loads(value)["figures"])

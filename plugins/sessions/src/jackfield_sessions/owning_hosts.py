"""Which host owns which live session: an entry in the store for every live session of every host.

The entries count against the limit on a user's sessions, and lists of sessions show them. The event log alone
decides which host may write to a session (`jackfield_sessions.events`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

import orjson
from jackfield.host_reports import HostDirectory
from jackfield.runtime import Runtime
from jackfield.store import Store, StoreUnavailableError
from jackfield.user_slots import UserSlots

from jackfield_sessions.archive import LIVE
from jackfield_sessions.live_session import LiveSession

_log = logging.getLogger(__name__)

MARGIN_SECONDS = 600.0
"""How long an entry is kept beyond the maximum duration of a session."""


class OwningHost(NamedTuple):
    """The host that owns a live session."""

    host: str
    """Its name."""
    connected: bool
    """True if a client is connected."""
    epoch: int
    """The epoch of its ownership; a host with a smaller epoch has lost the session without knowing it yet."""


class OwningHosts:
    """The live sessions of all hosts; this host adds its own."""

    def __init__(self, runtime: Runtime, session_seconds: float) -> None:
        self.slots = UserSlots(runtime.store, runtime.hosts, LIVE, session_seconds + MARGIN_SECONDS)
        self._name = runtime.hosts.name
        self._written: dict[str, bool] = {}
        """For each session, by its id: whether a client was connected, as last written to the store."""

    def owner(self, live: LiveSession) -> OwningHost:
        """Return this host as the owner of one of its sessions."""
        return OwningHost(self._name, live.hub.has_clients, live.session.epoch)

    async def add(self, live: LiveSession) -> None:
        """Add a session of this host, or update whether a client is connected."""
        session, owner = live.session, self.owner(live)
        try:
            await self.slots.take(session.user or "", session.id, orjson.dumps(owner._asdict()))
            self._written[session.id] = owner.connected
        except StoreUnavailableError as error:
            # `update` writes it once the store is back.
            _log.warning("session %s: other hosts cannot see yet which host owns it: %s", session.id, error)

    async def remove(self, live: LiveSession) -> None:
        """Remove a session that this host no longer owns."""
        self._written.pop(live.session.id, None)
        # If the store is unavailable, the entry stays until it expires or this host stops reporting.
        with suppress(StoreUnavailableError):
            await self.slots.release(live.session.user or "", live.session.id)

    async def update(self, live_sessions: Mapping[str, LiveSession]) -> None:
        """Write what has changed since the last time."""
        for session_id, live in list(live_sessions.items()):
            if self._written.get(session_id) is not live.hub.has_clients:
                await self.add(live)


async def live_sessions(store: Store, hosts: HostDirectory) -> dict[str, OwningHost]:
    """Return the live sessions of all hosts that report, by their ids."""
    slots = UserSlots(store, hosts, LIVE, MARGIN_SECONDS)
    found: dict[str, OwningHost] = {}
    for slot in await slots.all():
        value = await slots.value(slot)
        # An entry without a value belongs to a session that is being opened.
        owner = OwningHost(**orjson.loads(value)) if value else None
        if owner and (slot.item not in found or owner.epoch > found[slot.item].epoch):
            found[slot.item] = owner
    return found

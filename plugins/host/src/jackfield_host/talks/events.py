"""The events of a session as they are kept: numbered, told again after a reconnect or a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, NamedTuple

import orjson
from jackfield.confirmation import token_of
from jackfield.context import KERNEL_EVENTS
from jackfield.session.session import RECOVERY_SECONDS, Session
from jackfield.store import Entry, Store

TAKEN = "session_taken"
"""Kept in a stream when a host takes over a session; clients do not get it."""

PAGE = 1000


class TakenOverError(Exception):
    """Another host carries the session on; whatever this one still holds of it is out of date."""


class Replay(NamedTuple):
    """What a client has missed."""

    messages: list[dict[str, Any]]
    reset: Literal["", "expired", "unknown"]
    """Why it cannot have all of it, if it cannot."""


def stream(session_id: str) -> str:
    """The stream that holds the events of a session."""
    return f"events/{session_id}"


def message(session: Session, entry: Entry) -> dict[str, Any] | None:
    """An event as its client gets it, with the token that only the client may hold."""
    kept: dict[str, Any] = orjson.loads(entry.value)
    if kept["type"] == TAKEN:
        return None
    if kept["type"] == "confirmation_required":
        kept["token"] = token_of(session, kept["confirmation"])
    return {"id": entry.id, **kept}


class Events:
    """Appends to one session's stream, and notices when another host has begun to."""

    def __init__(self, session: Session, store: Store, host: str) -> None:
        """`host` names this process among all that share the store."""
        self._session = session
        self._store = store
        self._host = host
        self._stream = stream(session.id)
        self.last = 0
        """The id of the newest event that is known here."""

    async def take_over(self) -> None:
        """From now on this host carries the session; whoever did before will notice."""
        kept = orjson.dumps({"type": TAKEN, "host": self._host, "at": self._store.now()})
        self.last = await self._store.append(self._stream, kept, ttl=RECOVERY_SECONDS)

    async def append(self, event: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Keep an event; the message that tells of it."""
        told = {"type": event, **fields} if event in KERNEL_EVENTS else _custom(event, fields)
        told["at"] = self._store.now()
        # A confirmation's token can be derived again, and does not belong where others might read it.
        kept = {name: value for name, value in told.items() if name != "token"}
        before = self.last
        self.last = await self._store.append(
            self._stream, orjson.dumps(kept, default=str), ttl=RECOVERY_SECONDS
        )
        if self.last != before + 1:
            await self._look_back(before)
        return {"id": self.last, **told}

    async def since(self, after: int) -> Replay:
        """What came after an event."""
        return await replay(self._session, self._store, after)

    async def _look_back(self, before: int) -> None:
        for entry in await self._store.read(self._stream, after=before):
            kept = orjson.loads(entry.value)
            if kept["type"] == TAKEN and kept["host"] != self._host:
                raise TakenOverError


async def replay(session: Session, store: Store, after: int) -> Replay:
    """What a session's client has missed since an event."""
    messages: list[dict[str, Any]] = []
    expected = after + 1
    reset: Literal["", "expired", "unknown"] = ""
    if after and not await store.read(stream(session.id), after=after - 1, limit=1):
        return Replay([], "unknown")
    while entries := await store.read(stream(session.id), after=expected - 1, limit=PAGE):
        if entries[0].id != expected:
            reset = "expired"
        messages += filter(None, (message(session, entry) for entry in entries))
        expected = entries[-1].id + 1
    return Replay(messages, reset)


async def follow(session: Session, store: Store, after: int) -> AsyncIterator[dict[str, Any]]:
    """What came after an event, and what is still to come."""
    async for entry in store.follow(stream(session.id), after=after):
        told = message(session, entry)
        if told is not None:
            yield told


def _custom(event: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "custom", "name": event, "fields": dict(fields)}

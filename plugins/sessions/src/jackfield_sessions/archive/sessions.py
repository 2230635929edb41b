"""The sessions that a store knows: those that can be resumed, and those whose transcript alone is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, NamedTuple

import orjson
from jackfield.session import record
from jackfield.session.machine import State
from jackfield.store import Store

from jackfield_sessions import events
from jackfield_sessions.journal import transcript

SESSION, CONVERSATION, CONFIRMATION = "session/", "conversation/", "confirmation/"
"""How the names begin under which the kernel keeps a session, what it takes to go on, and what waits."""

FORGOTTEN = "forgotten/"
"""How the keys begin that tell every host which sessions are being deleted."""

NOTICE_SECONDS = 3.0
"""How long hosts have to let go of them; they look every second."""

OPEN, ENDED, EXPIRED = "open", "ended", "expired"
"""How a session stands: it can go on, it was ended, or it is too old to be resumed."""

PAGE = 1000


class KeptSession(NamedTuple):
    """What is known about a session."""

    id: str
    user: str | None
    mode: str
    state: str
    began: float
    last: float
    """When something was last said."""
    registry: str | None
    turns: int

    @property
    def active(self) -> bool:
        """Whether it can go on."""
        return self.state == OPEN


async def entries(store: Store, stream: str) -> AsyncIterator[dict[str, Any]]:
    """Everything in a stream."""
    after = 0
    while page := await store.read(stream, after=after, limit=PAGE):
        for entry in page:
            yield orjson.loads(entry.value)
        after = page[-1].id


async def every(store: Store) -> list[KeptSession]:
    """All sessions, those that began first at the front."""
    found = [await find(store, session_id) for session_id in await beginning(store, "")]
    return sorted((each for each in found if each), key=lambda each: (each.began, each.id))


async def beginning(store: Store, prefix: str) -> list[str]:
    """The ids of the sessions that begin so, sorted."""
    ids = {record.name_of(key).removeprefix(SESSION) for key in await store.keys(SESSION + prefix)}
    ids |= {name.removeprefix(transcript("")) for name in await store.streams(transcript(prefix))}
    return sorted(ids)


async def find(store: Store, session_id: str) -> KeptSession | None:
    """One session, unless the store knows nothing of it."""
    kept = await record.latest(store, SESSION + session_id)
    lines = [line async for line in entries(store, transcript(session_id))]
    if kept is None:
        return _from_transcript(session_id, lines) if lines else None
    wire = orjson.loads(kept.value)
    return KeptSession(
        session_id,
        wire["user"],
        wire["mode"],
        ENDED if wire["state"] == State.TERMINATED.value else OPEN,
        wire["began"],
        lines[-1]["at"] if lines else wire["began"],
        wire["registryVersion"],
        # A session begins in its first turn, before anything was said.
        wire["turn"]["number"] - 1,
    )


def _from_transcript(session_id: str, lines: list[dict[str, Any]]) -> KeptSession:
    first, last = lines[0], lines[-1]
    began, ended = first["at"], last["at"]
    return KeptSession(
        session_id, first["user"], first["mode"], EXPIRED, began, ended, None, last["turn"] - 1
    )


async def forget(store: Store, session_id: str) -> None:
    """Delete what is kept of a session that no host holds any more.

    The answers of its calls stay until they expire, because without them a call could run twice.
    """
    for name in (SESSION + session_id, CONVERSATION + session_id):
        await record.erase(store, name)
    for key in await store.keys(f"{CONFIRMATION}{session_id}/"):
        await store.delete(key)
    for stream in (transcript(session_id), events.stream(session_id)):
        await store.clear(stream)


async def forget_all(store: Store, sessions: Iterable[KeptSession]) -> None:
    """Delete sessions; hosts that hold one of them are told before, and given the time to let go."""
    chosen = list(sessions)
    held = [each for each in chosen if each.active]
    for each in held:
        await store.put(FORGOTTEN + each.id, b"", ttl=60.0)
    if held:
        await asyncio.sleep(NOTICE_SECONDS)
    for each in chosen:
        await forget(store, each.id)
        await store.delete(FORGOTTEN + each.id)

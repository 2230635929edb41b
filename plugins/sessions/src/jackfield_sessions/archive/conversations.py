"""Which conversations there were lately: one stream for each hour, so that the latest are found at once."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import NamedTuple

import orjson
from jackfield.session.session import Session
from jackfield.store import Store, StoreUnavailableError

from jackfield_sessions.archive.sessions import KeptSession, entries, find
from jackfield_sessions.journal import TRANSCRIPT_SECONDS

_log = logging.getLogger(__name__)

HOURS = "held/"
"""How the names of the streams begin; behind it stands the hour, counted from 1970."""

LOOKED_AT = 20_000
"""How many notes are looked at for one user's; beyond that older ones are not found."""


class Latest(NamedTuple):
    """Conversations, the latest first."""

    sessions: list[KeptSession]
    complete: bool
    """Whether there are no older ones."""


async def note(store: Store, session: Session) -> None:
    """A conversation begins, or goes on."""
    kept = orjson.dumps({"session": session.id, "user": session.user})
    try:
        await store.append(f"{HOURS}{int(store.now() // 3600):09d}", kept, ttl=TRANSCRIPT_SECONDS)
    except StoreUnavailableError as error:
        _log.warning("session %s will not be listed: %s", session.id, error)


async def latest(store: Store, limit: int, user: str | None = None) -> Latest:
    """The latest conversations, of one user or of all; not those of which nothing is kept any more."""
    found: list[KeptSession] = []
    seen: set[str] = set()
    looked_at = 0
    async for session_id, whose in _noted(store):
        looked_at += 1
        if session_id in seen or user not in (None, whose):
            if looked_at == LOOKED_AT:
                return Latest(found, complete=False)
            continue
        seen.add(session_id)
        kept = await find(store, session_id)
        if kept is None:
            continue
        if len(found) == limit:
            return Latest(found, complete=False)
        found.append(kept)
    return Latest(found, complete=True)


async def _noted(store: Store) -> AsyncIterator[tuple[str, str | None]]:
    for stream in reversed(await store.streams(HOURS)):
        for each in reversed([each async for each in entries(store, stream)]):
            yield each["session"], each["user"]

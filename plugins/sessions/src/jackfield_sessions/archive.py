"""Stored sessions: those that can be resumed, and those of which only a transcript is left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Container, Iterable
from typing import Any, NamedTuple

import orjson
from jackfield.call_states import CallState
from jackfield.confirmation import Confirmations
from jackfield.contract.tool import ErrorType
from jackfield.ledger import CallLedger
from jackfield.session import fenced_record
from jackfield.session.session import FORMAT, Session, State
from jackfield.store import Store, StoreUnavailableError

from jackfield_sessions import events
from jackfield_sessions.checkpoint import TRANSCRIPT_SECONDS, checkpoint_name, transcript

_log = logging.getLogger(__name__)

SESSION, CONFIRMATION = "session/", "confirmation/"
"""Prefixes of the kernel's records of sessions and confirmations."""

LIVE = "live"
"""The kind of the entries that say which host owns a live session (`jackfield_sessions.owning_hosts`)."""

DELETED = "deleted/"
"""Prefix of the keys that tell every host which sessions are being deleted."""

DELETE_SECONDS = 3.0
"""How long hosts have to close sessions that are being deleted; they check every second."""

TITLE = "title/"
"""Prefix of the keys with the titles that users gave to their conversations."""

TITLE_LENGTH = 60
"""The maximum length of a title that is made from a message, in characters."""

RECENT = "recent/"
"""Prefix of the streams of recent sessions: one per hour, counted from 1970."""

MAX_NOTES = 20_000
"""How many notes of recent sessions are searched for one user's sessions."""

OPEN, ENDED, EXPIRED = "open", "ended", "expired"
"""The states of a stored session: it can be resumed, it has ended, or it is too old to be resumed."""

PAGE = 1000

_NOT_RECORDED = frozenset({"session_status", events.OWNERSHIP_CLAIMED})
"""Events that are not part of a session's record."""

Line = dict[str, Any]


class StoredSession(NamedTuple):
    """A session in the store."""

    id: str
    user: str | None
    mode: str
    state: str
    began: float
    last: float
    """The time of the last message."""
    registry: str | None
    turns: int
    title: str | None
    """The title that the user gave, or else the beginning of the first message; None if nothing was said."""

    @property
    def active(self) -> bool:
        """True if it can be resumed."""
        return self.state == OPEN


class RecentSessions(NamedTuple):
    """Recent sessions, latest first."""

    sessions: list[StoredSession]
    complete: bool
    """True if there are no older ones."""


async def all_sessions(store: Store) -> list[StoredSession]:
    """Return all sessions, oldest first."""
    found = [await find(store, session_id) for session_id in await ids_with_prefix(store, "")]
    return sorted((each for each in found if each), key=lambda each: (each.began, each.id))


async def ids_with_prefix(store: Store, prefix: str) -> list[str]:
    """Return the session ids with a prefix, sorted."""
    ids = {fenced_record.name_of(key).removeprefix(SESSION) for key in await store.keys(SESSION + prefix)}
    ids |= {name.removeprefix(transcript("")) for name in await store.streams(transcript(prefix))}
    return sorted(ids)


async def find(store: Store, session_id: str) -> StoredSession | None:
    """Return a session; None if the store does not have it."""
    saved = await fenced_record.latest(store, SESSION + session_id)
    lines = [line async for line in _entries(store, transcript(session_id))]
    title = await _title(store, session_id, lines)
    wire = orjson.loads(saved.value) if saved else {}
    # A session that a version with a different format saved cannot be resumed: only its transcript is left.
    if wire.get("format") != FORMAT:
        return _from_transcript(session_id, lines, title) if lines else None
    return StoredSession(
        session_id,
        wire["user"],
        wire["mode"],
        ENDED if wire["state"] == State.TERMINATED.value else OPEN,
        wire["openedAt"],
        lines[-1]["at"] if lines else wire["openedAt"],
        wire["registryVersion"],
        # A session begins in its first turn, before the first message.
        wire["turn"]["number"] - 1,
        title,
    )


def _from_transcript(session_id: str, lines: list[Line], title: str | None) -> StoredSession:
    first, last = lines[0], lines[-1]
    turns = last["turn"] - 1
    return StoredSession(
        session_id, first["user"], first["mode"], EXPIRED, first["at"], last["at"], None, turns, title
    )


async def _title(store: Store, session_id: str, lines: list[Line]) -> str | None:
    """Return the title that the user gave, or else the beginning of what the user said first."""
    if (given := await store.get(TITLE + session_id)) is not None:
        return given.decode()
    first = next((line for line in lines if line["speaker"] == "user"), lines[0] if lines else None)
    return None if first is None else _shorten(first["text"])


def _shorten(text: str) -> str:
    """Return a text on one line; a long one is cut, at the end of a word if one ends near the limit."""
    text = " ".join(text.split())
    if len(text) <= TITLE_LENGTH:
        return text
    cut = text[: TITLE_LENGTH - 1]
    head = cut.rpartition(" ")[0]
    return f"{(head if len(head) > TITLE_LENGTH // 2 else cut).rstrip()}…"


async def rename(store: Store, session_id: str, title: str) -> None:
    """Give a conversation a title, for as long as its transcript is kept."""
    await store.put(TITLE + session_id, title.encode(), ttl=TRANSCRIPT_SECONDS)


async def session_record(store: Store, session_id: str) -> list[Line]:
    """Return what happened in a session, in order: all messages, and tool events that are still stored."""
    messages = [{"type": "message", **line} async for line in _entries(store, transcript(session_id))]
    logged = [
        {name: value for name, value in line.items() if name != events.EPOCH_FIELD}
        async for line in _entries(store, events.stream(session_id))
        if line["type"] not in _NOT_RECORDED
    ]
    await _mark_undecided(store, session_id, logged)
    # The log has everything in order; the transcript also has messages that are older than the log.
    in_log = sum(line["type"] == "message" for line in logged)
    return messages[: max(0, len(messages) - in_log)] + logged


async def _mark_undecided(store: Store, session_id: str, lines: list[Line]) -> None:
    """Mark calls in doubt, and calls whose confirmation has expired (no event records that)."""
    states: dict[Any, CallState] = {}
    for pending in await Confirmations(store).for_session(session_id):
        status = await CallLedger(store).status_of(pending)
        states[pending.tool_id, pending.call_id] = status.state
    for line in lines:
        if line["type"] == "confirmation_required" or is_waiting(line):
            state = states.get((line.get("tool"), line.get("callId")))
            if state is CallState.EXPIRED:
                line["expired"] = True
            elif state is CallState.IN_DOUBT:
                line["inDoubt"] = True


def is_waiting(line: Line) -> bool:
    """Return whether a line says that a call is waiting for confirmation."""
    return (line["type"], line.get("errorType")) == ("tool_error", ErrorType.CONFIRMATION_REQUIRED)


async def note_session(store: Store, session: Session) -> None:
    """Record that a session was opened or resumed, for the list of recent sessions."""
    note = orjson.dumps({"session": session.id, "user": session.user})
    try:
        await store.append(f"{RECENT}{int(store.now() // 3600):09d}", note, ttl=TRANSCRIPT_SECONDS)
    except StoreUnavailableError as error:
        _log.warning("session %s will not be listed: %s", session.id, error)


async def recent_sessions(
    store: Store, limit: int, user: str | None = None, *, live: Container[str] = (), search: str = ""
) -> RecentSessions:
    """Return the latest sessions of one user or of all users.

    Sessions in which nothing was said are omitted, unless they are `live`. With `search`, every word of it
    must be in the title or in a message.
    """
    found: list[StoredSession] = []
    seen: set[str] = set()
    notes = 0
    async for session_id, owner in _noted(store):
        notes += 1
        if session_id in seen or user not in (None, owner):
            if notes == MAX_NOTES:
                return RecentSessions(found, complete=False)
            continue
        seen.add(session_id)
        stored = await find(store, session_id)
        if stored is None or (stored.title is None and session_id not in live):
            continue
        if search and not await _contains(store, stored, search):
            continue
        if len(found) == limit:
            return RecentSessions(found, complete=False)
        found.append(stored)
    return RecentSessions(found, complete=True)


async def _contains(store: Store, session: StoredSession, search: str) -> bool:
    """Return whether a conversation contains every word of a search."""
    said = [line["text"] async for line in _entries(store, transcript(session.id))]
    text = " ".join([session.title or "", *said]).casefold()
    return all(word in text for word in search.casefold().split())


async def _noted(store: Store) -> AsyncIterator[tuple[str, str | None]]:
    for stream in reversed(await store.streams(RECENT)):
        for note in reversed([note async for note in _entries(store, stream)]):
            yield note["session"], note["user"]


async def deleted(store: Store) -> list[str]:
    """Return the ids of sessions that are being deleted."""
    return [key.removeprefix(DELETED) for key in await store.keys(DELETED)]


async def delete(store: Store, session_id: str) -> None:
    """Delete the stored data of a session that no host owns any more.

    The results of its calls stay until they expire, because without them a call could run twice.
    """
    for name in (SESSION + session_id, checkpoint_name(session_id)):
        await fenced_record.erase(store, name)
    owners = [key for key in await store.keys(f"{LIVE}/") if f"/{session_id}/" in key]
    for key in [TITLE + session_id, *await store.keys(f"{CONFIRMATION}{session_id}/"), *owners]:
        await store.delete(key)
    for stream in (transcript(session_id), events.stream(session_id)):
        await store.clear(stream)


async def delete_if_empty(store: Store, session_id: str) -> None:
    """Delete a session that has ended if nothing was said or done in it."""
    if not await session_record(store, session_id):
        await delete(store, session_id)


async def delete_all(store: Store, sessions: Iterable[StoredSession]) -> None:
    """Delete sessions; hosts that own one get time to close it first."""
    chosen = list(sessions)
    # A host may write to its session until it has removed it, which is a moment after the end was saved.
    owned = {key.split("/")[2] for key in await store.keys(f"{LIVE}/")}
    written = [each for each in chosen if each.active or each.id in owned]
    for each in written:
        await store.put(DELETED + each.id, b"", ttl=60.0)
    if written:
        await asyncio.sleep(DELETE_SECONDS)
    for each in chosen:
        await delete(store, each.id)
        await store.delete(DELETED + each.id)


async def _entries(store: Store, stream: str) -> AsyncIterator[Line]:
    """Yield the entries of a stream."""
    after = 0
    while page := await store.read(stream, after=after, limit=PAGE):
        for entry in page:
            yield orjson.loads(entry.value)
        after = page[-1].id

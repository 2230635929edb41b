"""The events of a session as they are kept: numbered, told again after a reconnect or a restart.

Several hosts may have carried a session. Each notes when it takes one over, and the number of that note makes
it the session's holder: it signs with it what it adds here, and keeps the session's records under it
(`jackfield.session.record`). A host may lose a session at any moment without knowing it yet. What it still
adds is told to nobody, and what it still keeps is read by nobody, however late either comes: the order of
this stream alone decides who holds a session. So whoever takes over makes the note first, and reads then.

What happens beside a conversation is added unsigned by whoever runs it, and told by whoever carries the
session.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import orjson
from jackfield.confirmation import confirmation_token
from jackfield.context import KERNEL_EVENTS
from jackfield.protocol.codec import written
from jackfield.session.session import RECOVERY_SECONDS, Session
from jackfield.store import Entry, Store

_log = logging.getLogger(__name__)

TAKEN = "session_taken"
"""Kept in a stream when a host takes over a session; clients do not get it."""

SIGNED = "since"
"""The number of the note by which the writer of an event took the session over; 0 for its first host.

None where it adds to a session beside whoever carries it: a call that its user made himself.
"""

PAGE = 1000

_ADDED = frozenset({"id", "type", "at"})
"""What an event has besides the fields with which it was published."""


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


class _Reading:
    """Reads a stream in order, and leaves out what a host added that no longer carried the session."""

    def __init__(self, session: Session, taken: int = 0) -> None:
        self._session = session
        self.taken = taken
        """The note by which the session was last taken over, as far as it was read."""

    def message(self, entry: Entry) -> dict[str, Any] | None:
        """An event as its client gets it, with the token that only the client may hold."""
        kept: dict[str, Any] = orjson.loads(entry.value)
        if kept["type"] == TAKEN:
            self.taken = entry.id
            return None
        since = kept.pop(SIGNED, None)
        if since is not None:
            if since < self.taken:
                return None
            self.taken = since
        if kept["type"] == "confirmation_required":
            kept["token"] = confirmation_token(self._session, kept["confirmation"])
        return {"id": entry.id, **kept}


class Events:
    """Appends to one session's stream, and notices when another host has begun to."""

    def __init__(self, session: Session, store: Store, *, carries: bool = True) -> None:
        """Whoever does not carry the session adds to its stream beside whoever does."""
        self._session = session
        self._store = store
        self._carries = carries
        self._stream = stream(session.id)
        self._since = session.holder
        self._lost = False
        self.last = session.holder if carries else 0
        """The id of the newest event that is known here."""

    async def append(self, event: str, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Keep an event; the message that tells of it, behind those of what others have added meanwhile."""
        if self._lost:
            raise TakenOverError
        told = {"type": event, **fields} if event in KERNEL_EVENTS else _custom(event, fields)
        told["at"] = self._store.now()
        # A confirmation's token can be derived again, and does not belong where others might read it.
        kept = {name: value for name, value in told.items() if name != "token"}
        before = self.last
        self.last = await self._store.append(
            self._stream,
            written({**kept, SIGNED: self._since if self._carries else None}),
            ttl=RECOVERY_SECONDS,
        )
        added = await self._look_back(before) if self._carries and self.last != before + 1 else []
        return [*added, {"id": self.last, **told}]

    async def since(self, after: int) -> Replay:
        """What came after an event."""
        return await replay(self._session, self._store, after)

    async def contains(self, event: str, fields: Mapping[str, Any]) -> bool:
        """Whether the outcome of a call is in the log already, however long the call took."""
        expected = {"type": event, **fields}
        expected.pop("durationMs", None)
        told = await events_for_call(self._session, self._store, fields["callId"])
        return any(expected.items() <= each.items() for each in told)

    async def still_here(self) -> bool:
        """Whether no other host has taken the session over, as far as the store knows now."""
        try:
            await self._look_back(self.last)
        except TakenOverError:
            return False
        return not self._lost

    async def _look_back(self, before: int) -> list[dict[str, Any]]:
        """What others have added since an event that is known here; raises where one took over."""
        reading = _Reading(self._session, self._since)
        added = []
        for entry in await self._store.read(self._stream, after=before):
            message = reading.message(entry)
            if reading.taken != self._since:
                _log.info("session %s is carried on by another host", self._session.id)
                self._lost = True
                raise TakenOverError
            if message is not None and entry.id < self.last:
                added.append(message)
        return added


async def take_over(session_id: str, store: Store, host: str) -> int:
    """From now on this host carries the session, and whoever did before will notice; the holder's number.

    `host` names this process among all that share the store.
    """
    kept = orjson.dumps({"type": TAKEN, "host": host, "at": store.now()})
    return await store.append(stream(session_id), kept, ttl=RECOVERY_SECONDS)


def answered(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    """The ids of calls whose outcome was told."""
    return {each["callId"] for each in messages if each["type"] in ("tool_complete", "tool_error")}


def said(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was said by either side, as it was published."""
    return [
        {name: value for name, value in each.items() if name not in _ADDED}
        for each in messages
        if each["type"] == "message"
    ]


def open_forms(messages: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The forms that are open according to the event log: the tool of each, by the form's id."""
    found: dict[str, str] = {}
    for each in messages:
        if each["type"] == "form_request":
            found[each["formId"]] = each["toolId"]
        elif each["type"] == "form_closed":
            found.pop(each["formId"], None)
    return found


async def replay(session: Session, store: Store, after: int) -> Replay:
    """What a session's client has missed since an event."""
    name = stream(session.id)
    if after and not await store.read(name, after=after - 1, limit=1):
        return Replay([], "unknown")
    reading = await _reading_from(session, store, after)
    messages: list[dict[str, Any]] = []
    reset: Literal["", "expired", "unknown"] = ""
    expected = after + 1
    while entries := await store.read(name, after=expected - 1, limit=PAGE):
        if entries[0].id != expected:
            reset = "expired"
        messages += filter(None, map(reading.message, entries))
        expected = entries[-1].id + 1
    return Replay(messages, reset)


async def events_for_call(session: Session, store: Store, call_id: str) -> list[dict[str, Any]]:
    """The events about one call, in order."""
    return [each for each in (await replay(session, store, 0)).messages if each.get("callId") == call_id]


async def follow(session: Session, store: Store, after: int) -> AsyncGenerator[dict[str, Any], None]:
    """What came after an event, and what is still to come."""
    reading = await _reading_from(session, store, after)
    async for entry in store.follow(stream(session.id), after=after):
        told = reading.message(entry)
        if told is not None:
            yield told


async def _reading_from(session: Session, store: Store, after: int) -> _Reading:
    """A reading that goes on behind an event, and knows which host carried the session then."""
    reading, read = _Reading(session), 0
    # From the beginning: the event itself may be one that its writer did not sign.
    while read < after and (entries := await store.read(stream(session.id), after=read, limit=PAGE)):
        for entry in entries:
            if entry.id <= after:
                reading.message(entry)
        read = entries[-1].id
    return reading


def _custom(event: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "custom", "name": event, "fields": dict(fields)}

"""The event log of a session: numbered events that a client can replay after a reconnect or a restart.

Several hosts may own a session, one after the other. A host that claims ownership first appends a claim to
the log, and the number of that claim is its epoch. It writes the epoch into every event that it appends,
and it saves the session's records under it (`jackfield.session.fenced_record`). A host may lose a session at
any moment without knowing it. Readers skip events and records of an earlier epoch, however late they are
written: the order of the log alone decides which host owns a session. So a new owner claims first, then
reads.

The events of calls that a user makes without a live session are appended without an epoch by the host that
runs the calls, and delivered by the host that owns the session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import orjson
from jackfield.confirmation import confirmation_token
from jackfield.governance import DUPLICATES
from jackfield.invocation import RESERVED_EVENTS
from jackfield.ledger import RUN_AGAIN
from jackfield.orchestrator import CallResult
from jackfield.protocol.codec import encode, to_wire
from jackfield.protocol.messages import HostMessage
from jackfield.session.session import RECOVERY_SECONDS, Session
from jackfield.store import ClaimState, Store, StoreUnavailableError, StreamEntry

_log = logging.getLogger(__name__)

OWNERSHIP_CLAIMED = "ownership_claimed"
"""The type of the entry with which a host claims a session; clients do not get it."""

EPOCH_FIELD = "epoch"
"""The member with the epoch of the host that appended an event: 0 for the first owner, null for no owner."""

PAGE = 1000

RETRY_SECONDS = 0.5
"""Seconds between two attempts while the store is unavailable."""

PUBLICATION_SECONDS = 15.0
"""How long a host may take to look for an outcome in the log and to append it."""

ADDED = frozenset({"id", "type", "at"})
"""The members of a message besides the fields of its event."""


class EncodedMessage(dict[str, Any]):
    """A message to clients with its JSON text, which is encoded once for all of them."""

    __slots__ = ("frame",)

    frame: str


def encoded(message: HostMessage | Mapping[str, Any]) -> EncodedMessage:
    """Encode a message for all clients."""
    wire = to_wire(message) if isinstance(message, HostMessage) else message
    each = EncodedMessage(wire)
    each.frame = encode(wire).decode()
    return each


class OwnershipLost(Exception):  # noqa: N818 - an event in the life of a session, not a fault
    """Another host owns the session; this host's copy is out of date."""


class Replay(NamedTuple):
    """The events that a client has missed."""

    messages: list[dict[str, Any]]
    reset: Literal["", "expired", "unknown"]
    """Why events are missing, if any are."""


def stream(session_id: str) -> str:
    """Return the name of the stream with a session's events."""
    return f"events/{session_id}"


class EventReader:
    """Reads a log in order, and skips what a host appended after it had lost the session."""

    def __init__(self, session: Session, epoch: int = 0) -> None:
        self._session = session
        self.epoch = epoch
        """The epoch of the latest owner, as far as the log was read."""

    def message(self, entry: StreamEntry) -> dict[str, Any] | None:
        """Return an event as a client gets it, with a confirmation's token; None if it must be skipped."""
        event: dict[str, Any] = orjson.loads(entry.value)
        if event["type"] == OWNERSHIP_CLAIMED:
            self.epoch = entry.id
            return None
        epoch = event.pop(EPOCH_FIELD, None)
        if epoch is not None:
            if epoch < self.epoch:
                return None
            self.epoch = epoch
        if event["type"] == "confirmation_required":
            event["token"] = confirmation_token(self._session, event["confirmation"])
        return {"id": entry.id, **event}


class QueuedEvent(NamedTuple):
    """An event that waits for the store."""

    name: str
    fields: Mapping[str, Any]
    once: bool = False
    """True if another host may already have published it."""
    alone: bool = False
    """True if it must not be appended together with others."""


class EventLog:
    """Appends to the log of one session, and notices when another host has claimed the session.

    A host that does not own the session appends with `owned=False`.
    """

    def __init__(self, session: Session, store: Store, *, owned: bool = True) -> None:
        self._session = session
        self._store = store
        self._stream = stream(session.id)
        self._epoch = session.epoch
        self._owned = owned
        self._signature = f'"{EPOCH_FIELD}":{session.epoch if owned else "null"}'
        self._lost = False
        self.last = session.epoch
        """The id of the newest event that is known here."""

    async def append(self, events: Sequence[QueuedEvent]) -> list[EncodedMessage]:
        """Append events, all or none; return them, preceded by those of other hosts that are not known yet.

        Returns nothing if another host will deliver them as the session's owner.
        """
        if self._lost:
            raise OwnershipLost
        appended = []
        for event, fields, *_ in events:
            if event in RESERVED_EVENTS:
                message = {"type": event, **fields}
            else:
                message = {"type": "custom", "name": event, "fields": dict(fields)}
            # The token can be derived again, and must not be stored where others can read it.
            token = message.pop("token", None)
            # Encoded once; the differences between log and clients are added to the text.
            appended.append((message, token, encode(message)[:-1]))
        at = self._store.now()
        end = f',"at":{at!r},{self._signature}}}'.encode()
        stored = [members + end for _, _, members in appended]
        last = await self._store.append(self._stream, *stored, ttl=RECOVERY_SECONDS)
        if not self._owned:
            return []
        before, self.last = self.last, last
        number = last - len(stored)
        logged = await self._missed_events(before, number) if number != before else []
        for message, token, members in appended:
            number += 1
            each = EncodedMessage({"id": number, **message, "at": at})
            each.frame = f'{{"id":{number},{members[1:].decode()},"at":{at!r}}}'
            if token is not None:
                each["token"] = token
                each.frame = f'{each.frame[:-1]},"token":"{token}"}}'
            logged.append(each)
        return logged

    async def append_once(self, event: QueuedEvent) -> list[EncodedMessage]:
        """Append the outcome of a call unless it is already in the log.

        Several hosts may have the outcome at the same moment, so they look and append one after the other.
        """
        key, store = f"publication/{self._session.id}/{event.fields['callId']}", self._store
        while True:
            await _lock(key, store)
            try:
                if await self._contains(event):
                    return []
                # A host that was paused for long has lost the lock: another may have appended the outcome.
                if await store.holds(key):
                    return await self.append([event])
            finally:
                # If this fails, the lock expires.
                with suppress(StoreUnavailableError):
                    await store.release(key)

    async def _contains(self, event: QueuedEvent) -> bool:
        """Return whether the log has the outcome of a call; the duration is ignored."""
        expected = {"type": event.name, **event.fields}
        expected.pop("durationMs", None)
        known = await events_for_call(self._session, self._store, expected["callId"])
        return any(expected.items() <= each.items() for each in known)

    async def since(self, after: int) -> Replay:
        """Return the events after the one with the id `after`."""
        return await replay(self._session, self._store, after)

    async def is_owner(self) -> bool:
        """Return whether this host still owns the session, according to the store."""
        try:
            await self._read_others(self.last, self.last)
        except OwnershipLost:
            return False
        return not self._lost

    async def _missed_events(self, after: int, until: int) -> list[EncodedMessage]:
        """Return the events of other hosts in a range; retry while the store is unavailable.

        The events after this range are already in the log, so a failure must not cause them to be appended
        again.
        """
        while True:
            try:
                return await self._read_others(after, until)
            except StoreUnavailableError as error:
                _log.warning("the events of other hosts cannot be read: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _read_others(self, after: int, until: int) -> list[EncodedMessage]:
        """Return the events of other hosts in a range; raise `OwnershipLost` if one claimed the session."""
        reader = EventReader(self._session, self._epoch)
        found = []
        for entry in await self._store.read(self._stream, after=after):
            message = reader.message(entry)
            if reader.epoch != self._epoch:
                _log.info("session %s is owned by another host now", self._session.id)
                self._lost = True
                raise OwnershipLost
            if message is not None and entry.id <= until:
                found.append(encoded(message))
        return found


async def _lock(key: str, store: Store) -> None:
    """Wait until this host holds a claim."""
    while True:
        claim = await store.claim(key, b"", ttl=PUBLICATION_SECONDS, durable=False)
        if claim.state is ClaimState.RUN or (claim.state is ClaimState.IN_DOUBT and await store.reclaim(key)):
            return
        await store.outcome(key, within=PUBLICATION_SECONDS)


async def may_publish_outcome(store: Store, session_id: str, call_id: str) -> bool:
    """Return True for exactly one caller, which then publishes the outcome of a call whose host died.

    The session's next owner and the host that looks for such calls may both be about to do so. The claim is
    not completed: if its holder dies before the event is in the log, the next caller publishes it.
    """
    key = f"outcome/{session_id}/{call_id}"
    claim = await store.claim(key, b"", ttl=RECOVERY_SECONDS, durable=False)
    return claim.state is ClaimState.RUN or (claim.state is ClaimState.IN_DOUBT and await store.reclaim(key))


def changed_hosts(answer: CallResult) -> bool:
    """Return whether a call moved between this host and another one because its host died."""
    call = answer.call
    if call is None:
        return False
    return call.decisions.get(DUPLICATES) == RUN_AGAIN or (call.replayed and call.invocations > 0)


async def claim_ownership(session_id: str, store: Store, host: str) -> int:
    """Make this host the owner of a session and return its epoch.

    `host` identifies this process. The previous owner notices with its next event.
    """
    claim = orjson.dumps({"type": OWNERSHIP_CLAIMED, "host": host, "at": store.now()})
    return await store.append(stream(session_id), claim, ttl=RECOVERY_SECONDS)


def answered_calls(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the ids of calls whose outcome was published."""
    return {each["callId"] for each in messages if each["type"] in ("tool_complete", "tool_error")}


def published_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of user and assistant, with their published fields."""
    return [
        {name: value for name, value in each.items() if name not in ADDED}
        for each in messages
        if each["type"] == "message"
    ]


def open_forms(messages: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the forms that are open according to the event log: the tool of each, by the form's id."""
    found: dict[str, str] = {}
    for each in messages:
        if each["type"] == "form_request":
            found[each["formId"]] = each["tool"]
        elif each["type"] == "form_closed":
            found.pop(each["formId"], None)
    return found


async def replay(session: Session, store: Store, after: int) -> Replay:
    """Return the events that a client of the session has missed since the one with the id `after`."""
    name = stream(session.id)
    if after and not await store.read(name, after=after - 1, limit=1):
        return Replay([], "unknown")
    reader = await _reader_from(session, store, after)
    messages: list[dict[str, Any]] = []
    reset: Literal["", "expired", "unknown"] = ""
    expected = after + 1
    while entries := await store.read(name, after=expected - 1, limit=PAGE):
        if entries[0].id != expected:
            reset = "expired"
        messages += filter(None, map(reader.message, entries))
        expected = entries[-1].id + 1
    return Replay(messages, reset)


async def events_for_call(session: Session, store: Store, call_id: str) -> list[dict[str, Any]]:
    """Return the events about one call, in order."""
    return [each for each in (await replay(session, store, 0)).messages if each.get("callId") == call_id]


async def follow(session: Session, store: Store, after: int) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the events after the one with the id `after`, then each new event as it is appended."""
    reader = await _reader_from(session, store, after)
    async for entry in store.follow(stream(session.id), after=after):
        message = reader.message(entry)
        if message is not None:
            yield message


async def _reader_from(session: Session, store: Store, after: int) -> EventReader:
    """Return a reader that continues after the event `after` and knows which host owned the session then."""
    reader, read = EventReader(session), 0
    # Read from the beginning, because the event itself may have no epoch.
    while read < after and (entries := await store.read(stream(session.id), after=read, limit=PAGE)):
        for entry in entries:
            if entry.id <= after:
                reader.message(entry)
        read = entries[-1].id
    return reader

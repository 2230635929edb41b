"""`GET /events`: what happens in a session, from where the client was."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import TypeVar

from jackfield.protocol.close_codes import EXPIRED_TOKEN, RESTARTING
from jackfield.protocol.codec import to_wire
from jackfield.protocol.messages import ErrorMessage, GoingAway, HostMessage, Reset, ResetReason
from jackfield.session.session import Session
from jackfield.store import Store, StoreUnavailableError
from jackfield_sessions.events import follow, replay, stream
from sse_starlette import ServerSentEvent
from starlette.responses import Response

from jackfield_host.endpoints.operation import EVENT_STREAM, NAMED, Operation, Parameter, Said
from jackfield_host.endpoints.streaming import Stream, first, number_of, sent
from jackfield_host.endpoints.visit import Visit
from jackfield_host.errors import HttpError
from jackfield_host.wire.answers import StreamedEvent

_log = logging.getLogger(__name__)

LAST_SEEN = "Last-Event-ID"

LOOK_SECONDS = 5.0
"""How often a stream looks whether its session has ended or its user's token has."""

_M = TypeVar("_M")


async def events(visit: Visit) -> Response:
    """Tell what was missed, then what happens."""
    session = await visit.session(ended=True)
    user, listeners = visit.identity.user, visit.sessions.listeners
    most = visit.house.options.sessions_per_user
    if visit.request.method == "GET" and listeners[user] >= most:
        raise HttpError(429, "too_many_streams", f"You may listen to {most} streams at once, and do.")
    if visit.sessions.draining:
        raise HttpError(503, RESTARTING.name, "The host is restarting; try again.", retry_after=1.0)
    seen = visit.request.headers.get(LAST_SEEN, "")
    after, reset = await _place(session, visit.sessions.runtime.store, seen)
    return Stream(_told(visit, session, after, reset))


async def _place(session: Session, store: Store, seen: str) -> tuple[int, ResetReason | None]:
    """Where to go on from, and why what the client has seen may be incomplete."""
    if not seen:
        return 0, None
    number = number_of(seen, session.id)
    if number is None:
        return 0, "unknown"
    around = await store.read(stream(session.id), after=max(0, number - 1), limit=2)
    if number and (not around or around[-1].id < number):
        return 0, "unknown"
    following = [entry.id for entry in around if entry.id > number]
    return number, "expired" if following and following[0] != number + 1 else None


async def _told(
    visit: Visit, session: Session, after: int, reset: ResetReason | None
) -> AsyncIterator[ServerSentEvent]:
    sessions, user = visit.sessions, visit.identity.user
    store = sessions.runtime.store
    sessions.listeners[user] += 1
    try:
        if reset:
            yield sent(session.id, to_wire(Reset(reason=reset)))
        if not session.active:
            # Nothing more will happen in it.
            for message in (await replay(session, store, after)).messages:
                yield sent(session.id, message)
            return
        async with aclosing(_until_over(visit, session, follow(session, store, after))) as following:
            async for message in following:
                yield sent(session.id, message)
        if last := _last(visit):
            yield sent(session.id, to_wire(last))
    except StoreUnavailableError as error:
        # The client comes back with the last id it has seen.
        _log.warning("a stream of events ends: the store is unavailable: %s", error)
    finally:
        sessions.listeners[user] -= 1
        sessions.listeners += Counter()  # Who listens to nothing is forgotten.


async def _until_over(
    visit: Visit, session: Session, messages: AsyncGenerator[_M, None]
) -> AsyncGenerator[_M, None]:
    """Messages as they come, until the session, the host or the user's token comes to its end."""
    over = asyncio.create_task(_over(visit, session))
    try:
        while (message := await first(anext(messages), over)) is not None:
            yield message
    finally:
        over.cancel()
        await messages.aclose()


async def _over(visit: Visit, session: Session) -> None:
    sessions = visit.sessions
    while not (sessions.stopping.is_set() or _expired(visit)):
        with suppress(TimeoutError):
            async with asyncio.timeout(_next_look(visit)):
                await sessions.stopping.wait()
        with suppress(StoreUnavailableError):
            # Whichever host carries the session writes down that it has ended.
            kept = await Session.resume(session.id, sessions.runtime.store)
            if kept is None or not kept.active:
                return


def _next_look(visit: Visit) -> float:
    expires = visit.identity.expires
    return LOOK_SECONDS if expires is None else min(LOOK_SECONDS, max(0.0, expires - time.time()))


def _expired(visit: Visit) -> bool:
    return visit.identity.expires is not None and visit.identity.expires <= time.time()


def _last(visit: Visit) -> HostMessage | None:
    if visit.sessions.stopping.is_set():
        return GoingAway(reason=RESTARTING.reason)
    if not _expired(visit):
        return None
    message = f"The stream ends: {EXPIRED_TOKEN.reason}."
    return ErrorMessage(code=EXPIRED_TOKEN.name, message=message, suggestion=EXPIRED_TOKEN.advice)


EVENTS = Operation(
    "GET",
    "/events",
    "Follow what happens in a session.",
    events,
    parameters=(
        NAMED,
        Parameter(LAST_SEEN, "header", "The id of the last event that was seen.", {"type": "string"}),
    ),
    answers={200: (Said("Events as they happen; a heartbeat is a comment.", StreamedEvent, EVENT_STREAM),)},
    fails={404: "There is no such session."},
)

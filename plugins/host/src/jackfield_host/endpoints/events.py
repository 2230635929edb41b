"""`GET /events`, and the server-sent events that stream sessions over HTTP."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypeVar

import orjson
from jackfield.protocol.close_codes import EXPIRED_TOKEN, RESTARTING
from jackfield.protocol.codec import to_wire
from jackfield.protocol.messages import ErrorMessage, GoingAway, HostMessage, Reset, ResetReason
from jackfield.session.session import Session
from jackfield.store import Store, StoreUnavailableError
from jackfield_sessions.admission import SessionRefused
from jackfield_sessions.events import follow, replay, stream
from jackfield_sessions.hub import ClientQueue, Frame
from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from jackfield_host.endpoint import (
    EVENT_STREAM,
    SESSION_HEADER,
    Endpoint,
    EndpointParameter,
    RequestContext,
    ResponseForm,
)
from jackfield_host.errors import HttpError

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

LAST_EVENT_ID = "Last-Event-ID"

CHECK_SECONDS = 5.0
"""How often a stream checks whether its session has ended or the user's token has expired."""

HEARTBEAT_SECONDS = 15
"""The interval between comments in a stream, so that clients and proxies keep a silent stream open."""

SEND_SECONDS = 30.0
"""A client that reads nothing for this long is disconnected."""


class EventStream(EventSourceResponse):
    """A stream of server-sent events with a heartbeat, for clients that keep reading."""

    def __init__(
        self, events: AsyncIterator[ServerSentEvent], on_end: Callable[[], None] = lambda: None
    ) -> None:
        """`on_end` is called when the stream has ended, even if it never began."""
        self._on_end = on_end
        super().__init__(events, ping=HEARTBEAT_SECONDS, sep="\n", send_timeout=SEND_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until one side ends the stream."""
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            _log.info("disconnected a client that does not read its event stream")
        finally:
            self._on_end()


def to_server_sent_event(session_id: str, message: Mapping[str, Any]) -> ServerSentEvent:
    """Convert a message of the protocol; its type is the name of the event."""
    number = message.get("id")
    return ServerSentEvent(
        orjson.dumps(message, default=str).decode(),
        event=message["type"],
        id=f"{session_id[:8]}-{number}" if number else None,
        sep="\n",
    )


def parse_event_id(event_id: str, session_id: str) -> int | None:
    """Return the number in an event's id; None if the id does not belong to this session."""
    prefix, _, digits = event_id.rpartition("-")
    if prefix != session_id[:8] or not digits.isascii() or not digits.isdigit() or len(digits) > 15:
        return None
    return int(digits)


async def queue_messages(queue: ClientQueue) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the messages of a queue one by one, until it is closed."""
    frames: asyncio.Queue[Frame] = asyncio.Queue(1)
    running = asyncio.create_task(queue.run(frames.put))
    try:
        while True:
            frame = await result_before(frames.get(), running)
            if frame is None and frames.empty():
                return
            yield orjson.loads(frames.get_nowait() if frame is None else frame)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def result_before(awaitable: Awaitable[_T], end: asyncio.Future[Any]) -> _T | None:
    """Await a result; cancel it and return None if `end` is done first."""
    task = asyncio.ensure_future(awaitable)
    try:
        await asyncio.wait({task, end}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def events(context: RequestContext) -> Response:
    """Stream the events that the client missed, then new ones as they happen."""
    session = await context.session(ended=True)
    if context.sessions.draining:
        raise HttpError(503, RESTARTING.name, "The host is restarting; try again.", retry_after=1.0)
    last_event_id = context.request.headers.get(LAST_EVENT_ID, "")
    after, reset = await _position(session, context.sessions.runtime.store, last_event_id)
    following = _events(context, session, after, reset)
    if context.request.method != "GET":
        return EventStream(following)
    sessions, user, stream_id = context.sessions, context.identity.user, os.urandom(8).hex()
    await _reserve_stream(context, stream_id)
    return EventStream(following, on_end=lambda: sessions.release_stream(user, stream_id))


async def _reserve_stream(context: RequestContext, stream_id: str) -> None:
    """Count a stream against its user's limit, which applies to all hosts together."""
    streams, user = context.sessions.streams, context.identity.user
    limit = context.host.options.sessions_per_user
    try:
        await streams.take(user, stream_id)
        if len(await streams.held(user)) > limit:
            raise HttpError(429, "too_many_streams", f"Limit reached: {limit} event streams at once.")
    except BaseException:
        context.sessions.release_stream(user, stream_id)
        raise


async def _position(session: Session, store: Store, last_event_id: str) -> tuple[int, ResetReason | None]:
    """Return the number to continue after, and why the client may have gaps."""
    if not last_event_id:
        return 0, None
    number = parse_event_id(last_event_id, session.id)
    if number is None:
        return 0, "unknown"
    around = await store.read(stream(session.id), after=max(0, number - 1), limit=2)
    if number and (not around or around[-1].id < number):
        return 0, "unknown"
    following = [entry.id for entry in around if entry.id > number]
    return number, "expired" if following and following[0] != number + 1 else None


async def _events(
    context: RequestContext, session: Session, after: int, reset: ResetReason | None
) -> AsyncIterator[ServerSentEvent]:
    store = context.sessions.runtime.store
    try:
        if reset:
            yield to_server_sent_event(session.id, to_wire(Reset(reason=reset)))
        if not session.active:
            # There will be no new events.
            for message in (await replay(session, store, after)).messages:
                yield to_server_sent_event(session.id, message)
            return
        async with aclosing(_until_over(context, session, follow(session, store, after))) as following:
            async for message in following:
                yield to_server_sent_event(session.id, message)
        if last := _last_message(context):
            yield to_server_sent_event(session.id, to_wire(last))
    except StoreUnavailableError as error:
        # The client reconnects with the id of the last event it has.
        _log.warning("an event stream was ended because the store is unavailable: %s", error)


async def _until_over(
    context: RequestContext, session: Session, messages: AsyncGenerator[_T, None]
) -> AsyncGenerator[_T, None]:
    """Yield messages until the session ends, the host stops or the user's token expires."""
    over = asyncio.create_task(_wait_until_over(context, session))
    try:
        while (message := await result_before(anext(messages), over)) is not None:
            yield message
    finally:
        over.cancel()
        await messages.aclose()


async def _wait_until_over(context: RequestContext, session: Session) -> None:
    sessions = context.sessions
    while not (sessions.stopping.is_set() or _is_expired(context)):
        with suppress(TimeoutError):
            async with asyncio.timeout(_seconds_to_check(context)):
                await sessions.stopping.wait()
        with suppress(StoreUnavailableError):
            # The owner of the session, on whichever host, stores that it has ended.
            stored = await Session.resume(session.id, sessions.runtime.store)
            if stored is None or not stored.active:
                return
            try:
                await sessions.admission.check_ban(context.identity)
            except SessionRefused:
                # The client learns the reason when it reconnects.
                return


def _seconds_to_check(context: RequestContext) -> float:
    expires = context.identity.expires
    return CHECK_SECONDS if expires is None else min(CHECK_SECONDS, max(0.0, expires - time.time()))


def _is_expired(context: RequestContext) -> bool:
    return context.identity.expires is not None and context.identity.expires <= time.time()


def _last_message(context: RequestContext) -> HostMessage | None:
    """Return the message that says why a stream ends."""
    if context.sessions.stopping.is_set():
        return GoingAway(reason=RESTARTING.reason)
    if not _is_expired(context):
        return None
    message = f"The stream ends: {EXPIRED_TOKEN.reason}."
    return ErrorMessage(code=EXPIRED_TOKEN.name, message=message, suggestion=EXPIRED_TOKEN.advice)


EVENTS = Endpoint(
    "GET",
    "/events",
    "Follow the events of a session.",
    events,
    parameters=(
        SESSION_HEADER,
        EndpointParameter(
            LAST_EVENT_ID, "header", "The id of the last event that the client has.", {"type": "string"}
        ),
    ),
    responses={
        200: (
            ResponseForm("Events as they happen; a heartbeat is a comment.", "StreamedEvent", EVENT_STREAM),
        )
    },
    errors={404: "There is no such session."},
)

"""`POST /execute` as server-sent events: the events of one call as they happen, then its outcome.

The events come from the session's event log, with their ids. A client that lost the stream repeats the
request with the same key and `Last-Event-ID`, and gets what it missed, whichever host answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import orjson
from jackfield.session.session import Session
from jackfield.store import StoreUnavailableError
from jackfield_sessions.events import follow, replay
from sse_starlette import ServerSentEvent

from jackfield_host.endpoint import EVENT_STREAM, RequestContext
from jackfield_host.endpoints.events import (
    LAST_EVENT_ID,
    EventStream,
    parse_event_id,
    result_before,
    to_server_sent_event,
)
from jackfield_host.errors import to_http_error

_log = logging.getLogger(__name__)

RESULT = "result"
"""The name of the last event, with the status and the body that a response without a stream would have."""

Outcome = tuple[dict[str, Any], int]
"""The body and the status of the response to a call."""


def wants_stream(context: RequestContext) -> bool:
    """Return whether the client asks for server-sent events."""
    return EVENT_STREAM in context.request.headers.get("Accept", "")


def stream_call(
    context: RequestContext, session: Session, call_id: str, outcome: Coroutine[Any, Any, Outcome]
) -> EventStream:
    """Run a call and stream its events; it runs to its end even if the client stops reading."""
    after = parse_event_id(context.request.headers.get(LAST_EVENT_ID, ""), session.id) or 0
    running = asyncio.ensure_future(outcome)

    def stop_waiting() -> None:
        """Stop waiting; the call itself is shielded and continues."""
        running.cancel()

    return EventStream(_events(context, session, call_id, after, running), on_end=stop_waiting)


async def _events(
    context: RequestContext, session: Session, call_id: str, after: int, outcome: asyncio.Future[Outcome]
) -> AsyncIterator[ServerSentEvent]:
    store = context.sessions.runtime.store
    following, last = follow(session, store, after), after
    try:
        try:
            while (message := await result_before(anext(following), outcome)) is not None:
                last = message["id"]
                if message.get("callId") == call_id:
                    yield to_server_sent_event(session.id, message)
            # The events of a call are stored before it is answered.
            for message in (await replay(session, store, last)).messages:
                if message.get("callId") == call_id:
                    yield to_server_sent_event(session.id, message)
        except StoreUnavailableError as error:
            _log.warning("a call is streamed without its events: the store is unavailable: %s", error)
        yield await _result(outcome)
    finally:
        await following.aclose()


async def _result(outcome: asyncio.Future[Outcome]) -> ServerSentEvent:
    try:
        body, status = await outcome
    except Exception as error:  # noqa: BLE001 - the response has begun, so the error is its last event
        failed = to_http_error(error)
        body, status = {"error": failed.wire}, failed.status
    data = orjson.dumps({"type": RESULT, "status": status, **body}).decode()
    return ServerSentEvent(data, event=RESULT, sep="\n")

"""Messages of a session as server-sent events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from typing import Any, TypeVar

import orjson
from jackfield_sessions.hub import ClientQueue, Frame
from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.types import Receive, Scope, Send

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

BEAT_SECONDS = 15
"""A stream that has nothing to tell sends a comment so often, so that nobody takes it for dead."""

SEND_SECONDS = 30.0
"""A client that takes nothing for so long is let go."""


def event_id(session_id: str, number: int) -> str:
    """An event's id in a stream: it tells of which session the event is."""
    return f"{session_id[:8]}-{number}"


def number_of(event: str, session_id: str) -> int | None:
    """The number in an event's id; nothing when it is no id of this session's."""
    prefix, _, digits = event.rpartition("-")
    if prefix != session_id[:8] or not digits.isascii() or not digits.isdigit() or len(digits) > 15:
        return None
    return int(digits)


def sent(session_id: str, message: Mapping[str, Any]) -> ServerSentEvent:
    """A message as it goes over the stream: its type is the event's name."""
    number = message.get("id")
    return ServerSentEvent(
        orjson.dumps(message, default=str).decode(),
        event=message["type"],
        id=event_id(session_id, number) if number else None,
        sep="\n",
    )


async def fetched(queue: ClientQueue) -> AsyncGenerator[dict[str, Any], None]:
    """The messages of a queue, one at a time as they are asked for, until it is closed."""
    handed: asyncio.Queue[Frame] = asyncio.Queue(1)
    running = asyncio.create_task(queue.run(handed.put))
    try:
        while True:
            frame = await first(handed.get(), running)
            if frame is None and handed.empty():
                return
            yield orjson.loads(handed.get_nowait() if frame is None else frame)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def first(wanted: Awaitable[_T], end: asyncio.Future[Any]) -> _T | None:
    """What is wanted, or nothing when the end comes before it; nothing is left waiting for it then."""
    coming = asyncio.ensure_future(wanted)
    try:
        await asyncio.wait({coming, end}, return_when=asyncio.FIRST_COMPLETED)
        return coming.result() if coming.done() else None
    finally:
        if not coming.done():
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


class Stream(EventSourceResponse):
    """A stream with a heartbeat, at a client's own speed and not slower than that."""

    def __init__(self, events: AsyncIterator[ServerSentEvent]) -> None:
        super().__init__(events, ping=BEAT_SECONDS, sep="\n", send_timeout=SEND_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until one side ends it."""
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            _log.info("a client that takes nothing from its stream is let go")

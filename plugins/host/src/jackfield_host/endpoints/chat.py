"""`POST /chat`: one message of the user, and the turn that answers it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from jackfield.protocol.close_codes import CloseReason, NextStep
from jackfield.protocol.codec import to_wire
from jackfield.protocol.messages import ErrorMessage
from jackfield_sessions.hub import ClientQueue
from jackfield_sessions.live_session import LiveSession
from jackfield_sessions.session_factory import ClientLocale
from sse_starlette import ServerSentEvent
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoints.operation import EVENT_STREAM, MAY_BE_NAMED, Operation, Said
from jackfield_host.endpoints.operations import operates
from jackfield_host.endpoints.streaming import Stream, fetched, sent
from jackfield_host.endpoints.visit import Visit
from jackfield_host.errors import HttpError
from jackfield_host.wire.answers import ChatAnswer, StreamedEvent
from jackfield_host.wire.bodies import ChatBody

Messages = AsyncGenerator[dict[str, Any], None]

_ANSWERED = CloseReason("answered", 1000, "the turn is over", "", NextStep.DONE)

_NO_ANSWER = frozenset({"store_unavailable", "provider_unavailable", "internal"})
"""Errors after which no answer to what was said will come."""


class _Turn(ClientQueue):
    """Hears a conversation from a user's message to the end of its answer."""

    def __init__(self, live: LiveSession, limit: int) -> None:
        super().__init__(limit, audio=False)
        self._live = live
        self._begun = False

    def send(self, message: Mapping[str, Any] | str) -> None:
        """Send a message, and nothing behind the last one."""
        super().send(message)
        if isinstance(message, str):
            # A text delta is never the last one.
            return
        if message["type"] == "message" and message["speaker"] == "user":
            self._begun = True
        elif self._is_last(message):
            self.close(_ANSWERED)

    def close(self, closing: CloseReason) -> None:
        """Send what waits, then nothing more; whether or not anybody fetches it, the session is left."""
        super().close(closing)
        # Not at once: whoever tells this is still going through those who listen.
        asyncio.get_running_loop().call_soon(self._live.detach, self)

    def _is_last(self, message: Mapping[str, Any]) -> bool:
        match message["type"]:
            case "error":
                return message["code"] in _NO_ANSWER
            case "turn_complete":
                return self._begun
            case "interrupted":
                # An answer that was cut short by these very words is another one than theirs.
                return self._begun and not self._live.checkpoint.response_pending
        return False


async def chat(visit: Visit) -> Response:
    """Say something, and stream or collect what comes of it."""
    visit.check_mode("text")
    body = await visit.body(ChatBody)
    if not body.message.strip():
        raise HttpError(400, "invalid", "The body, at message: there is nothing in it.")
    live = await _live_session(visit, ClientLocale(body.time_zone, body.language))
    turn = _Turn(live, visit.house.options.queue_bytes)
    info = visit.sessions.session_info(live, resumed=visit.token is not None, operator=operates(visit))
    live.hub.attach(turn)
    live.send_text(body.message)
    messages = _messages(live, turn, to_wire(info))
    if _wants_json(visit):
        return JSONResponse(await _collected(messages))
    return Stream(_events(live, messages))


async def _live_session(visit: Visit, locale: ClientLocale) -> LiveSession:
    if visit.token is None:
        return await visit.sessions.open("text", visit.identity, locale)
    session = await visit.session()
    if session.mode != "text":
        raise HttpError(409, "wrong_mode", f"This session is one of /ws/{session.mode}.")
    return await visit.sessions.resume(visit.token, visit.identity, locale)


def _wants_json(visit: Visit) -> bool:
    accepted = visit.request.headers.get("accept", "")
    return "application/json" in accepted and EVENT_STREAM not in accepted


async def _messages(live: LiveSession, turn: _Turn, first: dict[str, Any]) -> Messages:
    """The messages of a turn; whoever stops listening does not stop it."""
    try:
        yield first
        async with aclosing(fetched(turn)) as messages:
            async for message in messages:
                yield message
        if turn.closing is not None and turn.closing is not _ANSWERED:
            yield _cut_off(turn.closing)
    finally:
        live.detach(turn)


async def _events(live: LiveSession, messages: Messages) -> AsyncIterator[ServerSentEvent]:
    async with aclosing(messages):
        async for message in messages:
            yield sent(live.session.id, message)


def _cut_off(closing: CloseReason) -> dict[str, Any]:
    message = f"The answer was cut off: {closing.reason}."
    return to_wire(ErrorMessage(code=closing.name, message=message, suggestion=closing.advice))


async def _collected(messages: Messages) -> dict[str, Any]:
    async with aclosing(messages):
        first = await anext(messages)
        events = [message async for message in messages]
    last = events[-1]
    if last["type"] == "error":
        raise HttpError(503, last["code"], last["message"], suggestion=last.get("suggestion"))
    said = {each["answer"]: each["text"] for each in events if _is_answer(each)}
    text = "\n".join(said.values())
    return {"session": first["session"], "token": first["token"], "text": text, "events": events}


def _is_answer(message: Mapping[str, Any]) -> bool:
    return bool(message["type"] == "message" and message["speaker"] == "assistant")


CHAT = Operation(
    "POST",
    "/chat",
    "Say something in a text session, and get the turn that answers it.",
    chat,
    body=ChatBody,
    parameters=(MAY_BE_NAMED,),
    answers={
        200: (
            Said("The messages of the turn, `session` first.", StreamedEvent, EVENT_STREAM),
            Said("The turn as a whole, for `Accept: application/json`.", ChatAnswer),
        )
    },
    fails={
        404: "There is no such session.",
        409: "The session is one of voice.",
        410: "The session has ended.",
    },
)

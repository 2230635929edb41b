"""`POST /chat`: sends one message from the user, and returns the turn that answers it."""

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

from jackfield_host.endpoint import (
    EVENT_STREAM,
    OPTIONAL_SESSION_HEADER,
    Endpoint,
    RequestContext,
    ResponseForm,
)
from jackfield_host.endpoints.events import EventStream, queue_messages, to_server_sent_event
from jackfield_host.errors import HttpError

Messages = AsyncGenerator[dict[str, Any], None]

_ANSWERED = CloseReason("answered", 1000, "the turn is over", "", NextStep.DONE)

_NO_ANSWER = frozenset({"store_unavailable", "provider_unavailable", "internal"})
"""The errors after which a message gets no answer."""


class _TurnQueue(ClientQueue):
    """Collects the messages of a session from a user's message to the end of its answer."""

    def __init__(self, live: LiveSession, limit: int) -> None:
        super().__init__(limit, audio=False)
        self._live = live
        self._begun = False

    def send(self, message: Mapping[str, Any] | str) -> None:
        """Queue a message, and close the queue after the last one of the turn."""
        super().send(message)
        if isinstance(message, str):
            # A text delta is never the last message.
            return
        if message["type"] == "message" and message["speaker"] == "user":
            self._begun = True
        elif self._is_last(message):
            self.close(_ANSWERED)

    def close(self, closing: CloseReason) -> None:
        """Deliver what is queued, then nothing more; always detach from the session."""
        super().close(closing)
        # Not at once, because the hub is iterating over its clients.
        asyncio.get_running_loop().call_soon(self._live.detach, self)

    def _is_last(self, message: Mapping[str, Any]) -> bool:
        match message["type"]:
            case "error":
                return message["code"] in _NO_ANSWER
            case "turn_complete":
                return self._begun
            case "interrupted":
                # If this message interrupted an earlier answer, its own answer is still to come.
                return self._begun and not self._live.checkpoint.response_pending
        return False


async def chat(context: RequestContext) -> Response:
    """Send a message, and stream or collect the turn that answers it."""
    from jackfield_host.request_models import ChatBody

    context.check_mode("text")
    body = await context.body(ChatBody)
    if not body.message.strip():
        raise HttpError(400, "invalid", "Invalid body at message: the message is empty.")
    live = await _live_session(context, ClientLocale(body.time_zone, body.language))
    turn = _TurnQueue(live, context.host.options.queue_bytes)
    info = context.sessions.session_info(
        live, resumed=context.session_token is not None, operator=context.is_operator
    )
    live.hub.attach(turn)
    live.send_text(body.message)
    messages = _messages(live, turn, to_wire(info))
    if _wants_json(context):
        return JSONResponse(await _collect(messages))
    return EventStream(_events(live, messages))


async def _live_session(context: RequestContext, locale: ClientLocale) -> LiveSession:
    if context.session_token is None:
        return await context.sessions.open("text", context.identity, locale)
    session = await context.session()
    if session.mode != "text":
        raise HttpError(
            409, "wrong_mode", f"This is a {session.mode} session; connect to /ws/{session.mode}."
        )
    return await context.sessions.resume(context.session_token, context.identity, locale)


def _wants_json(context: RequestContext) -> bool:
    accepted = context.request.headers.get("accept", "")
    return "application/json" in accepted and EVENT_STREAM not in accepted


async def _messages(live: LiveSession, turn: _TurnQueue, first: dict[str, Any]) -> Messages:
    """Yield the messages of a turn; the turn continues if the client stops reading."""
    try:
        yield first
        async with aclosing(queue_messages(turn)) as messages:
            async for message in messages:
                yield message
        if turn.closing is not None and turn.closing is not _ANSWERED:
            yield _interrupted(turn.closing)
    finally:
        live.detach(turn)


async def _events(live: LiveSession, messages: Messages) -> AsyncIterator[ServerSentEvent]:
    async with aclosing(messages):
        async for message in messages:
            yield to_server_sent_event(live.session.id, message)


def _interrupted(closing: CloseReason) -> dict[str, Any]:
    message = f"The answer is incomplete: {closing.reason}."
    return to_wire(ErrorMessage(code=closing.name, message=message, suggestion=closing.advice))


async def _collect(messages: Messages) -> dict[str, Any]:
    async with aclosing(messages):
        first = await anext(messages)
        events = [message async for message in messages]
    last = events[-1]
    if last["type"] == "error":
        raise HttpError(503, last["code"], last["message"], suggestion=last.get("suggestion"))
    answers = {each["answer"]: each["text"] for each in events if _is_answer(each)}
    text = "\n".join(answers.values())
    return {"session": first["session"], "token": first["token"], "text": text, "events": events}


def _is_answer(message: Mapping[str, Any]) -> bool:
    return bool(message["type"] == "message" and message["speaker"] == "assistant")


CHAT = Endpoint(
    "POST",
    "/chat",
    "Send a message in a text session, and get the turn that answers it.",
    chat,
    body="ChatBody",
    parameters=(OPTIONAL_SESSION_HEADER,),
    responses={
        200: (
            ResponseForm("The messages of the turn, `session` first.", "StreamedEvent", EVENT_STREAM),
            ResponseForm("The complete turn, for `Accept: application/json`.", "ChatResponse"),
        )
    },
    errors={
        404: "There is no such session.",
        409: "The session is a voice session.",
        410: "The session has ended.",
    },
)

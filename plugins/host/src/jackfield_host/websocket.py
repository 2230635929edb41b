"""`/ws/text` and `/ws/voice`: serves a session over a WebSocket, from the handshake to the close."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import cast

from jackfield import Mode
from jackfield.protocol import PROTOCOL
from jackfield.protocol.close_codes import (
    EXPIRED_TOKEN,
    INTERNAL,
    INVALID_MESSAGE,
    RESTARTING,
    SLOW_CLIENT,
    CloseReason,
)
from jackfield.protocol.codec import InvalidMessageError, encode, to_wire
from jackfield.protocol.messages import (
    CaughtUp,
    ErrorMessage,
    Reset,
    Start,
)
from jackfield.store import StoreUnavailableError
from jackfield_sessions.admission import Identity, SessionRefused
from jackfield_sessions.hub import ClientQueue, Frame
from jackfield_sessions.hub import Send as SendFrame
from jackfield_sessions.live_session import LiveSession
from jackfield_sessions.manager import MAINTENANCE_SECONDS
from jackfield_sessions.session_factory import ClientLocale
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from jackfield_host.errors import HttpError, to_http_error
from jackfield_host.host import Host
from jackfield_host.security.auth_errors import AuthError
from jackfield_host.security.authenticator import RequestInfo, accepted_subprotocol, supports_protocol
from jackfield_host.uvicorn_protocols import BinaryWriter, open_binary_shortcut
from jackfield_host.validators import load_validators

_log = logging.getLogger(__name__)

CLOSE_SECONDS = 5.0
"""How long a client that does not read may keep its connection once the host closes it."""


class WebSocketEndpoint:
    """The ASGI application at `/ws/text` or `/ws/voice`."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        websocket = WebSocket(scope, receive, send)
        host = Host.of(websocket)
        try:
            identity = await self._admit(host, scope, websocket.headers)
        except (AuthError, HttpError, StoreUnavailableError) as error:
            # Before the handshake completes, so that a proxy can try another host.
            await websocket.send_denial_response(to_http_error(error).response())
            return
        # A text session has no audio, so its few messages all go through the parser.
        write_binary = open_binary_shortcut(scope) if self._mode == "voice" else None
        await websocket.accept(accepted_subprotocol(websocket.headers))
        session = WebSocketSession(host, websocket, receive, identity, self._mode, write_binary)
        closing = await session.run()
        if closing is not None:
            await _close(websocket, closing)

    async def _admit(self, host: Host, scope: Scope, headers: Headers) -> Identity:
        """Return the user of a handshake, or raise the reason for denying it."""
        identity = host.authenticator.authenticate(RequestInfo.from_scope(scope))
        if identity.mode not in (None, self._mode):
            raise AuthError("bad_token")
        if not supports_protocol(headers):
            message = f"This host supports only the subprotocol {PROTOCOL}, which the client does not offer."
            raise HttpError(400, "unknown_protocol", message)
        if host.sessions.draining:
            message = "The host is restarting; connect again in a moment."
            raise HttpError(503, RESTARTING.name, message, headers={"Retry-After": "1"})
        seconds = await host.request_limits.take(identity.user)
        if seconds > 0:
            message = f"Rate limit reached: {host.options.requests_per_minute:g} connections per minute."
            raise HttpError(429, "too_many_requests", message, headers={"Retry-After": str(int(seconds) + 1)})
        return identity


async def _close(websocket: WebSocket, closing: CloseReason) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await websocket.close(closing.code, closing.reason)
    except (TimeoutError, RuntimeError, WebSocketDisconnect):
        # The client is gone or does not read; the server aborts the connection.
        pass


class WebSocketSession:
    """One client's connection to a session."""

    def __init__(  # noqa: PLR0917
        self,
        host: Host,
        websocket: WebSocket,
        receive: Receive,
        identity: Identity,
        mode: Mode,
        write_binary: BinaryWriter | None,
    ) -> None:
        self._host = host
        self._websocket = websocket
        self._receive = receive
        self._write_binary = write_binary
        self._identity = identity
        self._mode = mode
        self._queue = ClientQueue(host.options.queue_bytes, audio=mode == "voice", write_audio=write_binary)
        self._expiry: asyncio.TimerHandle | None = None

    async def run(self) -> CloseReason | None:
        """Serve the connection until one side closes it; return the reason if the host does."""
        try:
            live = await self._begin()
        except WebSocketDisconnect:
            return None
        except Exception as error:  # noqa: BLE001 - an error must not affect the other sessions
            return await self._refuse(error)
        try:
            return await self._exchange(live)
        except Exception:  # noqa: BLE001
            _log.exception("the connection of session %s failed", live.session.id)
            return INTERNAL
        finally:
            live.detach(self._queue)

    async def _begin(self) -> LiveSession:
        text = await self._first_text()
        await load_validators()
        from jackfield_host.client_messages import parse_first_message

        first = parse_first_message(text)
        sessions = self._host.sessions
        locale = ClientLocale(first.time_zone, first.language)
        if isinstance(first, Start):
            live = await sessions.open(
                self._mode,
                self._identity,
                locale,
                handover=first.handover,
                forms=first.forms,
                model=first.model,
            )
            await self._catch_up(live, 0, resumed=False)
            return live
        # Checked first, because a client of the wrong mode must not take the session from its owner.
        session = await sessions.load_session(first.token, self._identity)
        if session.mode != self._mode:
            raise InvalidMessageError(f"This is a {session.mode} session; connect to /ws/{session.mode}.")
        live = await sessions.resume(first.token, self._identity, locale, forms=first.forms)
        await self._catch_up(live, first.last_event, resumed=True)
        return live

    async def _first_text(self) -> str:
        seconds = self._host.options.start_seconds
        try:
            async with asyncio.timeout(seconds):
                message = await self._websocket.receive()
        except TimeoutError:
            raise InvalidMessageError(f"No message arrived within {seconds:g} seconds.") from None
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect
        text: str | None = message.get("text")
        if text is None or len(text) > self._host.options.message_bytes:
            raise InvalidMessageError("The first message must be `start` or `resume`, as JSON.")
        return text

    async def _catch_up(self, live: LiveSession, last_event: int, *, resumed: bool) -> None:
        """Attach the client, and send what it missed without a gap or a duplicate."""
        self._queue.pause()
        live.attach(self._queue)
        operator = self._host.is_operator(self._identity)
        info = self._host.sessions.session_info(live, resumed=resumed, operator=operator)
        try:
            missed = await live.hub.log.since(last_event)
        except BaseException:
            live.detach(self._queue)
            raise
        reset = [to_wire(Reset(reason=missed.reset))] if missed.reset else []
        self._queue.resume([to_wire(info), *reset, *missed.messages, to_wire(CaughtUp())])

    async def _refuse(self, error: Exception) -> CloseReason:
        """Send the client the reason for the refusal; return the close reason."""
        closing = INTERNAL
        message = ErrorMessage(
            code=INTERNAL.name, message="The host failed with an internal error.", suggestion="Try again."
        )
        match error:
            case SessionRefused():
                closing, message = error.closing, error.to_message()
            case InvalidMessageError():
                closing = INVALID_MESSAGE
                message = ErrorMessage(
                    code=closing.name,
                    message=str(error),
                    suggestion="Begin with a valid `start` or `resume` message.",
                )
            case StoreUnavailableError():
                _log.error("a session could not start: %s", error)
                message = ErrorMessage(
                    code="store_unavailable",
                    message="The session store is unavailable.",
                    suggestion="Try again in a moment.",
                )
            case _:
                _log.error("a session could not start", exc_info=error)
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._websocket.send_text(encode(message).decode())
        except (TimeoutError, RuntimeError, WebSocketDisconnect):
            pass
        return closing

    async def _exchange(self, live: LiveSession) -> CloseReason | None:
        from jackfield_host.client_messages import MessageReceiver

        receiver = MessageReceiver(self._host, self._identity, live, self._queue)
        # A text session has no audio, so all its frames are text.
        send = cast("SendFrame", self._websocket.send_text) if self._mode == "text" else self._send
        sending = asyncio.create_task(self._queue.run(send))
        receiving = asyncio.create_task(receiver.run(self._receive))
        self._close_when_expired()
        try:
            await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
            if receiving.done() and (closing := receiving.result()) is not None:
                # The queue still holds the error message that gives the reason.
                self._queue.close(closing)
                await asyncio.wait({sending}, timeout=CLOSE_SECONDS)
                return closing
            if self._queue.closing is SLOW_CLIENT:
                return SLOW_CLIENT
            return sending.result() if sending.done() else None
        except WebSocketDisconnect:
            return None
        finally:
            if self._expiry is not None:
                self._expiry.cancel()
            for task in (sending, receiving):
                task.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)

    def _close_when_expired(self) -> None:
        """Close the connection when the access token expires."""
        if self._identity.expires is None:
            return
        left = self._identity.expires - time.time()
        if left <= 0:
            self._queue.close(EXPIRED_TOKEN)
            return
        # Checked again regularly, because the system clock may change meanwhile.
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(min(left, MAINTENANCE_SECONDS), self._close_when_expired)

    async def _send(self, frame: Frame) -> None:
        """Send a frame to the client."""
        if isinstance(frame, str):
            await self._websocket.send_text(frame)
        elif self._write_binary is None or not self._write_binary(frame):
            # Waits until the client has read enough, or reports that it is gone.
            await self._websocket.send_bytes(frame)

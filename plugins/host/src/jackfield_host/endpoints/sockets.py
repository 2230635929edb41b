"""`/ws/text` and `/ws/voice`: a session over a WebSocket, from the handshake to the close."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from jackfield import Mode
from jackfield.protocol import PROTOCOL
from jackfield.protocol.close_codes import EXPIRED, FAILED, MISUNDERSTOOD, RESTARTING, TOO_SLOW, Closing
from jackfield.store import StoreUnavailableError
from jackfield_sessions.admission import Identity, SessionRefused
from jackfield_sessions.hub import ClientQueue, Frame
from jackfield_sessions.live_session import LiveSession
from jackfield_sessions.manager import MAINTENANCE_SECONDS
from jackfield_sessions.session_factory import ClientLocale
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from jackfield_host.endpoints.hearing import Hearing
from jackfield_host.endpoints.operations import is_operator
from jackfield_host.house import House
from jackfield_host.security.gate import Arrival, spoken, understood
from jackfield_host.security.identity import Refused
from jackfield_host.wire import incoming
from jackfield_host.wire.outgoing import error

_log = logging.getLogger(__name__)

CLOSE_SECONDS = 5.0
"""How long a client that does not read may keep its connection after it was let go."""


class TextSocket:
    """The ASGI application at `/ws/text`."""

    mode: Mode = "text"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        websocket = WebSocket(scope, receive, send)
        house = House.of(websocket)
        try:
            identity = _admitted(house, scope, self.mode)
        except Refused as refused:
            await websocket.send_denial_response(
                _denied(refused.status, refused.code, refused.sentence, refused.headers)
            )
            return
        if denial := _foreign(websocket) or _unwelcome(house, identity):
            await websocket.send_denial_response(denial)
            return
        await websocket.accept(spoken(websocket.headers))
        connection = _Connection(house, websocket, identity, self.mode)
        closing = await connection.run()
        if closing is not None:
            await _close(websocket, closing)


class VoiceSocket(TextSocket):
    """The ASGI application at `/ws/voice`."""

    mode: Mode = "voice"


def _admitted(house: House, scope: Scope, mode: Mode) -> Identity:
    identity = house.gate.admit(Arrival.of(scope))
    if identity.mode not in (None, mode):
        raise Refused("bad_token")
    return identity


def _foreign(websocket: WebSocket) -> JSONResponse | None:
    """What a client is told that was written for another version of the protocol."""
    if understood(websocket.headers):
        return None
    sentence = f"This host speaks the subprotocol {PROTOCOL}, and the client offers only others."
    return _denied(400, "unknown_protocol", sentence, {})


def _unwelcome(house: House, identity: Identity) -> JSONResponse | None:
    """Why somebody who may come in cannot now; before the handshake, so that a proxy can ask another host."""
    if house.sessions.draining:
        sentence = "The host is restarting; connect again in a moment."
        return _denied(503, RESTARTING.name, sentence, {"Retry-After": "1"})
    seconds = house.requests.take(identity.user)
    if seconds > 0:
        sentence = f"You may connect {house.options.requests_per_minute:g} times a minute, and have."
        return _denied(429, "too_many_requests", sentence, {"Retry-After": str(int(seconds) + 1)})
    return None


def _denied(status: int, code: str, sentence: str, headers: dict[str, str]) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": sentence}}, status, headers=headers)


async def _close(websocket: WebSocket, closing: Closing) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await websocket.close(closing.code, closing.reason)
    except (TimeoutError, RuntimeError, WebSocketDisconnect):
        # It is gone, or does not read: the server reaps it.
        pass


class _Connection:
    """One client on the line."""

    def __init__(self, house: House, websocket: WebSocket, identity: Identity, mode: Mode) -> None:
        self._house = house
        self._websocket = websocket
        self._identity = identity
        self._mode = mode
        self._queue = ClientQueue(house.options.queue_bytes, audio=mode == "voice")
        self._expiry: asyncio.TimerHandle | None = None

    async def run(self) -> Closing | None:
        """Hold the connection until one side ends it; why we do, if it is us."""
        try:
            live = await self._begin()
        except WebSocketDisconnect:
            return None
        except Exception as reason:  # noqa: BLE001 - whatever it is, it must not reach the other sessions
            return await self._turn_away(reason)
        try:
            return await self._hold(live)
        except Exception:  # noqa: BLE001
            _log.exception("the connection of session %s failed", live.session.id)
            return FAILED
        finally:
            live.detach(self._queue)

    async def _turn_away(self, reason: Exception) -> Closing:
        """Say why there is no session for this client; what to close with."""
        closing, told = FAILED, error("failed", "The host failed at that.", "Try again.")
        match reason:
            case SessionRefused():
                closing = reason.closing
                told = error(closing.name, reason.message, retry_after=reason.retry_after)
            case incoming.MisunderstoodError():
                closing = MISUNDERSTOOD
                told = error(closing.name, str(reason), "Begin with `start` or `resume`.")
            case StoreUnavailableError():
                _log.error("a connection could not begin: %s", reason)
                told = error("store_unavailable", "The host cannot remember anything now.", "Try again soon.")
            case _:
                _log.error("a connection could not begin", exc_info=reason)
        await self._tell(told)
        return closing

    async def _begin(self) -> LiveSession:
        first = incoming.read_opening(await self._first_text())
        sessions = self._house.sessions
        locale = ClientLocale(first.time_zone, first.language)
        if isinstance(first, incoming.Start):
            live = await sessions.open(
                self._mode, self._identity, locale, handover=first.handover, forms=first.forms
            )
            await self._catch_up(live, 0, resumed=False)
            return live
        # Before it is taken over: who knocks at the wrong door must not take a session from its host.
        session = await sessions.load_session(first.token, self._identity)
        if session.mode != self._mode:
            raise incoming.MisunderstoodError(f"this session is one of /ws/{session.mode}")
        live = await sessions.resume(first.token, self._identity, locale, forms=first.forms)
        await self._catch_up(live, first.last_event, resumed=True)
        return live

    async def _first_text(self) -> str:
        seconds = self._house.options.start_seconds
        try:
            async with asyncio.timeout(seconds):
                message = await self._websocket.receive()
        except TimeoutError:
            raise incoming.MisunderstoodError(f"nothing was said within {seconds:g} seconds") from None
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect
        text: str | None = message.get("text")
        if text is None or len(text) > self._house.options.message_bytes:
            raise incoming.MisunderstoodError("the first message is `start` or `resume`, as JSON")
        return text

    async def _catch_up(self, live: LiveSession, last_event: int, *, resumed: bool) -> None:
        """Join without a gap and without telling anything twice."""
        self._queue.pause()
        live.attach(self._queue)
        operator = is_operator(self._house, self._identity)
        told = [self._house.sessions.session_info(live, resumed=resumed, operator=operator)]
        try:
            missed = await live.hub.log.since(last_event)
        except BaseException:
            live.detach(self._queue)
            raise
        if missed.reset:
            told.append({"type": "reset", "reason": missed.reset})
        self._queue.resume([*told, *missed.messages, {"type": "caught_up"}])

    async def _hold(self, live: LiveSession) -> Closing | None:
        hearing = Hearing(self._house, self._identity, live, self._queue)
        writing = asyncio.create_task(self._queue.run(self._send))
        reading = asyncio.create_task(hearing.run(self._websocket))
        self._let_go_when_expired()
        try:
            await asyncio.wait({writing, reading}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done() and (closing := reading.result()) is not None:
                # What was told before the close says why, and for how long.
                self._queue.close(closing)
                await asyncio.wait({writing}, timeout=CLOSE_SECONDS)
                return closing
            if self._queue.closing is TOO_SLOW:
                return TOO_SLOW
            return writing.result() if writing.done() else None
        except WebSocketDisconnect:
            return None
        finally:
            if self._expiry is not None:
                self._expiry.cancel()
            for task in (writing, reading):
                task.cancel()
            await asyncio.gather(writing, reading, return_exceptions=True)

    def _let_go_when_expired(self) -> None:
        """A token that has run out lets nobody in; nor does it keep anybody in."""
        if self._identity.expires is None:
            return
        left = self._identity.expires - time.time()
        if left <= 0:
            self._queue.close(EXPIRED)
            return
        # Looked at again now and then, because the clock by which tokens end may be set meanwhile.
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(min(left, MAINTENANCE_SECONDS), self._let_go_when_expired)

    async def _send(self, frame: Frame) -> None:
        if isinstance(frame, str):
            await self._websocket.send_text(frame)
        else:
            await self._websocket.send_bytes(frame)

    async def _tell(self, message: dict[str, Any]) -> None:
        """Tell a client that is not on the line yet."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._websocket.send_json(message)
        except (TimeoutError, RuntimeError, WebSocketDisconnect):
            pass

"""`/ws/text` and `/ws/voice`: a session over a WebSocket, from the handshake to the close."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from jackfield import Mode
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from jackfield_host.house import House
from jackfield_host.security.allowances import Allowance
from jackfield_host.security.gate import Arrival, spoken
from jackfield_host.security.identity import Identity, Refused
from jackfield_host.talks.outlet import Frame, Outlet
from jackfield_host.talks.switchboard import Place, TurnedAwayError
from jackfield_host.talks.talk import Talk
from jackfield_host.wire import PROTOCOL, incoming
from jackfield_host.wire.closing import ENDED, FAILED, MISUNDERSTOOD, TOO_SLOW, Closing

_log = logging.getLogger(__name__)

BYTES_PER_SECOND = 48_000
"""PCM16, 24 kHz, mono."""

MOST_MISTAKES = 10
"""A client that says so much that is no message speaks another protocol."""

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
            answer = {"error": {"code": refused.code, "message": refused.sentence}}
            await websocket.send_denial_response(
                JSONResponse(answer, refused.status, headers=refused.headers)
            )
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
        options = house.options
        self._house = house
        self._websocket = websocket
        self._identity = identity
        self._mode = mode
        self._outlet = Outlet(options.queue_bytes, sound=mode == "voice")
        self._messages = Allowance(options.messages_per_second, 4 * options.messages_per_second)
        ahead = options.audio_ahead_seconds * BYTES_PER_SECOND
        self._sound = Allowance(BYTES_PER_SECOND, ahead + options.message_bytes)
        self._mistakes = 0

    async def run(self) -> Closing | None:
        """Hold the connection until one side ends it; why we do, if it is us."""
        try:
            talk = await self._begin()
        except TurnedAwayError as away:
            await self._tell(_error(away.closing.name, away.message, retry_after=away.retry_after))
            return away.closing
        except incoming.MisunderstoodError as wrong:
            await self._tell(_error("misunderstood", str(wrong), "Begin with `start` or `resume`."))
            return MISUNDERSTOOD
        except TimeoutError:
            return MISUNDERSTOOD
        except WebSocketDisconnect:
            return None
        except Exception:  # noqa: BLE001 - whatever it is, it must not reach the other sessions
            _log.exception("a connection could not begin")
            return FAILED
        try:
            return await self._hold(talk)
        finally:
            talk.leave(self._outlet)

    async def _begin(self) -> Talk:
        async with asyncio.timeout(self._house.options.start_seconds):
            first = incoming.read_opening(await self._first_text())
        switchboard = self._house.switchboard
        place = Place(first.time_zone, first.language)
        if isinstance(first, incoming.Start):
            talk = await switchboard.open(self._mode, self._identity, place, handover=first.handover)
            await self._catch_up(talk, 0, resumed=False)
            return talk
        talk = await switchboard.resume(first.token, self._identity, place)
        if talk.session.mode != self._mode:
            raise incoming.MisunderstoodError(f"this session is one of /ws/{talk.session.mode}")
        await self._catch_up(talk, first.last_event, resumed=True)
        return talk

    async def _first_text(self) -> str:
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect
        text: str | None = message.get("text")
        if text is None or len(text) > self._house.options.message_bytes:
            raise incoming.MisunderstoodError("the first message is `start` or `resume`, as JSON")
        return text

    async def _catch_up(self, talk: Talk, last_event: int, *, resumed: bool) -> None:
        """Join without a gap and without telling anything twice."""
        self._outlet.hold()
        talk.join(self._outlet)
        welcome = self._welcome(talk, resumed)
        missed = await talk.feed.events.since(last_event)
        told = [welcome]
        if missed.reset:
            told.append({"type": "reset", "reason": missed.reset})
        told += missed.messages
        newest = missed.messages[-1]["id"] if missed.messages else 0
        self._outlet.release(told, after=newest)

    def _welcome(self, talk: Talk, resumed: bool) -> dict[str, Any]:
        session, switchboard = talk.session, self._house.switchboard
        tools = switchboard.runtime.registry.summaries(session.mode)
        return {
            "type": "session",
            "protocol": PROTOCOL,
            "session": session.id,
            "token": session.token,
            "mode": session.mode,
            "user": self._identity.user,
            "provider": switchboard.provider,
            "registry": session.registry_version,
            "tools": [{"id": tool, "summary": summary} for tool, summary in tools.items()],
            "resumed": resumed,
            "state": session.state.value,
            "lastEvent": talk.feed.events.last,
            "partial": talk.partial,
        }

    async def _hold(self, talk: Talk) -> Closing | None:
        writing = asyncio.create_task(self._outlet.run(self._send))
        reading = asyncio.create_task(self._read(talk))
        try:
            await asyncio.wait({writing, reading}, return_when=asyncio.FIRST_COMPLETED)
            if self._outlet.closing is TOO_SLOW:
                return TOO_SLOW
            if reading.done() and (closing := reading.result()) is not None:
                return closing
            return writing.result() if writing.done() else None
        except WebSocketDisconnect:
            return None
        finally:
            for task in (writing, reading):
                task.cancel()
            await asyncio.gather(writing, reading, return_exceptions=True)

    async def _read(self, talk: Talk) -> Closing | None:
        """Take what the client says, until it is gone or has to go."""
        receive = self._websocket.receive
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return None
            sound: bytes | None = message.get("bytes")
            try:
                if sound is not None:
                    await self._hear(talk, sound)
                elif await self._heed(talk, message["text"]):
                    return ENDED
            except incoming.MisunderstoodError as wrong:
                self._mistakes += 1
                self._outlet.tell(_error("misunderstood", str(wrong)))
                if self._mistakes >= MOST_MISTAKES:
                    return MISUNDERSTOOD
            except TurnedAwayError as away:
                self._outlet.tell(_error(away.closing.name, away.message, retry_after=away.retry_after))
                return away.closing

    async def _hear(self, talk: Talk, sound: bytes) -> None:
        if self._mode != "voice":
            raise incoming.MisunderstoodError("sound belongs to /ws/voice")
        if len(sound) > self._house.options.message_bytes or len(sound) % 2:
            raise incoming.MisunderstoodError(
                f"a frame of sound has an even number of bytes, at most {self._house.options.message_bytes}"
            )
        await _wait_for(self._sound, len(sound))
        await talk.conversation.listen(sound)

    async def _heed(self, talk: Talk, text: str) -> bool:
        """Do what a message asks for; whether it is the end."""
        if len(text) > self._house.options.message_bytes:
            raise incoming.MisunderstoodError("the message is too long")
        said = incoming.read_spoken(text)
        if isinstance(said, incoming.Playback):
            talk.conversation.heard(said.item, said.ms)
            return False
        await _wait_for(self._messages, 1)
        match said:
            case incoming.Text():
                await self._house.switchboard.check_ban(self._identity)
                talk.say(said.text)
            case incoming.Context():
                talk.note(said.text, urgent=said.priority == "high")
            case incoming.Interrupt():
                talk.interrupt()
            case incoming.Cancel():
                talk.conversation.cancel(said.call_id)
            case incoming.Approve() | incoming.Decline():
                talk.decide(said.token, approve=isinstance(said, incoming.Approve))
            case incoming.End():
                await self._house.switchboard.end(talk)
                return True
        return False

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


async def _wait_for(allowance: Allowance, amount: float) -> None:
    """Take from an allowance; who asks for more than that is read more slowly."""
    seconds = allowance.take(amount)
    while seconds > 0:
        await asyncio.sleep(seconds)
        seconds = allowance.take(amount)


def _error(
    code: str, text: str, suggestion: str | None = None, *, retry_after: float | None = None
) -> dict[str, Any]:
    message: dict[str, Any] = {"type": "error", "code": code, "message": text}
    if suggestion:
        message["suggestion"] = suggestion
    if retry_after is not None:
        message["retryAfter"] = round(retry_after, 3)
    return message

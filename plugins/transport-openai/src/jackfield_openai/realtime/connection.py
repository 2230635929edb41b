"""Realtime connections: opening, outgoing messages, incoming events."""

from __future__ import annotations

import asyncio
import binascii
import secrets
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from jackfield.transport.events import Closed, ConnectionExpiring, Event, ToolCalls
from jackfield.transport.protocol import ConnectionConfig, ToolResult, TransportError, Utterance
from openai import OpenAIError
from websockets.exceptions import ConnectionClosed, WebSocketException

from jackfield_openai.declared_tools import DeclaredTools
from jackfield_openai.errors import close_error_code, error_code, redacted, transport_error
from jackfield_openai.realtime import session
from jackfield_openai.realtime.events import (
    FILLER,
    METADATA_KEY,
    SESSION_SECONDS,
    RealtimeEvents,
    late_event_id,
)
from jackfield_openai.realtime.session import tools_session, voice_session
from jackfield_openai.realtime.socket import MAX_MESSAGE_BYTES, RealtimeWebSocket, WakeTimer
from jackfield_openai.settings import OpenAISettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.resources.realtime.realtime import AsyncRealtimeConnection

_OPENING = "jf-opening"
_AUDIO_HEAD, _AUDIO_TAIL = b'{"type":"input_audio_buffer.append","audio":"', b'"}'
_LARGEST_PIECE = 1 << 19
"""Bytes of audio per message; the API accepts up to 15 MiB."""


class RealtimeConnection:
    """One Realtime session. It has no buffer: a slow reader slows the server down."""

    def __init__(
        self,
        session: AsyncRealtimeConnection,
        socket: RealtimeWebSocket,
        incoming: RealtimeEvents,
        *,
        renew_after: float,
        language: str | None = None,
    ) -> None:
        self._session = session
        self._socket = socket
        self._timer = WakeTimer(socket)
        self._incoming = incoming
        self._language = language
        self._ready: deque[Event] = deque()
        self._over = False
        self._closing = False
        self._numbers = 0
        self._open_calls: list[set[str]] = []
        self._margin = SESSION_SECONDS - renew_after
        self._warned = False

    @property
    def resume(self) -> str | None:
        """None: OpenAI keeps no session to resume."""
        return None

    async def events(self) -> AsyncIterator[Event]:
        """Yield the events, up to `Closed`."""
        while True:
            while self._ready:
                yield self._ready.popleft()
            if self._over:
                return
            await self._read()

    async def send_text(self, text: str) -> None:
        """Send a text message, and request a response."""
        item = _new_id()
        await self._create(session.user_item(text, item))
        await self._request_response(item)

    async def send_audio(self, pcm: bytes) -> None:
        """Send audio, written directly into a frame."""
        for place in range(0, len(pcm), _LARGEST_PIECE):
            piece = binascii.b2a_base64(pcm[place : place + _LARGEST_PIECE], newline=False)
            await self._send_raw(_AUDIO_HEAD + piece + _AUDIO_TAIL)

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Send tool results; the last one of a message requests a response."""
        last = ""
        for result in results:
            item = _new_id()
            await self._create(session.result_item(result.call_id, result.envelope.decode(), item))
            if self._is_last(result.call_id):
                last = item
        if last and respond:
            await self._request_response(last)

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """Send a note for the model."""
        item = _new_id()
        await self._create(session.context_item(text, item))
        if respond:
            await self._request_response(item)

    async def speak(self, text: str) -> None:
        """Speak a filler, unless either side is speaking or about to speak."""
        now = asyncio.get_running_loop().time()
        turns, filler = self._incoming.responses, self._incoming.filler
        if turns.wanted or not turns.is_free(now) or filler.is_active(now):
            return
        filler.ask(now)
        response = session.filler_response(text, self._language) | {"metadata": {METADATA_KEY: FILLER}}
        await self._send({"type": "response.create", "event_id": FILLER, "response": response})

    async def interrupt(self) -> None:
        """Cancel the response and the filler."""
        self._incoming.filler.stop()
        await self._cancel_filler()
        if self._incoming.responses.try_cancel():
            await self._cancel()

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Truncate an item at the played position; delete it if nothing was played."""
        end = self._incoming.audio_lengths.clamped(item, heard_ms)
        if end is None:
            return
        message: dict[str, Any] = {"event_id": self._late_event_id(), "item_id": item}
        if end == 0:
            self._incoming.audio_lengths.forget(item)
            await self._send({"type": "conversation.item.delete", **message})
        else:
            self._incoming.audio_lengths.cut(item, end)
            cut = {"content_index": 0, "audio_end_ms": end}
            await self._send({"type": "conversation.item.truncate", **message, **cut})

    async def close(self) -> None:
        """Close the connection."""
        self._closing = True
        self._timer.cancel()
        await self._session.close()

    async def begin(self, wanted: dict[str, Any], history: Sequence[Utterance]) -> None:
        """Configure the session and send the history; called once, before anything else."""
        await self._send({"type": "session.update", "event_id": _OPENING, "session": wanted})
        kind = ""
        while kind != "session.updated":
            frame = await self._socket.recv(decode=False)
            message = orjson.loads(frame)
            kind, error = message.get("type"), message.get("error") or {}
            if kind == "error" and error.get("event_id") in (None, _OPENING):
                raise TransportError(
                    error_code(error.get("code"), error.get("type")), redacted(error.get("message"))
                )
            # In a running browser call, other events can arrive first.
            for event in self._incoming.read(frame):
                self._note(event)
        for said in history:
            await self._create(session.history_item(said, _new_id()))

    async def _read(self) -> None:
        """Wait for a message, or for the next deadline."""
        self._timer.set(self._next_deadline())
        try:
            message = await self._socket.recv(decode=False)
        except ConnectionClosed as end:
            self._timer.cancel()
            self._end(end)
            return
        if message:
            for event in self._incoming.read(message):
                self._note(event)
        else:
            self._warn()
        await self._ask()
        if self._incoming.fatal_error and not self._closing:
            await self._session.close()

    def _note(self, event: Event) -> None:
        """Queue an event for the reader, and remember the calls that wait for results."""
        if isinstance(event, ToolCalls):
            self._open_calls.append({call.call_id or "" for call in event.calls})
        self._ready.append(event)

    def _is_last(self, call_id: str) -> bool:
        """True if a result was the last one of its message."""
        for waiting in self._open_calls:
            if call_id in waiting:
                waiting.discard(call_id)
                if not waiting:
                    self._open_calls.remove(waiting)
                return not waiting
        return False

    async def _request_response(self, item: str) -> None:
        self._incoming.responses.want(item)
        await self._ask()

    async def _ask(self) -> None:
        """Request a response if one is due and allowed."""
        if self._incoming.responses.try_cancel_unwanted():
            await self._cancel()
        now, turns, filler = (
            asyncio.get_running_loop().time(),
            self._incoming.responses,
            self._incoming.filler,
        )
        if turns.wanted:
            filler.cancel_unless_audible()
        await self._cancel_filler()
        if not filler.is_active(now) and turns.try_request(now):
            await self._send({"type": "response.create", "response": {"metadata": {METADATA_KEY: "asked"}}})

    async def _cancel_filler(self) -> None:
        """Cancel a filler that is being spoken."""
        if response := self._incoming.filler.try_cancel():
            await self._cancel(response_id=response)

    async def _cancel(self, **fields: str) -> None:
        await self._send({"type": "response.cancel", "event_id": self._late_event_id(), **fields})

    async def _create(self, item: dict[str, Any]) -> None:
        await self._send({"type": "conversation.item.create", "item": item})

    async def _send(self, message: dict[str, Any]) -> None:
        """Send a message to the provider."""
        await self._send_raw(orjson.dumps(message))

    async def _send_raw(self, text: bytes) -> None:
        """Send encoded JSON to the provider, unless the connection is closed."""
        if self._over or self._closing:
            return
        try:
            await self._socket.send_message(text)
        except ConnectionClosed:
            # The reader gets the same error and reports it.
            return

    def _next_deadline(self) -> float | None:
        """Return the next deadline: the expiry warning, or a response that did not start."""
        warn_at = None if self._warned else self._incoming.ends_at - self._margin
        moments = (warn_at, self._incoming.responses.deadline, self._incoming.filler.deadline)
        return min((each for each in moments if each is not None), default=None)

    def _warn(self) -> None:
        left = self._incoming.ends_at - asyncio.get_running_loop().time()
        if not self._warned and left <= self._margin:
            self._warned = True
            self._ready.append(ConnectionExpiring(max(0.0, left)))

    def _end(self, end: ConnectionClosed) -> None:
        self._over = True
        if self._incoming.fatal_error:
            self._ready.append(Closed(*self._incoming.fatal_error))
        elif self._closing:
            self._ready.append(Closed())
        else:
            number, reason = (end.rcvd.code, end.rcvd.reason) if end.rcvd else (None, "")
            self._ready.append(Closed(close_error_code(number, reason), redacted(reason)))

    def _late_event_id(self) -> str:
        """Return an id for a message that the provider may reject because it arrives too late."""
        self._numbers += 1
        return late_event_id(self._numbers)


class BrowserCallConnection(RealtimeConnection):
    """A session with audio between a browser and OpenAI."""

    async def send_audio(self, pcm: bytes) -> None:
        """Ignored: the browser sends its own audio."""

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Ignored: OpenAI knows what it played."""

    async def interrupt(self) -> None:
        """Cancel the response, then the audio that is not played yet."""
        was_playing = self._incoming.playing or self._incoming.responses.active is not None
        await super().interrupt()
        if was_playing:
            await self._send({"type": "output_audio_buffer.clear", "event_id": self._late_event_id()})


def _new_id() -> str:
    return f"jf_{secrets.token_hex(12)}"


_SOCKET: Any = {
    # Events of 100 ms each: a reader may be about 100 s behind before the server has to wait.
    "max_queue": 1024,
    "max_size": MAX_MESSAGE_BYTES,
    "compression": None,
    # Pongs wait behind audio that a slow reader has not consumed.
    "ping_timeout": 60,
    "close_timeout": 1,
    # The setting `connect_timeout` applies to the handshake and the session together.
    "open_timeout": None,
}


async def open_connection(
    client: AsyncOpenAI, settings: OpenAISettings, opening: ConnectionConfig
) -> RealtimeConnection:
    """Open a session with audio."""
    tools = DeclaredTools(opening.declarations)
    line = _Target(RealtimeConnection, {"model": settings.voice_model}, tools)
    return await _open(client, settings, opening, line, voice_session(opening, settings, tools))


async def attach_connection(
    client: AsyncOpenAI, settings: OpenAISettings, opening: ConnectionConfig, call_id: str
) -> RealtimeConnection:
    """Open a connection to the session of a browser's call."""
    tools = DeclaredTools(opening.declarations)
    line = _Target(BrowserCallConnection, {"call_id": call_id}, tools)
    return await _open(client, settings, opening, line, tools_session(opening, tools))


class _Target(NamedTuple):
    kind: type[RealtimeConnection]
    address: dict[str, Any]
    tools: DeclaredTools


async def _open(
    client: AsyncOpenAI,
    settings: OpenAISettings,
    opening: ConnectionConfig,
    line: _Target,
    session: dict[str, Any],
) -> RealtimeConnection:
    try:
        async with asyncio.timeout(settings.connect_timeout):
            sockets: list[RealtimeWebSocket] = []

            def create(*args: Any, **options: Any) -> RealtimeWebSocket:
                sockets.append(RealtimeWebSocket(*args, **options))
                return sockets[-1]

            options: Any = {**_SOCKET, "create_connection": create}
            manager = client.realtime.connect(websocket_connection_options=options, **line.address)
            opened = await manager.enter()
            renew_after = 60 * settings.renew_after_minutes
            incoming = RealtimeEvents(line.tools, limited=bool(opening.answer_tokens))
            language = opening.voice.language
            # After a redirect, the last socket is the open one.
            connection = line.kind(opened, sockets[-1], incoming, renew_after=renew_after, language=language)
            try:
                await connection.begin(session, opening.history)
            except BaseException:
                await asyncio.shield(connection.close())
                raise
    except TimeoutError:
        detail = f"the session was not ready within {settings.connect_timeout:g} s"
        raise TransportError("network", detail) from None
    except (OpenAIError, WebSocketException, OSError, ValueError) as error:
        raise _socket_error(error) from None
    return connection


def _socket_error(error: Exception) -> TransportError:
    if isinstance(error, ConnectionClosed):
        number, reason = (error.rcvd.code, error.rcvd.reason) if error.rcvd else (None, "")
        return TransportError(close_error_code(number, reason), redacted(reason))
    return transport_error(error)

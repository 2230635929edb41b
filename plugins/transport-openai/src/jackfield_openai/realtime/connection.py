"""An open Realtime session: verbs out, events in as they are read off the socket."""

from __future__ import annotations

import asyncio
import binascii
import secrets
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import orjson
from jackfield.transport.events import Closed, Event, GoingAway, ToolCalls
from jackfield.transport.protocol import ToolResult, TransportError, Utterance
from websockets.exceptions import ConnectionClosed

from jackfield_openai.faults import told, trouble, trouble_of_end
from jackfield_openai.realtime import session
from jackfield_openai.realtime.reading import FILLER, LIFE_SECONDS, MARK, Reading, afterthought

if TYPE_CHECKING:
    from openai.resources.realtime.realtime import AsyncRealtimeConnection

_OPENING = "jf-opening"
_LARGEST_PIECE = 1 << 19
"""Bytes of sound in one message; the API takes up to 15 MiB."""


class RealtimeConnection:
    """One session. Nothing is buffered here: who reads slowly makes the server wait."""

    def __init__(
        self,
        socket: AsyncRealtimeConnection,
        reading: Reading,
        *,
        renew_after: float,
        language: str | None = None,
    ) -> None:
        self._socket = socket
        self._reading = reading
        self._language = language
        self._ready: deque[Event] = deque()
        self._over = False
        self._closing = False
        self._numbers = 0
        self._open_calls: list[set[str]] = []
        self._margin = LIFE_SECONDS - renew_after
        self._warned = False

    @property
    def resume(self) -> str | None:
        """OpenAI keeps no session that could be taken up."""
        return None

    async def events(self) -> AsyncIterator[Event]:
        """What comes, up to `Closed`."""
        while True:
            while self._ready:
                yield self._ready.popleft()
            if self._over:
                return
            await self._read()

    async def send_text(self, text: str) -> None:
        """A typed message, to be answered."""
        item = _new_id()
        await self._create(session.user_item(text, item))
        await self._want(item)

    async def send_audio(self, pcm: bytes) -> None:
        """A piece of sound, put straight into a frame."""
        for place in range(0, len(pcm), _LARGEST_PIECE):
            piece = binascii.b2a_base64(pcm[place : place + _LARGEST_PIECE], newline=False)
            await self._send_raw(f'{{"type":"input_audio_buffer.append","audio":"{piece.decode("ascii")}"}}')

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Outputs of functions; the last of a message lets the model go on."""
        last = ""
        for result in results:
            item = _new_id()
            await self._create(session.result_item(result.call_id, result.envelope.decode(), item))
            if self._is_last(result.call_id):
                last = item
        if last and respond:
            await self._want(last)

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """A note for the model."""
        item = _new_id()
        await self._create(session.context_item(text, item))
        if respond:
            await self._want(item)

    async def speak(self, text: str) -> None:
        """Say a filler, unless one side speaks or is about to."""
        now = asyncio.get_running_loop().time()
        turns, filler = self._reading.turns, self._reading.filler
        if turns.wanted or not turns.is_free(now) or filler.is_under_way(now):
            return
        filler.ask(now)
        response = session.filler_response(text, self._language) | {"metadata": {MARK: FILLER}}
        await self._send({"type": "response.create", "event_id": FILLER, "response": response})

    async def interrupt(self) -> None:
        """Cancel the response, if there is one, and a filler."""
        self._reading.filler.stop()
        await self._cancel_filler()
        if self._reading.turns.take_leave_to_cancel():
            await self._cancel()

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Cut an item at what was heard; what was not heard at all is deleted."""
        end = self._reading.spoken.clamped(item, heard_ms)
        if end is None:
            return
        message: dict[str, Any] = {"event_id": self._afterthought(), "item_id": item}
        if end == 0:
            self._reading.spoken.forget(item)
            await self._send({"type": "conversation.item.delete", **message})
        else:
            self._reading.spoken.cut(item, end)
            cut = {"content_index": 0, "audio_end_ms": end}
            await self._send({"type": "conversation.item.truncate", **message, **cut})

    async def close(self) -> None:
        """Hang up."""
        self._closing = True
        await self._socket.close()

    async def begin(self, wanted: dict[str, Any], history: Sequence[Utterance]) -> None:
        """Say what the session is to be, and what was said before; called once, before anything else."""
        await self._send({"type": "session.update", "event_id": _OPENING, "session": wanted})
        kind = ""
        while kind != "session.updated":
            frame = await self._socket.recv_bytes()
            message = orjson.loads(frame)
            kind, error = message.get("type"), message.get("error") or {}
            if kind == "error" and error.get("event_id") in (None, _OPENING):
                raise TransportError(
                    trouble(error.get("code"), error.get("type")), told(error.get("message"))
                )
            # Beside a call that is under way, other events can come first.
            for event in self._reading.read(frame):
                self._note(event)
        for said in history:
            await self._create(session.history_item(said, _new_id()))

    async def _read(self) -> None:
        """Wait for one frame, or for a moment at which something is due."""
        try:
            async with asyncio.timeout_at(self._next_moment()):
                frame = await self._socket.recv_bytes()
        except TimeoutError:
            self._warn()
        except ConnectionClosed as end:
            self._end(end)
            return
        else:
            for event in self._reading.read(frame):
                self._note(event)
        await self._ask()
        if self._reading.fate and not self._closing:
            await self._socket.close()

    def _note(self, event: Event) -> None:
        if isinstance(event, ToolCalls):
            self._open_calls.append({call.call_id or "" for call in event.calls})
        self._ready.append(event)

    def _is_last(self, call_id: str) -> bool:
        """Whether a result was the last that some message waited for."""
        for waiting in self._open_calls:
            if call_id in waiting:
                waiting.discard(call_id)
                if not waiting:
                    self._open_calls.remove(waiting)
                return not waiting
        return False

    async def _want(self, item: str) -> None:
        self._reading.turns.want(item)
        await self._ask()

    async def _ask(self) -> None:
        """Ask for a response if one is wanted and may be asked for."""
        if self._reading.turns.take_leave_to_cancel_unwanted():
            await self._cancel()
        now, turns, filler = asyncio.get_running_loop().time(), self._reading.turns, self._reading.filler
        if turns.wanted:
            filler.give_way()
        await self._cancel_filler()
        if not filler.is_under_way(now) and turns.take_leave_to_ask(now):
            await self._send({"type": "response.create", "response": {"metadata": {MARK: "asked"}}})

    async def _cancel_filler(self) -> None:
        if response := self._reading.filler.take_leave_to_cancel():
            await self._cancel(response_id=response)

    async def _cancel(self, **fields: str) -> None:
        await self._send({"type": "response.cancel", "event_id": self._afterthought(), **fields})

    async def _create(self, item: dict[str, Any]) -> None:
        await self._send({"type": "conversation.item.create", "item": item})

    async def _send(self, message: dict[str, Any]) -> None:
        await self._send_raw(orjson.dumps(message).decode())

    async def _send_raw(self, text: str) -> None:
        if self._over or self._closing:
            return
        try:
            await self._socket.send_raw(text)
        except ConnectionClosed:
            # The reader learns of the end too, and it is the one who tells.
            return

    def _next_moment(self) -> float | None:
        """When something is due though nothing comes: a warning, or a response that was not made."""
        warn_at = None if self._warned else self._reading.ends_at - self._margin
        moments = (warn_at, self._reading.turns.deadline, self._reading.filler.deadline)
        return min((each for each in moments if each is not None), default=None)

    def _warn(self) -> None:
        left = self._reading.ends_at - asyncio.get_running_loop().time()
        if not self._warned and left <= self._margin:
            self._warned = True
            self._ready.append(GoingAway(max(0.0, left)))

    def _end(self, end: ConnectionClosed) -> None:
        self._over = True
        if self._reading.fate:
            self._ready.append(Closed(*self._reading.fate))
        elif self._closing:
            self._ready.append(Closed())
        else:
            number, reason = (end.rcvd.code, end.rcvd.reason) if end.rcvd else (None, "")
            self._ready.append(Closed(trouble_of_end(number, reason), told(reason)))

    def _afterthought(self) -> str:
        self._numbers += 1
        return afterthought(self._numbers)


class BesideConnection(RealtimeConnection):
    """A session whose sound goes between a browser and OpenAI."""

    async def send_audio(self, pcm: bytes) -> None:
        """The browser sends its own."""

    async def truncate(self, item: str, heard_ms: int) -> None:
        """OpenAI knows what it played."""

    async def interrupt(self) -> None:
        """Cancel the response, then what of it is still to be played."""
        was_playing = self._reading.playing or self._reading.turns.active is not None
        await super().interrupt()
        if was_playing:
            await self._send({"type": "output_audio_buffer.clear", "event_id": self._afterthought()})


def _new_id() -> str:
    return f"jf_{secrets.token_hex(12)}"

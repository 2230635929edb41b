"""The server's end of a Live WebSocket, and what the client has sent over it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from jackfield_scripted.audio import milliseconds
from jackfield_scripted.gemini.wire_format import decode, to_camel_case
from jackfield_scripted.script import UserInput
from jackfield_scripted.server import Violations

RATE = 16_000
_T = TypeVar("_T")
_PLAYED = re.compile(r"(\d+) ms")


class ScriptedLiveSocket:
    """Messages in both directions; messages after the end are dropped."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._sending = asyncio.Lock()
        self.closed = False

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message in camelCase; None at the end."""
        while True:
            try:
                frame = await self._socket.receive()
            except (WebSocketDisconnect, RuntimeError):
                return None
            if frame["type"] == "websocket.disconnect":
                self.closed = True
                return None
            try:
                message = orjson.loads(frame.get("text") or frame.get("bytes") or b"")
            except orjson.JSONDecodeError:
                message = None
            if isinstance(message, dict):
                converted: dict[str, Any] = to_camel_case(message)
                return converted
            await self.close(1007, "Request contains an invalid argument.")

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message in a binary frame, as Google's server does."""
        if self.closed:
            return
        async with self._sending:
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                await self._socket.send_bytes(orjson.dumps(message))

    async def close(self, code: int, reason: str) -> None:
        """Close the connection."""
        if not self.closed and self._socket.client_state is WebSocketState.CONNECTED:
            self.closed = True
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                await self._socket.close(code, reason)


class LiveInbox:
    """Sorts the client's messages as they arrive, and lets a script wait for what they contain."""

    def __init__(self, violations: Violations) -> None:
        self.messages: list[Mapping[str, Any]] = []
        self.audio = bytearray()
        """The user's audio that no script has consumed yet."""
        self.open: dict[str, str] = {}
        """The names of the calls without a response, by id."""
        self.without_id: list[str] = []
        """The open calls that were sent without an id."""
        self.answers: dict[str, Any] = {}
        self.parts: dict[str, list[Any]] = {}
        """The parts of results, by call; the result itself is in `answers`."""
        self.non_blocking: frozenset[str] = frozenset()
        """The functions whose responses may continue."""
        self.responses: list[Mapping[str, Any]] = []
        """Every `functionResponses` entry, as it arrived."""
        self.notes: list[str] = []
        """Context that was added without requesting a response, since the last question."""
        self.history: list[Mapping[str, Any]] = []
        self.expects_history = False
        self.audio_ended = 0
        self._questions: list[UserInput] = []
        self._violations = violations
        self._changed = asyncio.Event()

    def add(self, message: Mapping[str, Any]) -> bool:
        """Sort one message; return whether it interrupts the model."""
        self.messages.append(message)
        interrupts = False
        if content := message.get("clientContent"):
            interrupts = self._add_content(content)
        elif given := message.get("realtimeInput"):
            interrupts = self._add_realtime_input(given)
        elif given := message.get("toolResponse"):
            for response in given.get("functionResponses") or ():
                self._add_response(response)
        else:
            self._violations.add(f"a message of unknown kind: {sorted(message)}")
        self._changed.set()
        return interrupts

    async def until(self, found: Callable[[], _T | None]) -> _T:
        """Wait for messages until a function returns a value."""
        while (value := found()) is None:
            self._changed.clear()
            await self._changed.wait()
        return value

    def wake(self) -> None:
        """Make every waiting script check again."""
        self._changed.set()

    def question(self) -> UserInput | None:
        """Return the next input that expects a response."""
        if not self._questions:
            return None
        self.notes.clear()
        return self._questions.pop(0)

    def played_ms(self) -> int | None:
        """Return the played milliseconds that a note since the last question reports."""
        found = (_PLAYED.search(note) for note in self.notes)
        return next((int(each.group(1)) for each in found if each), None)

    @property
    def asked(self) -> bool:
        """True if an input is waiting for a response."""
        return bool(self._questions)

    def speech(self, ms: int) -> UserInput | None:
        """Return the user's speech, once `ms` milliseconds of it have arrived."""
        length = milliseconds(len(self.audio), rate=RATE)
        if length < ms:
            return None
        self.audio.clear()
        return UserInput(audio_ms=length)

    def _add_content(self, content: Mapping[str, Any]) -> bool:
        turns = content.get("turns") or []
        texts = [part["text"] for turn in turns for part in turn.get("parts") or () if "text" in part]
        if self.expects_history:
            self.history += turns
            self.expects_history = not content.get("turnComplete")
        elif content.get("turnComplete"):
            self._questions.append(UserInput(text="\n".join(texts)))
            return True
        else:
            self.notes += texts
            return True
        return False

    def _add_realtime_input(self, given: Mapping[str, Any]) -> bool:
        if audio := given.get("audio"):
            if audio.get("mimeType") != f"audio/pcm;rate={RATE}":
                self._violations.add(f"audio of the type {audio.get('mimeType')!r}")
            self.audio += decode(audio["data"])
        if text := given.get("text"):
            self._questions.append(UserInput(text=text))
            return True
        if given.get("audioStreamEnd"):
            self.audio_ended += 1
        return False

    def _add_response(self, response: Mapping[str, Any]) -> None:
        self.responses.append(response)
        call_id = response.get("id")
        if not call_id or not isinstance(response.get("response"), dict):
            self._violations.add("a tool response without an id or without a response object")
            return
        if call_id not in self.open:
            # The response to a call without an id has an id that the client made.
            name = response.get("name")
            call_id = next((each for each in self.without_id if self.open.get(each) == name), call_id)
        if call_id not in self.open:
            self._violations.add(f"a tool response to {call_id!r}, which is not an open call")
        if response.get("willContinue"):
            if response.get("name") not in self.non_blocking:
                self._violations.add(f"a part of the response to {call_id!r}, which is a blocking call")
            self.parts.setdefault(call_id, []).append(response["response"])
            return
        self.open.pop(call_id, None)
        self.answers[call_id] = response["response"]

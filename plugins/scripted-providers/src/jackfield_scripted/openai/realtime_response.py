"""The output of the Realtime server: its socket, and the events of one response in order."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import orjson
from starlette.websockets import WebSocket, WebSocketState

from jackfield_scripted.audio import milliseconds, tone
from jackfield_scripted.openai.errors import error_body
from jackfield_scripted.server import Violations

_CHUNK_MS = 100


class RealtimeSocket:
    """The server's end of one WebSocket; events after the end are dropped, as on a real one."""

    def __init__(self, socket: WebSocket, violations: Violations) -> None:
        self._socket = socket
        self._violations = violations
        self._id_count = 0
        self._lock = asyncio.Lock()
        self.closed = False

    def new_id(self, prefix: str) -> str:
        """Return an id that this connection has not used."""
        self._id_count += 1
        return f"{prefix}_{self._id_count:06}"

    async def send(self, kind: str, **fields: Any) -> None:
        """Send one server event."""
        if self.closed:
            return
        body = {"type": kind, "event_id": self.new_id("event"), **fields}
        async with self._lock:
            try:
                await self._socket.send_text(orjson.dumps(body).decode())
            except (RuntimeError, OSError, asyncio.CancelledError):
                self.closed = True
                raise
            except Exception:  # noqa: BLE001 - the client has left, so nothing can receive the error
                self.closed = True

    async def reject(self, code: str, message: str, event_id: str | None = None) -> None:
        """Record the client's violation and send the error that OpenAI would send."""
        self._violations.add(message, code=code)
        await self.send("error", error=error_body(code, message, event_id=event_id))

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection."""
        if not self.closed and self._socket.application_state is WebSocketState.CONNECTED:
            self.closed = True
            await self._socket.close(code, reason)


class RealtimeResponse:
    """One response: `start` opens it, its items are sent one by one, and `finish` completes it."""

    def __init__(
        self,
        socket: RealtimeSocket,
        *,
        text: bool,
        webrtc: bool,
        metadata: Any = None,
        out_of_band: bool = False,
    ) -> None:
        """`out_of_band` keeps the items out of the conversation."""
        self.id = socket.new_id("resp")
        self.complete = False
        self._metadata = metadata
        self._out_of_band = out_of_band
        self.audio_bytes = 0
        """The audio of the open message."""
        self._socket = socket
        self._kind = "output_text" if text else "output_audio"
        self._silent = text or webrtc
        self._webrtc = webrtc and not text
        self._output: list[dict[str, Any]] = []
        self._message: dict[str, Any] | None = None
        self._text = ""

    @property
    def item(self) -> str:
        """The id of the open message."""
        return str(self._message["id"]) if self._message else ""

    async def start(self) -> None:
        """Announce the response."""
        await self._socket.send("response.created", response=self._resource("in_progress"))
        if self._webrtc:
            await self._socket.send("output_audio_buffer.started", response_id=self.id)

    async def start_message(self) -> None:
        """Open a message item."""
        self._message = {"type": "message", "role": "assistant", "content": []}
        await self._add(self._message)
        part = (
            {"type": "text", "text": ""}
            if self._kind == "output_text"
            else {"type": "audio", "transcript": ""}
        )
        await self._socket.send("response.content_part.added", **self._place(content=True), part=part)

    async def send_text(self, text: str) -> None:
        """Send a piece of the text or of the transcript."""
        self._text += text
        kind = "output_text" if self._kind == "output_text" else "output_audio_transcript"
        await self._socket.send(f"response.{kind}.delta", **self._place(content=True), delta=text)

    async def send_audio(self, ms: int) -> None:
        """Send `ms` of the tone, without pauses; over WebRTC, audio does not use the socket."""
        start = milliseconds(self.audio_bytes)
        for place in range(start, start + ms, _CHUNK_MS):
            pcm = tone(min(_CHUNK_MS, start + ms - place), start_ms=place)
            self.audio_bytes += len(pcm)
            if self.complete:
                return
            if not self._silent:
                await self._socket.send(
                    "response.output_audio.delta",
                    **self._place(content=True),
                    delta=base64.b64encode(pcm).decode(),
                )

    async def end_message(self, status: str = "completed") -> None:
        """Close the open message item."""
        if self._message is None:
            return
        item, place = self._message, self._place(content=True)
        if self._kind == "output_text":
            part = {"type": "output_text", "text": self._text}
            await self._socket.send("response.output_text.done", **place, text=self._text)
        else:
            part = {"type": "output_audio", "transcript": self._text}
            await self._socket.send("response.output_audio.done", **place)
            await self._socket.send("response.output_audio_transcript.done", **place, transcript=self._text)
        item["content"] = [part]
        await self._socket.send("response.content_part.done", **place, part=part)
        await self._end(item, status)
        self._message = None

    async def send_call(self, call_id: str, name: str, arguments: str, status: str = "completed") -> None:
        """Send a function call; `arguments.done` is sent regardless of its status."""
        await self.end_message()
        item: dict[str, Any] = {"type": "function_call", "name": name, "call_id": call_id, "arguments": ""}
        await self._add(item)
        place = {**self._place(), "call_id": call_id}
        half = len(arguments) // 2
        for piece in (arguments[:half], arguments[half:]):
            await self._socket.send("response.function_call_arguments.delta", **place, delta=piece)
        await self._socket.send(
            "response.function_call_arguments.done", **place, name=name, arguments=arguments
        )
        item["arguments"] = arguments
        await self._end(item, status)

    async def finish(self, status: str = "completed", details: dict[str, Any] | None = None) -> None:
        """Complete the response as completed, cancelled, failed or incomplete."""
        if self.complete:
            return
        await self.end_message("completed" if status == "completed" else "incomplete")
        self.complete = True
        usage = None
        if status != "failed":
            tokens = 1 + len(self._text) + self.audio_bytes // 4_800
            usage = {"input_tokens": 40, "output_tokens": tokens, "total_tokens": 40 + tokens}
        await self._socket.send("response.done", response=self._resource(status, details, usage))
        if self._webrtc:
            event = "stopped" if status == "completed" else "cleared"
            await self._socket.send(f"output_audio_buffer.{event}", response_id=self.id)

    async def _add(self, item: dict[str, Any]) -> None:
        item |= {"id": self._socket.new_id("item"), "object": "realtime.item", "status": "in_progress"}
        self._output.append(item)
        self._text, self.audio_bytes = "", 0
        place = {"response_id": self.id, "output_index": len(self._output) - 1}
        await self._socket.send("response.output_item.added", **place, item=dict(item))
        if not self._out_of_band:
            await self._socket.send("conversation.item.added", previous_item_id=None, item=dict(item))

    async def _end(self, item: dict[str, Any], status: str) -> None:
        item["status"] = status
        if not self._out_of_band:
            await self._socket.send("conversation.item.done", previous_item_id=None, item=dict(item))
        place = {"response_id": self.id, "output_index": self._output.index(item)}
        await self._socket.send("response.output_item.done", **place, item=dict(item))

    def _place(self, *, content: bool = False) -> dict[str, Any]:
        place = {
            "response_id": self.id,
            "item_id": self._output[-1]["id"],
            "output_index": len(self._output) - 1,
        }
        return {**place, "content_index": 0} if content else place

    def _resource(
        self, status: str, details: dict[str, Any] | None = None, usage: dict[str, int] | None = None
    ) -> dict[str, Any]:
        return {
            "object": "realtime.response",
            "id": self.id,
            "status": status,
            "status_details": {"type": status, **details} if details else None,
            "output": [dict(item) for item in self._output],
            "conversation_id": None if self._out_of_band else "conv_1",
            "metadata": self._metadata,
            "usage": usage,
        }

"""One response of a Realtime model: its items, and the events that tell of them in their order."""

from __future__ import annotations

import base64
from typing import Any

from jackfield_testkit.providers.audio import milliseconds, tone
from jackfield_testkit.providers.openai.realtime_wire import RealtimeWire

_CHUNK_MS = 100


class Response:
    """Begun by `begin`, filled item by item, and over at `finish`."""

    def __init__(
        self,
        wire: RealtimeWire,
        *,
        text: bool,
        webrtc: bool,
        metadata: Any = None,
        out_of_band: bool = False,
    ) -> None:
        """`out_of_band` keeps its items out of the conversation."""
        self.id = wire.new_id("resp")
        self.over = False
        self._metadata = metadata
        self._out_of_band = out_of_band
        self.audio_bytes = 0
        """Of the message that is being spoken."""
        self._wire = wire
        self._kind = "output_text" if text else "output_audio"
        self._silent = text or webrtc
        self._webrtc = webrtc and not text
        self._output: list[dict[str, Any]] = []
        self._message: dict[str, Any] | None = None
        self._words = ""

    @property
    def item(self) -> str:
        """The message that is being spoken."""
        return str(self._message["id"]) if self._message else ""

    async def begin(self) -> None:
        """Tell that there is a response now."""
        await self._wire.send("response.created", response=self._told("in_progress"))
        if self._webrtc:
            await self._wire.send("output_audio_buffer.started", response_id=self.id)

    async def begin_message(self) -> None:
        """Open an item for words."""
        self._message = {"type": "message", "role": "assistant", "content": []}
        await self._add(self._message)
        part = (
            {"type": "text", "text": ""}
            if self._kind == "output_text"
            else {"type": "audio", "transcript": ""}
        )
        await self._wire.send("response.content_part.added", **self._place(content=True), part=part)

    async def words(self, text: str) -> None:
        """A piece of what is said."""
        self._words += text
        kind = "output_text" if self._kind == "output_text" else "output_audio_transcript"
        await self._wire.send(f"response.{kind}.delta", **self._place(content=True), delta=text)

    async def sound(self, ms: int) -> None:
        """So much of the tone, sent as fast as it goes; over WebRTC it takes another way."""
        start = milliseconds(self.audio_bytes)
        for place in range(start, start + ms, _CHUNK_MS):
            pcm = tone(min(_CHUNK_MS, start + ms - place), start_ms=place)
            self.audio_bytes += len(pcm)
            if self.over:
                return
            if not self._silent:
                delta = base64.b64encode(pcm).decode()
                await self._wire.send("response.output_audio.delta", **self._place(content=True), delta=delta)

    async def end_message(self, status: str = "completed") -> None:
        """Close the item for words."""
        if self._message is None:
            return
        item, place = self._message, self._place(content=True)
        if self._kind == "output_text":
            part = {"type": "output_text", "text": self._words}
            await self._wire.send("response.output_text.done", **place, text=self._words)
        else:
            part = {"type": "output_audio", "transcript": self._words}
            await self._wire.send("response.output_audio.done", **place)
            await self._wire.send("response.output_audio_transcript.done", **place, transcript=self._words)
        item["content"] = [part]
        await self._wire.send("response.content_part.done", **place, part=part)
        await self._end(item, status)
        self._message = None

    async def call(self, call_id: str, name: str, arguments: str, status: str = "completed") -> None:
        """A function call; its arguments are told as done whatever becomes of it."""
        await self.end_message()
        item: dict[str, Any] = {"type": "function_call", "name": name, "call_id": call_id, "arguments": ""}
        await self._add(item)
        place = {**self._place(), "call_id": call_id}
        half = len(arguments) // 2
        for piece in (arguments[:half], arguments[half:]):
            await self._wire.send("response.function_call_arguments.delta", **place, delta=piece)
        await self._wire.send(
            "response.function_call_arguments.done", **place, name=name, arguments=arguments
        )
        item["arguments"] = arguments
        await self._end(item, status)

    async def finish(self, status: str = "completed", details: dict[str, Any] | None = None) -> None:
        """The end: completed, cancelled, failed or incomplete."""
        if self.over:
            return
        await self.end_message("completed" if status == "completed" else "incomplete")
        self.over = True
        usage = None
        if status != "failed":
            made = 1 + len(self._words) + self.audio_bytes // 4_800
            usage = {"input_tokens": 40, "output_tokens": made, "total_tokens": 40 + made}
        await self._wire.send("response.done", response=self._told(status, details, usage))
        if self._webrtc:
            gone = "stopped" if status == "completed" else "cleared"
            await self._wire.send(f"output_audio_buffer.{gone}", response_id=self.id)

    async def _add(self, item: dict[str, Any]) -> None:
        item |= {"id": self._wire.new_id("item"), "object": "realtime.item", "status": "in_progress"}
        self._output.append(item)
        self._words, self.audio_bytes = "", 0
        place = {"response_id": self.id, "output_index": len(self._output) - 1}
        await self._wire.send("response.output_item.added", **place, item=dict(item))
        if not self._out_of_band:
            await self._wire.send("conversation.item.added", previous_item_id=None, item=dict(item))

    async def _end(self, item: dict[str, Any], status: str) -> None:
        item["status"] = status
        if not self._out_of_band:
            await self._wire.send("conversation.item.done", previous_item_id=None, item=dict(item))
        place = {"response_id": self.id, "output_index": self._output.index(item)}
        await self._wire.send("response.output_item.done", **place, item=dict(item))

    def _place(self, *, content: bool = False) -> dict[str, Any]:
        place = {
            "response_id": self.id,
            "item_id": self._output[-1]["id"],
            "output_index": len(self._output) - 1,
        }
        return {**place, "content_index": 0} if content else place

    def _told(
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

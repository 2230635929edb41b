"""The server's side of a Realtime session: what the client may do when, and what it has told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from jackfield_testkit.providers.audio import milliseconds
from jackfield_testkit.providers.openai import realtime_messages as messages
from jackfield_testkit.providers.openai.realtime_response import Response
from jackfield_testkit.providers.openai.realtime_wire import RealtimeWire

Message = Mapping[str, Any]

_OUT_OF_BAND_MS = 400


class RealtimeSession:
    """Takes the client's messages in, and keeps what a script asks for."""

    def __init__(self, wire: RealtimeWire, config: Mapping[str, Any], *, webrtc: bool = False) -> None:
        self.wire = wire
        self.config: dict[str, Any] = {"type": "realtime", "object": "realtime.session", **config}
        self.webrtc = webrtc
        self.received: list[Message] = []
        self.texts: list[str] = []
        """What the client said since a script last heard."""
        self.responses: asyncio.Queue[Response] = asyncio.Queue()
        self.truncations: asyncio.Queue[int] = asyncio.Queue()
        self.outputs: dict[str, list[str]] = {}
        self.buffered = 0
        """Bytes of sound since the last commit."""
        self.changed = asyncio.Condition()
        self.active: Response | None = None
        self.out_of_band: asyncio.Queue[Response] | None = None
        """Takes responses outside the conversation for a script to play; without it they play at once."""
        self._open_calls: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        self._items: set[str] = set()
        self._beside: dict[str, Response] = {}
        self._handlers: dict[str, Callable[[Message], Awaitable[None]]] = {
            "session.update": self._update,
            "input_audio_buffer.append": self._append,
            "input_audio_buffer.clear": self._clear,
            "input_audio_buffer.commit": self._commit,
            "conversation.item.create": self._create_item,
            "conversation.item.truncate": self._truncate,
            "conversation.item.delete": self._delete,
            "response.create": self._respond,
            "response.cancel": self._cancel,
            "output_audio_buffer.clear": self._clear_output,
        }

    @property
    def turn_detection(self) -> Mapping[str, Any]:
        """How the end of the user's turn is found; by voice activity unless the client said otherwise."""
        given = (self.config.get("audio") or {}).get("input", {}).get("turn_detection", {})
        return {} if given is None else {"create_response": True, "interrupt_response": True, **given}

    async def take(self, message: Message) -> None:
        """One message of the client."""
        self.received.append(message)
        code, sentence = messages.wrong(message)
        if code:
            await self.wire.refuse(code, sentence, message.get("event_id"))
        elif handler := self._handlers.get(message["type"]):
            await handler(message)
        async with self.changed:
            self.changed.notify_all()

    async def begin(self, metadata: Any = None) -> Response:
        """A response, as soon as one is asked for; it carries the metadata of the one who asked."""
        self.active = Response(self.wire, text=self._writes, webrtc=self.webrtc, metadata=metadata)
        await self.active.begin()
        self.responses.put_nowait(self.active)
        return self.active

    async def cut_short(self, reason: str) -> None:
        """Cancel what is being said."""
        if self.active is None:
            return
        response, self.active = self.active, None
        self.remember(response)
        await response.finish("cancelled", {"reason": reason})

    def remember(self, response: Response) -> None:
        """Keep how much of an item was sent, for a truncation to be measured against."""
        if response.item:
            self._lengths[response.item] = milliseconds(response.audio_bytes)

    def expect(self, call_id: str) -> None:
        """A call was made, and one output of it may come."""
        self._open_calls[call_id] = self._open_calls.get(call_id, 0) + 1

    async def add_speech(self, item: str) -> None:
        """An item for what the user said aloud."""
        self.buffered = 0
        self._items.add(item)
        await self.wire.send("input_audio_buffer.committed", previous_item_id=None, item_id=item)
        content = [{"type": "input_audio", "transcript": None}]
        told = {"id": item, "type": "message", "role": "user", "status": "completed", "content": content}
        for moment in ("added", "done"):
            await self.wire.send(f"conversation.item.{moment}", previous_item_id=None, item=told)

    async def _update(self, message: Message) -> None:
        given = message["session"]
        voice = (given.get("audio") or {}).get("output", {}).get("voice")
        known = (self.config.get("audio") or {}).get("output", {}).get("voice")
        if voice and voice != known and self._lengths:
            await self.wire.refuse(
                "cannot_update_voice", "the voice is fixed once there was audio", message.get("event_id")
            )
            return
        self.config = _merged(self.config, given)
        await self.wire.send("session.updated", session=self.config)

    async def _append(self, message: Message) -> None:
        self.buffered += len(messages.sound(message))

    async def _clear(self, message: Message) -> None:  # noqa: ARG002
        self.buffered = 0
        await self.wire.send("input_audio_buffer.cleared")

    async def _commit(self, message: Message) -> None:
        if not self.buffered:
            await self.wire.refuse(
                "input_audio_buffer_commit_empty", "the buffer is empty", message.get("event_id")
            )
            return
        await self.add_speech(self.wire.new_id("item"))

    async def _create_item(self, message: Message) -> None:
        item = {**message["item"], "id": message["item"].get("id") or self.wire.new_id("item")}
        if item["type"] == "function_call_output":
            call_id = item["call_id"]
            if not self._open_calls.get(call_id):
                await self.wire.refuse(
                    "invalid_tool_call_id", f"no open call {call_id}", message.get("event_id")
                )
                return
            self._open_calls[call_id] -= 1
            self.outputs.setdefault(call_id, []).append(item["output"])
        elif item["role"] == "user":
            self.texts += [part["text"] for part in item["content"] if part["type"] == "input_text"]
        self._items.add(item["id"])
        for moment in ("added", "done"):
            await self.wire.send(f"conversation.item.{moment}", previous_item_id=None, item=item)

    async def _truncate(self, message: Message) -> None:
        item, end = message["item_id"], message["audio_end_ms"]
        length = self._length(item)
        if length is None or end > length:
            sentence = f"audio of {length} ms cannot be cut at {end} ms"
            await self.wire.refuse("invalid_value", sentence, message.get("event_id"))
            return
        self._lengths[item] = end
        self.truncations.put_nowait(end)
        await self.wire.send("conversation.item.truncated", item_id=item, content_index=0, audio_end_ms=end)

    async def _delete(self, message: Message) -> None:
        item = message["item_id"]
        if self._length(item) is None and item not in self._items:
            await self.wire.refuse("item_delete_invalid_item_id", f"no item {item}", message.get("event_id"))
            return
        if self._lengths.pop(item, None) is not None:
            self.truncations.put_nowait(0)
        await self.wire.send("conversation.item.deleted", item_id=item)

    @property
    def _writes(self) -> bool:
        return bool(self.config.get("output_modalities") == ["text"])

    async def _respond(self, message: Message) -> None:
        if (message.get("response") or {}).get("conversation") == "none":
            await self._respond_out_of_band(message["response"])
            return
        if self.active is not None:
            sentence = f"the conversation already has an active response: {self.active.id}"
            await self.wire.refuse(
                "conversation_already_has_active_response", sentence, message.get("event_id")
            )
            return
        await self.begin((message.get("response") or {}).get("metadata"))

    async def _respond_out_of_band(self, wanted: Message) -> None:
        """A response beside the conversation, of which there may be several; speech cuts none short."""
        response = Response(
            self.wire,
            text=self._writes,
            webrtc=self.webrtc,
            metadata=wanted.get("metadata"),
            out_of_band=True,
        )
        self._beside[response.id] = response
        await response.begin()
        if self.out_of_band is not None:
            self.out_of_band.put_nowait(response)
            return
        await response.begin_message()
        await response.words(str(wanted.get("instructions")))
        await response.sound(_OUT_OF_BAND_MS)
        await response.finish()

    async def _cancel(self, message: Message) -> None:
        beside = self._beside.get(message.get("response_id") or "")
        if beside is not None and not beside.over:
            await beside.finish("cancelled", {"reason": "client_cancelled"})
            return
        if self.active is None or message.get("response_id") not in (None, self.active.id):
            await self.wire.refuse(
                "response_cancel_not_active", "there is no active response", message.get("event_id")
            )
            return
        await self.cut_short("client_cancelled")

    async def _clear_output(self, message: Message) -> None:
        if not self.webrtc:
            await self.wire.refuse(
                "invalid_value", "output_audio_buffer.clear is for WebRTC and SIP", message.get("event_id")
            )

    def _length(self, item: str) -> int | None:
        if self.active is not None and self.active.item == item:
            return milliseconds(self.active.audio_bytes)
        return self._lengths.get(item)


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for key, value in new.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], value) if both else value
    return merged

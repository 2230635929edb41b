"""The server's state of a Realtime session: what the client sent, and whether that was allowed."""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from jackfield_scripted.audio import milliseconds
from jackfield_scripted.openai.realtime_response import RealtimeResponse, RealtimeSocket

Message = Mapping[str, Any]

_OUT_OF_BAND_MS = 400
_CONTENT = {"user": {"input_text", "input_audio"}, "assistant": {"output_text"}, "system": {"input_text"}}


class RealtimeSession:
    """Handles the client's events and keeps what a script waits for."""

    def __init__(self, socket: RealtimeSocket, config: Mapping[str, Any], *, webrtc: bool = False) -> None:
        self.socket = socket
        self.config: dict[str, Any] = {"type": "realtime", "object": "realtime.session", **config}
        self.webrtc = webrtc
        self.received: list[Message] = []
        self.texts: list[str] = []
        """The user's texts since the last `hears`."""
        self.responses: asyncio.Queue[RealtimeResponse] = asyncio.Queue()
        self.truncations: asyncio.Queue[int] = asyncio.Queue()
        self.outputs: dict[str, list[str]] = {}
        self.buffered = 0
        """Bytes of audio since the last commit."""
        self.changed = asyncio.Condition()
        self.active: RealtimeResponse | None = None
        self.out_of_band: asyncio.Queue[RealtimeResponse] | None = None
        """Queues out-of-band responses for a script to play; without a queue they are played at once."""
        self._open_calls: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        self._items: set[str] = set()
        self._out_of_band_responses: dict[str, RealtimeResponse] = {}
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
        """The turn detection settings; by voice activity unless the client turned it off."""
        given = (self.config.get("audio") or {}).get("input", {}).get("turn_detection", {})
        return {} if given is None else {"create_response": True, "interrupt_response": True, **given}

    async def receive(self, message: Message) -> None:
        """Handle one event from the client."""
        self.received.append(message)
        code, fault = _event_fault(message)
        if code:
            await self.socket.reject(code, fault, message.get("event_id"))
        elif handler := self._handlers.get(message["type"]):
            await handler(message)
        async with self.changed:
            self.changed.notify_all()

    async def start_response(self, metadata: Any = None) -> RealtimeResponse:
        """Start a response, with the metadata of the client's request."""
        self.active = RealtimeResponse(
            self.socket, text=self._text_only, webrtc=self.webrtc, metadata=metadata
        )
        await self.active.start()
        self.responses.put_nowait(self.active)
        return self.active

    async def cancel_response(self, reason: str) -> None:
        """Cancel the active response."""
        if self.active is None:
            return
        response, self.active = self.active, None
        self.record_length(response)
        await response.finish("cancelled", {"reason": reason})

    def record_length(self, response: RealtimeResponse) -> None:
        """Record how much audio of an item was sent, to check a later truncation."""
        if response.item:
            self._lengths[response.item] = milliseconds(response.audio_bytes)

    def expect_output(self, call_id: str) -> None:
        """Allow one output for a call."""
        self._open_calls[call_id] = self._open_calls.get(call_id, 0) + 1

    async def add_speech(self, item: str) -> None:
        """Add an item for the user's speech."""
        self.buffered = 0
        self._items.add(item)
        await self.socket.send("input_audio_buffer.committed", previous_item_id=None, item_id=item)
        content = [{"type": "input_audio", "transcript": None}]
        added = {"id": item, "type": "message", "role": "user", "status": "completed", "content": content}
        for event in ("added", "done"):
            await self.socket.send(f"conversation.item.{event}", previous_item_id=None, item=added)

    async def _update(self, message: Message) -> None:
        update = message["session"]
        voice = (update.get("audio") or {}).get("output", {}).get("voice")
        known = (self.config.get("audio") or {}).get("output", {}).get("voice")
        if voice and voice != known and self._lengths:
            await self.socket.reject(
                "cannot_update_voice",
                "the voice cannot change after the first audio",
                message.get("event_id"),
            )
            return
        self.config = _merged(self.config, update)
        await self.socket.send("session.updated", session=self.config)

    async def _append(self, message: Message) -> None:
        self.buffered += len(binascii.a2b_base64(message["audio"]))

    async def _clear(self, message: Message) -> None:  # noqa: ARG002
        self.buffered = 0
        await self.socket.send("input_audio_buffer.cleared")

    async def _commit(self, message: Message) -> None:
        if not self.buffered:
            await self.socket.reject(
                "input_audio_buffer_commit_empty", "the buffer is empty", message.get("event_id")
            )
            return
        await self.add_speech(self.socket.new_id("item"))

    async def _create_item(self, message: Message) -> None:
        item = {**message["item"], "id": message["item"].get("id") or self.socket.new_id("item")}
        if item["type"] == "function_call_output":
            call_id = item["call_id"]
            if not self._open_calls.get(call_id):
                await self.socket.reject(
                    "invalid_tool_call_id", f"no open call {call_id}", message.get("event_id")
                )
                return
            self._open_calls[call_id] -= 1
            self.outputs.setdefault(call_id, []).append(item["output"])
        elif item["role"] == "user":
            self.texts += [part["text"] for part in item["content"] if part["type"] == "input_text"]
        self._items.add(item["id"])
        for event in ("added", "done"):
            await self.socket.send(f"conversation.item.{event}", previous_item_id=None, item=item)

    async def _truncate(self, message: Message) -> None:
        item, end = message["item_id"], message["audio_end_ms"]
        length = self._length(item)
        if length is None or end > length:
            fault = f"audio of {length} ms cannot be cut at {end} ms"
            await self.socket.reject("invalid_value", fault, message.get("event_id"))
            return
        self._lengths[item] = end
        self.truncations.put_nowait(end)
        await self.socket.send("conversation.item.truncated", item_id=item, content_index=0, audio_end_ms=end)

    async def _delete(self, message: Message) -> None:
        item = message["item_id"]
        if self._length(item) is None and item not in self._items:
            await self.socket.reject(
                "item_delete_invalid_item_id", f"no item {item}", message.get("event_id")
            )
            return
        if self._lengths.pop(item, None) is not None:
            self.truncations.put_nowait(0)
        await self.socket.send("conversation.item.deleted", item_id=item)

    @property
    def _text_only(self) -> bool:
        return bool(self.config.get("output_modalities") == ["text"])

    async def _respond(self, message: Message) -> None:
        if (message.get("response") or {}).get("conversation") == "none":
            await self._respond_out_of_band(message["response"])
            return
        if self.active is not None:
            fault = f"the conversation already has an active response: {self.active.id}"
            await self.socket.reject(
                "conversation_already_has_active_response", fault, message.get("event_id")
            )
            return
        await self.start_response((message.get("response") or {}).get("metadata"))

    async def _respond_out_of_band(self, requested: Message) -> None:
        """Start a response outside the conversation; several may be active, and speech interrupts none."""
        response = RealtimeResponse(
            self.socket,
            text=self._text_only,
            webrtc=self.webrtc,
            metadata=requested.get("metadata"),
            out_of_band=True,
        )
        self._out_of_band_responses[response.id] = response
        await response.start()
        if self.out_of_band is not None:
            self.out_of_band.put_nowait(response)
            return
        await response.start_message()
        await response.send_text(str(requested.get("instructions")))
        await response.send_audio(_OUT_OF_BAND_MS)
        await response.finish()

    async def _cancel(self, message: Message) -> None:
        out_of_band = self._out_of_band_responses.get(message.get("response_id") or "")
        if out_of_band is not None and not out_of_band.complete:
            await out_of_band.finish("cancelled", {"reason": "client_cancelled"})
            return
        if self.active is None or message.get("response_id") not in (None, self.active.id):
            await self.socket.reject(
                "response_cancel_not_active", "there is no active response", message.get("event_id")
            )
            return
        await self.cancel_response("client_cancelled")

    async def _clear_output(self, message: Message) -> None:
        if not self.webrtc:
            await self.socket.reject(
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


def _event_fault(message: Message) -> tuple[str, str]:
    """Return the code and message with which OpenAI would reject an event; both empty if it would not."""
    kind = message.get("type")
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    if check is None:
        return "invalid_value", f"there is no client event {kind!r}"
    fault = check(message)
    return ("invalid_request_error", f"{kind}: {fault}") if fault else ("", "")


def _session_fault(message: Message) -> str:
    session = message.get("session")
    if not isinstance(session, Mapping) or session.get("type") != "realtime":
        return 'session.type has to be "realtime"'
    if session.get("output_modalities") == ["text", "audio"]:
        return "text and audio cannot be requested together"
    for tool in session.get("tools") or ():
        if tool.get("type") != "function" or not tool.get("name"):
            return "a tool needs the type function and a name"
    for side in ("input", "output"):
        audio_format = (session.get("audio") or {}).get(side, {}).get("format") or {}
        if audio_format.get("type") == "audio/pcm" and audio_format.get("rate") != 24_000:
            return "PCM is 24 kHz only"
    return ""


def _append_fault(message: Message) -> str:
    try:
        pcm = binascii.a2b_base64(message["audio"], strict_mode=True)
    except (KeyError, ValueError, TypeError):
        return "audio has to be base64"
    return "half a sample" if len(pcm) % 2 else ""


def _item_fault(message: Message) -> str:
    item = message.get("item")
    if not isinstance(item, Mapping):
        return "an item is required"
    if len(item.get("id") or "") > 32:
        return "an id has at most 32 characters"
    if item.get("type") == "function_call_output":
        fields = (item.get("call_id"), item.get("output"))
        return "" if all(isinstance(each, str) for each in fields) else "call_id and output are strings"
    if item.get("type") != "message" or item.get("role") not in _CONTENT:
        return f"an item of type {item.get('type')!r} and role {item.get('role')!r} cannot be created"
    allowed = _CONTENT[item["role"]]
    kinds = {each.get("type") for each in item.get("content") or ()}
    return "" if kinds and kinds <= allowed else f"content of {sorted(map(str, kinds))} for {item['role']}"


def _truncation_fault(message: Message) -> str:
    end = message.get("audio_end_ms")
    if not isinstance(message.get("item_id"), str) or message.get("content_index") != 0:
        return "item_id and content_index 0 are required"
    return (
        ""
        if isinstance(end, int) and end > 0
        else "audio_end_ms has to be above 0; delete an item of which nothing was played"
    )


def _item_id_fault(message: Message) -> str:
    return "" if isinstance(message.get("item_id"), str) else "item_id is required"


def _no_fault(message: Message) -> str:  # noqa: ARG001
    return ""


_CHECKS: dict[str, Callable[[Message], str]] = {
    "session.update": _session_fault,
    "input_audio_buffer.append": _append_fault,
    "input_audio_buffer.commit": _no_fault,
    "input_audio_buffer.clear": _no_fault,
    "conversation.item.create": _item_fault,
    "conversation.item.retrieve": _item_id_fault,
    "conversation.item.truncate": _truncation_fault,
    "conversation.item.delete": _item_id_fault,
    "response.create": _no_fault,
    "response.cancel": _no_fault,
    "output_audio_buffer.clear": _no_fault,
}

"""Whether a message of a Realtime client is well formed."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping
from typing import Any

Message = Mapping[str, Any]

_CONTENT = {"user": {"input_text", "input_audio"}, "assistant": {"output_text"}, "system": {"input_text"}}


def wrong(message: Message) -> tuple[str, str]:
    """The code and the sentence of what OpenAI would refuse; both empty when there is nothing."""
    kind = message.get("type")
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    if check is None:
        return "invalid_value", f"there is no client event {kind!r}"
    said = check(message)
    return ("invalid_request_error", f"{kind}: {said}") if said else ("", "")


def sound(message: Message) -> bytes:
    """The audio of an append."""
    return binascii.a2b_base64(message["audio"])


def _session(message: Message) -> str:
    session = message.get("session")
    if not isinstance(session, Mapping) or session.get("type") != "realtime":
        return 'session.type has to be "realtime"'
    if session.get("output_modalities") == ["text", "audio"]:
        return "text and audio cannot be asked for together"
    for tool in session.get("tools") or ():
        if tool.get("type") != "function" or not tool.get("name"):
            return "a tool needs the type function and a name"
    for side in ("input", "output"):
        form = (session.get("audio") or {}).get(side, {}).get("format") or {}
        if form.get("type") == "audio/pcm" and form.get("rate") != 24_000:
            return "PCM is 24 kHz only"
    return ""


def _append(message: Message) -> str:
    try:
        pcm = binascii.a2b_base64(message["audio"], strict_mode=True)
    except (KeyError, ValueError, TypeError):
        return "audio has to be base64"
    return "half a sample" if len(pcm) % 2 else ""


def _create_item(message: Message) -> str:
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


def _truncate(message: Message) -> str:
    end = message.get("audio_end_ms")
    if not isinstance(message.get("item_id"), str) or message.get("content_index") != 0:
        return "item_id and content_index 0 are required"
    return "" if isinstance(end, int) and end > 0 else "audio_end_ms is above 0; delete what nobody heard"


def _named(message: Message) -> str:
    return "" if isinstance(message.get("item_id"), str) else "item_id is required"


def _bare(message: Message) -> str:  # noqa: ARG001
    return ""


_CHECKS: dict[str, Callable[[Message], str]] = {
    "session.update": _session,
    "input_audio_buffer.append": _append,
    "input_audio_buffer.commit": _bare,
    "input_audio_buffer.clear": _bare,
    "conversation.item.create": _create_item,
    "conversation.item.retrieve": _named,
    "conversation.item.truncate": _truncate,
    "conversation.item.delete": _named,
    "response.create": _bare,
    "response.cancel": _bare,
    "output_audio_buffer.clear": _bare,
}

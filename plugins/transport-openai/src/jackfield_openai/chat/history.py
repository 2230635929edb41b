"""Streamed replies, and the message history in an order that the API accepts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from jackfield.transport.events import Usage
from jackfield.transport.protocol import ConnectionConfig, ToolResult


@dataclass(slots=True)
class PartialCall:
    """A tool call that is being received."""

    name: str = ""
    arguments: str = ""
    id: str | None = None
    index: int | None = None
    extra: Any = None
    """Data that a compatible server expects back, such as a thought signature."""

    def complete(self) -> bool:
        """True if the arguments are valid JSON, and so may be complete."""
        try:
            orjson.loads(self.arguments)
        except orjson.JSONDecodeError:
            return False
        return True


@dataclass(slots=True)
class Reply:
    """A reply that is being received."""

    text: str = ""
    calls: list[PartialCall] = field(default_factory=list)
    finish: str | None = None
    usage: tuple[Usage, ...] = ()
    """The tokens of the reply, once the server has counted them."""

    def take(self, chunk: Any) -> str:
        """Add a chunk; return its new text."""
        if usage := getattr(chunk, "usage", None):
            self.usage = (Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0),)
        new = ""
        for choice in (getattr(chunk, "choices", None) or ())[:1]:
            self.finish = getattr(choice, "finish_reason", None) or self.finish
            delta = getattr(choice, "delta", None)
            if delta is None:
                continue
            for part in getattr(delta, "tool_calls", None) or ():
                self._add(part)
            new = getattr(delta, "content", None) or getattr(delta, "refusal", None) or ""
        self.text += new
        return new

    def _add(self, part: Any) -> None:
        """Add a fragment of a tool call."""
        function = getattr(part, "function", None)
        name = getattr(function, "name", None) or ""
        call = self._call_for(getattr(part, "index", None), getattr(part, "id", None) or None, name)
        call.name = call.name or name
        call.id = call.id or getattr(part, "id", None) or None
        call.extra = getattr(part, "extra_content", None) or call.extra
        arguments = getattr(function, "arguments", None)
        if isinstance(arguments, str):
            call.arguments += arguments
        elif arguments:
            # Some servers send the arguments as one object.
            call.arguments = orjson.dumps(arguments).decode()

    def _call_for(self, index: Any, call_id: str | None, name: str) -> PartialCall:
        """Return the call that a fragment belongs to, or a new one.

        The index decides, if it is present and correct. Some servers omit it or send 0 for every call; then a
        new id starts a call, and so does a name after a call with complete arguments.
        """
        number = index if isinstance(index, int) else None
        known = next((call for call in self.calls if call_id and call.id == call_id), None)
        if known is None and number is not None:
            known = next((call for call in reversed(self.calls) if call.index == number), None)
        elif known is None and self.calls:
            known = self.calls[-1]
        # Most fragments have neither an id nor a name, and continue a call.
        if known is not None and not ((call_id or name) and _begins_another(known, call_id, name)):
            return known
        self.calls.append(PartialCall(index=number))
        return self.calls[-1]


def _begins_another(call: PartialCall, call_id: str | None, name: str) -> bool:
    """Return whether a fragment starts a different call."""
    if call_id and call.id and call_id != call.id:
        return True
    same = bool(call_id) and call_id == call.id
    return bool(name and call.name) and not same and (name != call.name or call.complete())


Message = dict[str, Any]


@dataclass(slots=True)
class OpenCall:
    """A call that is waiting for its result."""

    wire_id: str
    call_id: str | None
    tool_id: str
    output: str | None = None


class History:
    """The message history; messages that arrive during calls or an answer are added with the next request."""

    def __init__(self, opening: ConnectionConfig) -> None:
        self.messages: list[Message] = []
        if opening.instructions:
            self.messages.append({"role": "system", "content": opening.instructions})
        self.messages += [{"role": each.speaker, "content": each.text} for each in opening.history]
        self._waiting: list[Message] = []
        self.open_calls: list[OpenCall] = []
        """The calls whose results the model is waiting for."""
        self._made = 0

    def add(self, role: str, text: str) -> None:
        """Add a message to the next request."""
        self._waiting.append({"role": role, "content": text})

    def for_request(self) -> list[Message]:
        """Return all messages, including the waiting ones."""
        self.messages += self._waiting
        self._waiting = []
        return list(self.messages)

    def add_answer(self, text: str) -> None:
        """Add the model's answer, complete or not."""
        if text:
            self.messages.append({"role": "assistant", "content": text})

    def add_calls(self, reply: Reply, tool_ids: Sequence[str]) -> None:
        """Add a message with calls, which then wait for results."""
        calls: list[Message] = []
        self.open_calls = []
        for call, tool_id in zip(reply.calls, tool_ids, strict=True):
            wire_id = call.id or self._made_id()
            self.open_calls.append(OpenCall(wire_id, call.id, tool_id))
            # Servers that parse the arguments in the history reject the whole request if they are malformed.
            function = {"name": call.name, "arguments": call.arguments if call.complete() else "{}"}
            written: Message = {"id": wire_id, "type": "function", "function": function}
            if call.extra is not None:
                written["extra_content"] = call.extra
            calls.append(written)
        self.messages.append({"role": "assistant", "content": reply.text or None, "tool_calls": calls})

    def add_results(self, results: Iterable[ToolResult]) -> bool:
        """Add call results; return whether every call now has one."""
        if not self.open_calls:
            return False
        by_id = {slot.call_id: slot for slot in self.open_calls if slot.call_id and slot.output is None}
        for result in results:
            if slot := by_id.pop(result.call_id, None) or self._slot_without_id(result):
                slot.output = result.envelope.decode()
        if any(slot.output is None for slot in self.open_calls):
            return False
        self.messages += [
            {"role": "tool", "tool_call_id": slot.wire_id, "content": slot.output} for slot in self.open_calls
        ]
        self.open_calls = []
        return True

    def _slot_without_id(self, result: ToolResult) -> OpenCall | None:
        """Return the call for a result without an id: the first to the same tool, or else the first."""
        waiting = [slot for slot in self.open_calls if slot.call_id is None and slot.output is None]
        same_tool = (slot for slot in waiting if slot.tool_id == result.tool_id)
        return next(same_tool, waiting[0] if waiting else None)

    def _made_id(self) -> str:
        self._made += 1
        return f"call_jf{self._made}"

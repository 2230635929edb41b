"""The conversation as every request repeats it, always in an order that the API accepts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jackfield.transport.protocol import Opening, ToolResult

from jackfield_openai.chat.reply import CallInPieces, Reply, is_json

Message = dict[str, Any]


@dataclass(slots=True)
class _Slot:
    """A call that waits for its result."""

    wire_id: str
    call_id: str | None
    tool_id: str
    output: str | None = None


class History:
    """Messages; those that come while calls are open, or the model speaks, are kept until they fit in."""

    def __init__(self, opening: Opening) -> None:
        self.messages: list[Message] = []
        if opening.instructions:
            self.messages.append({"role": "system", "content": opening.instructions})
        self.messages += [{"role": each.speaker, "content": each.text} for each in opening.history]
        self._waiting: list[Message] = []
        self._slots: list[_Slot] = []
        self._made = 0

    @property
    def has_open_calls(self) -> bool:
        """Whether the model waits for results."""
        return bool(self._slots)

    def add(self, role: str, text: str) -> None:
        """Something that was said or should be known; it enters with the next request."""
        self._waiting.append({"role": role, "content": text})

    def for_request(self) -> list[Message]:
        """Everything, with what was waiting."""
        self.messages += self._waiting
        self._waiting = []
        return list(self.messages)

    def said(self, text: str) -> None:
        """What the model said, whether to the end or not."""
        if text:
            self.messages.append({"role": "assistant", "content": text})

    def called(self, reply: Reply, tool_ids: Sequence[str]) -> None:
        """A message with calls, which are open from now on."""
        self._slots = [
            _Slot(call.id or self._made_id(), call.id, tool_id)
            for call, tool_id in zip(reply.calls, tool_ids, strict=True)
        ]
        calls = [_written(call, slot.wire_id) for call, slot in zip(reply.calls, self._slots, strict=True)]
        self.messages.append({"role": "assistant", "content": reply.text or None, "tool_calls": calls})

    def answered(self, results: Iterable[ToolResult]) -> bool:
        """Results of calls; whether they were the last that the model waits for."""
        if not self._slots:
            return False
        for result in results:
            if slot := self._slot(result):
                slot.output = result.envelope.decode()
        if any(slot.output is None for slot in self._slots):
            return False
        self.messages += [
            {"role": "tool", "tool_call_id": slot.wire_id, "content": slot.output} for slot in self._slots
        ]
        self._slots = []
        return True

    def _slot(self, result: ToolResult) -> _Slot | None:
        """The call a result is for; one that came without an id is known by its tool, or by its place."""
        waiting = [slot for slot in self._slots if slot.output is None]
        for fits in (
            lambda slot: slot.call_id is not None and slot.call_id == result.call_id,
            lambda slot: slot.call_id is None and slot.tool_id == result.tool_id,
            lambda slot: slot.call_id is None,
        ):
            if found := next(filter(fits, waiting), None):
                return found
        return None

    def _made_id(self) -> str:
        self._made += 1
        return f"call_jf{self._made}"


def _written(call: CallInPieces, wire_id: str) -> Message:
    # Servers that read the arguments in the history refuse the whole request when they are malformed.
    arguments = call.arguments if is_json(call.arguments) else "{}"
    written: Message = {
        "id": wire_id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
    if call.extra is not None:
        written["extra_content"] = call.extra
    return written

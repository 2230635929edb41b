"""The function calls of a Live session: delivery, cancellation and results."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from jackfield.contract.tool import ToolCall
from jackfield.transport.protocol import ToolResult
from jackfield_schemas.names import ToolNames

Asked = Mapping[str, Any]
"""A function call of Gemini: `id`, `name`, `args`."""


class LiveCalls:
    """Delivers each call once, and maps results to the ids of their calls.

    Gemini sends a call as a `toolCall` message; with some models it also appears in the content of the turn.
    A call that only appeared there counts if the turn is completed, and is dropped if it is interrupted.
    """

    def __init__(self, names: ToolNames, scheduling: str | None) -> None:
        self._names = names
        self._scheduling = scheduling
        self._shown: dict[str, Asked] = {}
        self._made: set[str] = set()
        self._open: Counter[str] = Counter()
        self._continued: set[str] = set()
        self._cancelled: set[str] = set()
        self._generated_ids: dict[str, deque[str]] = {}
        self._ours = 0

    @property
    def open(self) -> bool:
        """True if the model is waiting for a result; after a part of the result, it no longer is."""
        return bool(self._open.keys() - self._continued)

    @property
    def held(self) -> bool:
        """True if calls appeared in a turn that may still be confirmed or dropped."""
        return bool(self._shown)

    def show(self, asked: Asked) -> None:
        """Add a call that appears in the content of a turn."""
        key = _key(asked)
        if key not in self._made:
            self._shown[key] = asked

    def make(self, asked: Iterable[Asked]) -> tuple[ToolCall, ...]:
        """Return calls that the model is waiting for; a repeated delivery is returned again."""
        return tuple(self._deliver(each) for each in asked)

    def settle(self) -> tuple[ToolCall, ...]:
        """Confirm the calls that appeared in the turn."""
        return self.make(list(self._shown.values()))

    def end_turn(self) -> None:
        """End the turn."""
        self._shown.clear()
        self._made.clear()

    def cancel(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Mark calls as cancelled."""
        gone = tuple(ids)
        for each in gone:
            if self._open.pop(each, 0):
                self._cancelled.add(each)
                self._continued.discard(each)
        return gone

    def part(self, part: ToolResult) -> dict[str, Any] | None:
        """Return a part of a result in Gemini's form; None if no call with its id is open."""
        call_id = part.call_id
        if call_id not in self._open:
            return None
        self._continued.add(call_id)
        name, response = self._names.provider_name(part.tool_id), orjson.loads(part.envelope)
        # Silent: the model can use the part if the user asks, but speaks only about the result.
        return {
            "id": call_id,
            "name": name,
            "response": response,
            "scheduling": "SILENT",
            "will_continue": True,
        }

    def answer(
        self, results: Sequence[ToolResult], *, respond: bool
    ) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the results in Gemini's form, and notes about cancelled calls that ran."""
        scheduling = self._scheduling if respond else "SILENT"
        answers: list[dict[str, Any]] = []
        notes: list[str] = []
        for result in results:
            response = orjson.loads(result.envelope)
            call_id = self._id_of(result)
            if call_id in self._cancelled:
                if _had_effect(response):
                    text = result.envelope.decode()
                    notes.append(
                        f"[Note: the call to {result.tool_id} was cancelled too late; it ran. {text}]"
                    )
                continue
            answer: dict[str, Any] = {
                "id": call_id,
                "name": self._names.provider_name(result.tool_id),
                "response": response,
            }
            if self._scheduling:
                answer["scheduling"] = scheduling
            if call_id in self._continued:
                answer["will_continue"] = False
            answers.append(answer)
            self._open[call_id] -= 1
            if self._open[call_id] <= 0:
                del self._open[call_id]
                self._continued.discard(call_id)
        return answers, notes

    def _deliver(self, asked: Asked) -> ToolCall:
        key = _key(asked)
        self._shown.pop(key, None)
        self._made.add(key)
        tool_id = self._names.tool_id(str(asked.get("name", "")))
        args = asked.get("args")
        call_id = asked.get("id")
        self._open[call_id or self._generate_id(tool_id)] += 1
        return ToolCall(tool_id, orjson.dumps({} if args is None else args), call_id or None)

    def _generate_id(self, tool_id: str) -> str:
        # The SDK requires an id in a result, even if the call had none.
        self._ours += 1
        made = f"call-{self._ours}"
        self._generated_ids.setdefault(tool_id, deque()).append(made)
        return made

    def _id_of(self, result: ToolResult) -> str:
        waiting = self._generated_ids.get(result.tool_id)
        known = result.call_id in self._open or result.call_id in self._cancelled
        return waiting.popleft() if waiting and not known else result.call_id


def _key(asked: Asked) -> str:
    if call_id := asked.get("id"):
        return str(call_id)
    return orjson.dumps([asked.get("name"), asked.get("args")], option=orjson.OPT_SORT_KEYS).decode()


def _had_effect(envelope: Any) -> bool:
    error = envelope.get("error") if isinstance(envelope, dict) else None
    return not isinstance(error, dict) or bool(error.get("partialSideEffects"))

"""The calls of a Live session, from the message that makes them to the answer that goes back."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from jackfield.contract.call import ToolCall
from jackfield.transport.protocol import ToolResult
from jackfield_schemas.names import ToolNames

Asked = Mapping[str, Any]
"""A call as Gemini writes it: `id`, `name`, `args`."""


class Calls:
    """Hands on each call once, and knows under which id its answer goes back.

    Gemini makes a call by a `toolCall` message; some models also show it in the content of their turn. One
    that was only shown counts when the turn goes on to its end, and is dropped when the turn is cut short.
    """

    def __init__(self, names: ToolNames, scheduling: str | None) -> None:
        self._names = names
        self._scheduling = scheduling
        self._shown: dict[str, Asked] = {}
        self._made: set[str] = set()
        self._open: Counter[str] = Counter()
        self._cancelled: set[str] = set()
        self._nameless: dict[str, deque[str]] = {}
        self._ours = 0

    @property
    def open(self) -> bool:
        """Whether the model waits for an answer."""
        return bool(self._open)

    @property
    def held(self) -> bool:
        """Whether calls were shown that may yet be made, or dropped."""
        return bool(self._shown)

    def show(self, asked: Asked) -> None:
        """A call in the content of a turn."""
        key = _key(asked)
        if key not in self._made:
            self._shown[key] = asked

    def make(self, asked: Iterable[Asked]) -> tuple[ToolCall, ...]:
        """Calls that the model waits for; one that is delivered again comes again, for others to judge."""
        return tuple(self._deliver(each) for each in asked)

    def settle(self) -> tuple[ToolCall, ...]:
        """What was shown is meant."""
        return self.make(list(self._shown.values()))

    def end_turn(self) -> None:
        """What comes next belongs to another turn."""
        self._shown.clear()
        self._made.clear()

    def cancel(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Calls whose answers are no longer wanted."""
        gone = tuple(ids)
        for each in gone:
            if self._open.pop(each, 0):
                self._cancelled.add(each)
        return gone

    def answer(
        self, results: Sequence[ToolResult], *, respond: bool
    ) -> tuple[list[dict[str, Any]], list[str]]:
        """Answers as Gemini wants them, and notes about what was done although it was taken back."""
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
                        f"[Note: the call of {result.tool_id} was cancelled too late; it ran. {text}]"
                    )
                continue
            answer = {"id": call_id, "name": self._names.provider_name(result.tool_id), "response": response}
            answers.append({**answer, "scheduling": scheduling} if self._scheduling else answer)
            self._open[call_id] -= 1
            if self._open[call_id] <= 0:
                del self._open[call_id]
        return answers, notes

    def _deliver(self, asked: Asked) -> ToolCall:
        key = _key(asked)
        self._shown.pop(key, None)
        self._made.add(key)
        tool_id = self._names.tool_id(str(asked.get("name", "")))
        args = asked.get("args")
        call_id = asked.get("id")
        self._open[call_id or self._id_for_nameless(tool_id)] += 1
        return ToolCall(tool_id, orjson.dumps({} if args is None else args), call_id or None)

    def _id_for_nameless(self, tool_id: str) -> str:
        # The SDK refuses an answer without an id, also to a call that had none.
        self._ours += 1
        made = f"call-{self._ours}"
        self._nameless.setdefault(tool_id, deque()).append(made)
        return made

    def _id_of(self, result: ToolResult) -> str:
        waiting = self._nameless.get(result.tool_id)
        known = result.call_id in self._open or result.call_id in self._cancelled
        return waiting.popleft() if waiting and not known else result.call_id


def _key(asked: Asked) -> str:
    if call_id := asked.get("id"):
        return str(call_id)
    return orjson.dumps([asked.get("name"), asked.get("args")], option=orjson.OPT_SORT_KEYS).decode()


def _had_effect(envelope: Any) -> bool:
    error = envelope.get("error") if isinstance(envelope, dict) else None
    return not isinstance(error, dict) or bool(error.get("partialSideEffects"))

"""Calls of one message, and the answers that have come to them."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield.contract.call import ToolCall
from jackfield.transport.protocol import ToolResult


class Exchange:
    """Complete when every call has its answer."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self._order = [call.call_id or "" for call in calls]
        self._answers: dict[str, ToolResult] = {}

    def take(self, results: Sequence[ToolResult]) -> None:
        """Answers; the first one to a call counts, and one to no call of ours is dropped."""
        for result in results:
            if result.call_id in self._order:
                self._answers.setdefault(result.call_id, result)

    @property
    def complete(self) -> bool:
        """Whether the mind can go on."""
        return len(self._answers) == len(self._order)

    def answers(self) -> tuple[ToolResult, ...]:
        """The answers in the order of the calls."""
        return tuple(self._answers[call_id] for call_id in self._order)

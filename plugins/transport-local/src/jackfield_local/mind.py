"""What a connection and a mind are to each other, in text and voice alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from jackfield.contract.call import ToolCall
from jackfield.transport.events import FormRequest, ToolCalls
from jackfield.transport.protocol import Opening, ToolResult


class Words(NamedTuple):
    """A piece of what is said, as it is made; a sentence may span several."""

    text: str


Thought = Words | ToolCalls | FormRequest
"""Calls, or a form, are always the last thought of an answer."""

LONGEST_TEXT = 40_000
"""Characters of one message; the rest is not read."""


class PendingCalls:
    """The calls of one message, which the mind waits for."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self._results: dict[str, ToolResult | None] = {call.call_id or "": None for call in calls}

    def complete(self, results: Sequence[ToolResult]) -> tuple[ToolResult, ...] | None:
        """Add results; all of them in the order of the calls, or None while some are missing.

        The first result of a call counts; one that belongs to no call is dropped.
        """
        for result in results:
            if self._results.get(result.call_id, result) is None:
                self._results[result.call_id] = result
        known = tuple(result for result in self._results.values() if result is not None)
        return known if len(known) == len(self._results) else None


class Dialogue(Protocol):
    """One conversation as its mind keeps it; one answer at a time."""

    def answer(self, text: str) -> AsyncIterator[Thought]:
        """The user said this."""

    def go_on(self, results: Sequence[ToolResult]) -> AsyncIterator[Thought]:
        """The calls of the last message are answered, all of them."""

    def submit(self, tool_id: str, values: Mapping[str, Any]) -> AsyncIterator[Thought]:
        """The user completed the form of a tool."""

    def learn(self, text: str) -> None:
        """Context that the user did not say."""

    def respond(self) -> AsyncIterator[Thought]:
        """Speak of what was last learned."""

    def interrupted(self, heard: str) -> None:
        """The last answer was cut short after these words; its iterator may be closed at any point."""


class Mind(Protocol):
    """Who thinks; shared by all sessions of a process."""

    async def open(self, opening: Opening) -> Dialogue:
        """A new conversation; models are loaded when the first one begins, off the event loop."""

    async def close(self) -> None:
        """Let go of what all conversations share."""

"""What a connection and a mind are to each other, in text and voice alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from jackfield.transport.events import FormRequest, ToolCalls
from jackfield.transport.protocol import ConnectionConfig, ToolResult


class Words(NamedTuple):
    """A piece of what is said, as it is made; a sentence may span several."""

    text: str


Thought = Words | ToolCalls | FormRequest
"""Calls, or a form, are always the last thought of an answer."""


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

    async def open(self, opening: ConnectionConfig) -> Dialogue:
        """A new conversation; models are loaded when the first one begins, off the event loop."""

    async def close(self) -> None:
        """Let go of what all conversations share."""

"""A conversation in text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from jackfield.transport.events import FormRequest, TextDelta, ToolCalls

from jackfield_local.connection import LONGEST_TEXT, LocalConnection
from jackfield_local.mind import Thought


class TextConnection(LocalConnection):
    """Every message is answered, one after the other."""

    _said = ""

    async def send_text(self, text: str) -> None:
        """A message of the user; it waits for an answer, or for calls, that are under way."""
        self._ask(lambda: self._dialogue.answer(text[:LONGEST_TEXT]))

    async def send_form(self, tool_id: str, values: Mapping[str, Any] | None) -> None:
        """The form of a tool, completed; a form that was dismissed needs no answer."""
        if values is not None:
            self._ask(lambda: self._dialogue.submit(tool_id, values))

    async def send_audio(self, pcm: bytes) -> None:
        """Nothing: a conversation in text has no microphone."""

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Nothing: what is written is read."""

    def _heard(self) -> str:
        return self._said

    async def _deliver(self, thoughts: AsyncIterator[Thought]) -> ToolCalls | None:
        self._said = ""
        # Closed when it is interrupted, so that whatever a dialogue has under way ends with its answer.
        async with aclosing(thoughts):  # type: ignore[type-var]  # dialogues answer with generators
            async for thought in thoughts:
                if isinstance(thought, ToolCalls):
                    return thought
                if isinstance(thought, FormRequest):
                    self._events.put_nowait(thought)
                elif thought.text:
                    self._said += thought.text
                    await self._events.put(TextDelta(thought.text))
        return None

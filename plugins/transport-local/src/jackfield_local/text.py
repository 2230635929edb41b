"""A conversation in text: a dialogue carried as events."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from jackfield.transport.events import (
    Closed,
    Event,
    FormRequest,
    Interrupted,
    TextDelta,
    ToolCalls,
    Trouble,
    TurnComplete,
)
from jackfield.transport.protocol import ToolResult
from jackfield.transport.queue import EventQueue

from jackfield_local.mind import LONGEST_TEXT, Dialogue, PendingCalls, Thought

_log = logging.getLogger(__name__)

_Answer = Callable[[], AsyncIterator[Thought]]


class TextConnection:
    """A line to a mind in this process; it stands until somebody hangs up."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue
        self._events = EventQueue()
        self._waiting: deque[_Answer] = deque()
        self._speaking: asyncio.Task[None] | None = None
        self._calls: PendingCalls | None = None
        self._said = ""

    @property
    def resume(self) -> str | None:
        """Nothing: what was said comes back with the opening."""
        return None

    def events(self) -> AsyncIterator[Event]:
        """Everything that comes, in order, up to `Closed`."""
        return aiter(self._events)

    async def send_text(self, text: str) -> None:
        """A message of the user; it waits for an answer, or for calls, that are under way."""
        self._ask(lambda: self._dialogue.answer(text[:LONGEST_TEXT]))

    async def send_form(self, tool_id: str, values: Mapping[str, Any] | None) -> None:
        """The form of a tool, completed; a form that was dismissed needs no answer."""
        if values is not None:
            self._ask(lambda: self._dialogue.submit(tool_id, values))

    async def send_audio(self, pcm: bytes) -> None:
        """Nothing: a conversation in text has no microphone."""

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Answers to calls; with the last of them the mind goes on, or with what the user says next."""
        answers = self._calls.complete(results) if self._calls is not None else None
        if answers is None:
            return
        self._calls = None
        if respond:
            self._waiting.appendleft(lambda: self._dialogue.go_on(answers))
        else:
            for each in answers:
                self._dialogue.learn(f"The answer to the call of {each.tool_id}: {each.envelope.decode()}")
        self._next()

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """Something the mind should know; `respond` has it speak of it."""
        self._dialogue.learn(text[:LONGEST_TEXT])
        if respond:
            self._ask(self._dialogue.respond)

    async def interrupt(self) -> None:
        """Stop what is being said; what was said of it counts as read."""
        speaking = self._speaking
        if speaking is None:
            return
        self._speaking = None
        speaking.cancel()
        await asyncio.wait((speaking,))
        self._dialogue.interrupted(self._said)
        self._events.put_nowait(Interrupted())
        self._next()

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Nothing: what is written is read."""

    async def close(self) -> None:
        """Hang up."""
        self._waiting.clear()
        self._events.close(Closed())
        if self._speaking is not None:
            self._speaking.cancel()
            await asyncio.wait((self._speaking,))

    def _ask(self, answer: _Answer) -> None:
        self._waiting.append(answer)
        self._next()

    def _next(self) -> None:
        if self._waiting and not self._events.closed and self._speaking is None and self._calls is None:
            self._speaking = asyncio.create_task(self._speak(self._waiting.popleft()))

    async def _speak(self, answer: _Answer) -> None:
        self._said = ""
        end: Event = TurnComplete()
        try:
            end = await self._carried(answer())
        except Exception:  # noqa: BLE001 - whatever a mind stumbles over, the conversation goes on
            _log.exception("the local mind failed in an answer")
            end = Trouble("server_error", "the local mind failed; the log says more")
        if self._speaking is not asyncio.current_task():
            return  # It was interrupted in the moment in which it ended.
        self._speaking = None
        if isinstance(end, ToolCalls):
            self._calls = PendingCalls(end.calls)
        self._events.put_nowait(end)
        self._next()

    async def _carried(self, thoughts: AsyncIterator[Thought]) -> Event:
        """Pass on what is said; how the answer ends."""
        # Closed when it is interrupted, so that whatever a mind has under way ends with its answer.
        async with aclosing(cast("AsyncGenerator[Thought, None]", thoughts)):
            async for thought in thoughts:
                if isinstance(thought, ToolCalls):
                    return thought
                if isinstance(thought, FormRequest):
                    self._events.put_nowait(thought)
                    break
                if thought.text:
                    self._said += thought.text
                    await self._events.put(TextDelta(thought.text))
        return TurnComplete()

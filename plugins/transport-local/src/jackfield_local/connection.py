"""Connections to a dialogue in this process: the part shared by text and voice, and the text connection."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from jackfield.transport.events import (
    Closed,
    Event,
    FormRequest,
    Interrupted,
    ProviderError,
    TextDelta,
    ToolCalls,
    TurnComplete,
)
from jackfield.transport.protocol import ToolResult
from jackfield.transport.queue import EventQueue

_log = logging.getLogger(__name__)

LONGEST_TEXT = 40_000  # Maximum characters of one message; the rest is not read.

AnswerPart = TextDelta | ToolCalls | FormRequest
"""Calls, or a form, are always the last part of an answer."""


class Dialogue(Protocol):
    """One conversation; it gives one answer at a time."""

    def answer(self, text: str) -> AsyncIterator[AnswerPart]:
        """Answer a message from the user."""

    def continue_with(self, results: Sequence[ToolResult]) -> AsyncIterator[AnswerPart]:
        """Continue with the results of all calls of the last answer."""

    def submit_form(self, tool_id: str, values: Mapping[str, Any]) -> AsyncIterator[AnswerPart]:
        """Continue with a tool's form that the user has completed."""

    def add_context(self, text: str) -> None:
        """Add context that the user did not say."""

    def respond(self) -> AsyncIterator[AnswerPart]:
        """Respond to the most recently added context."""

    def interrupted(self, *, heard: bool) -> None:
        """Record that the last answer was cut short, and whether the user heard or read any of it."""


AnswerSource = Callable[[], AsyncIterator[AnswerPart]]


class LocalConnection(ABC):
    """Schedules the answers of a dialogue; it stays open until the host closes it."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue
        self._events = EventQueue()
        self._waiting: deque[AnswerSource] = deque()
        self._answering: asyncio.Task[None] | None = None
        self._calls: dict[str, ToolResult | None] = {}
        self._results: tuple[ToolResult, ...] = ()
        # Whether the last answer was cut short and the dialogue has not been told yet what was heard.
        self._unfinished = False

    @property
    def resume(self) -> str | None:
        """None: the configuration of the next connection contains the history."""
        return None

    def events(self) -> AsyncIterator[Event]:
        """Iterate over all events in order, up to `Closed`."""
        return aiter(self._events)

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Accept call results; the dialogue continues after the last one, or with the next message.

        The first result of a call counts; a result that belongs to no call is dropped.
        """
        for result in results:
            if self._calls.get(result.call_id, result) is None:
                self._calls[result.call_id] = result
        known = tuple(result for result in self._calls.values() if result is not None)
        if known and len(known) == len(self._calls):
            self._calls, self._results = {}, known
            if respond and not self._overtaken:
                self._waiting.appendleft(self._continue)
            self._next()

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """Pass context to the dialogue; if `respond` is set, the dialogue responds to it."""
        if not self._events.closed:
            self._dialogue.add_context(text[:LONGEST_TEXT])
            if respond and not self._overtaken:
                self._ask(self._dialogue.respond)

    async def interrupt(self) -> None:
        """Stop the answer in progress."""
        if await self._cut():
            self._events.put_nowait(Interrupted())
        self._next()

    async def close(self) -> None:
        """Close the connection."""
        self._events.close(Closed())
        await self._cancel_answer()

    # Text and voice implement these differently.

    @abstractmethod
    async def _deliver(self, answer: AsyncIterator[AnswerPart]) -> ToolCalls | None:
        """Deliver an answer; return the calls that it ends with, or None if the turn is complete."""

    @abstractmethod
    def _is_heard(self) -> bool:
        """Return whether the user heard or read any of the last answer."""

    @property
    def _has_turn(self) -> bool:
        return True

    @property
    def _overtaken(self) -> bool:
        """True if the user has said more in the meantime; the dialogue answers that instead."""
        return False

    # One answer at a time.

    def _ask(self, source: AnswerSource) -> None:
        self._waiting.append(source)
        self._next()

    def _continue(self) -> AsyncIterator[AnswerPart]:
        results, self._results = self._results, ()
        return self._dialogue.continue_with(results)

    def _next(self) -> None:
        busy = self._answering is not None or self._calls or not self._has_turn
        if self._waiting and not busy and not self._events.closed:
            self._answering = asyncio.create_task(self._answer())

    async def _answer(self) -> None:
        end: Event | None = None
        try:
            if self._waiting[0] != self._continue:
                await self._begin_turn()
            # Taken only now, because an answer that is cancelled earlier would lose the queued input.
            answer = self._waiting.popleft()()
            self._unfinished = True
            end = await self._deliver(answer)
        except Exception:  # noqa: BLE001 - the conversation continues after any error in an answer
            _log.exception("the local agent failed while answering")
            end = ProviderError("server_error", "the local agent failed; see the log")
        if self._answering is not asyncio.current_task():
            return  # It was interrupted just as it ended.
        self._answering, self._unfinished = None, False
        if isinstance(end, ToolCalls):
            self._calls = dict.fromkeys(call.call_id or "" for call in end.calls)
        self._events.put_nowait(end or TurnComplete())
        self._next()

    async def _begin_turn(self) -> None:
        """Tell the dialogue what happened since its last answer."""
        if self._results:
            # The user has moved on: the dialogue gets the results, but its answer to them is dropped.
            async with aclosing(self._continue()) as answer:  # type: ignore[type-var]
                await anext(answer, None)
            self._dialogue.interrupted(heard=False)
        elif self._unfinished:
            self._dialogue.interrupted(heard=self._is_heard())
        self._unfinished = False

    async def _cut(self) -> bool:
        """Stop the answer in progress; return whether there was one."""
        return await self._cancel_answer()

    async def _cancel_answer(self) -> bool:
        answering, self._answering = self._answering, None
        if answering is not None:
            answering.cancel()
            await asyncio.wait((answering,))
        return answering is not None


class TextConnection(LocalConnection):
    """Answers every text message, one after the other."""

    _is_shown = False

    async def send_text(self, text: str) -> None:
        """Queue a message from the user until the current answer and its calls are finished."""
        self._ask(lambda: self._dialogue.answer(text[:LONGEST_TEXT]))

    async def send_form(self, tool_id: str, values: Mapping[str, Any] | None) -> None:
        """Queue a tool's form that the user has completed; a dismissed form needs no answer."""
        if values is not None:
            self._ask(lambda: self._dialogue.submit_form(tool_id, values))

    async def send_audio(self, pcm: bytes) -> None:
        """Ignore audio: a text conversation has no microphone."""

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Do nothing: text counts as read."""

    def _is_heard(self) -> bool:
        return self._is_shown

    async def _deliver(self, answer: AsyncIterator[AnswerPart]) -> ToolCalls | None:
        self._is_shown = False
        # Closed on interruption, so that the dialogue's work ends with its answer.
        async with aclosing(answer):  # type: ignore[type-var]  # dialogues answer with generators
            async for part in answer:
                if isinstance(part, ToolCalls):
                    return part
                if isinstance(part, FormRequest):
                    self._events.put_nowait(part)
                elif part.text:
                    self._is_shown = self._is_shown or bool(part.text.strip())
                    await self._events.put(part)
        return None

"""A connection to a dialogue in this process, in text and voice alike: one answer at a time."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing

from jackfield.transport.events import Closed, Event, Interrupted, ProviderError, ToolCalls, TurnComplete
from jackfield.transport.protocol import ToolResult
from jackfield.transport.queue import EventQueue

from jackfield_local.mind import Dialogue, Thought

_log = logging.getLogger(__name__)

LONGEST_TEXT = 40_000
"""Characters of one message; the rest is not read."""

Answer = Callable[[], AsyncIterator[Thought]]


class LocalConnection(ABC):
    """Schedules the answers of a dialogue; it stays open until the host closes it."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue
        self._events = EventQueue()
        self._waiting: deque[Answer] = deque()
        self._answering: asyncio.Task[None] | None = None
        self._calls: dict[str, ToolResult | None] = {}
        self._results: tuple[ToolResult, ...] = ()
        # Whether the last answer was cut short, and the dialogue was not told how much of it was heard.
        self._unfinished = False

    @property
    def resume(self) -> str | None:
        """Nothing: what was said comes back with the opening."""
        return None

    def events(self) -> AsyncIterator[Event]:
        """Everything that comes, in order, up to `Closed`."""
        return aiter(self._events)

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Answers to calls; the dialogue goes on with the last of them, or else with the next message.

        The first result of a call counts; one that belongs to no call is dropped.
        """
        for result in results:
            if self._calls.get(result.call_id, result) is None:
                self._calls[result.call_id] = result
        known = tuple(result for result in self._calls.values() if result is not None)
        if known and len(known) == len(self._calls):
            self._calls, self._results = {}, known
            if respond and not self._overtaken:
                self._waiting.appendleft(self._go_on)
            self._next()

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """Something the dialogue should know; `respond` has it speak of it."""
        if not self._events.closed:
            self._dialogue.learn(text[:LONGEST_TEXT])
            if respond and not self._overtaken:
                self._ask(self._dialogue.respond)

    async def interrupt(self) -> None:
        """Stop the answer under way."""
        if await self._cut():
            self._events.put_nowait(Interrupted())
        self._next()

    async def close(self) -> None:
        """Hang up."""
        self._events.close(Closed())
        await self._cancel_answer()

    # What text and voice do in their own ways.

    @abstractmethod
    async def _deliver(self, thoughts: AsyncIterator[Thought]) -> ToolCalls | None:
        """Pass an answer on; the calls in which it ends, or None when the turn is complete."""

    @abstractmethod
    def _heard(self) -> str:
        """What the user got of the last answer."""

    @property
    def _has_turn(self) -> bool:
        return True

    @property
    def _overtaken(self) -> bool:
        """Whether the user has said more meanwhile, which is answered instead."""
        return False

    # One answer at a time.

    def _ask(self, answer: Answer) -> None:
        self._waiting.append(answer)
        self._next()

    def _go_on(self) -> AsyncIterator[Thought]:
        results, self._results = self._results, ()
        return self._dialogue.go_on(results)

    def _next(self) -> None:
        busy = self._answering is not None or self._calls or not self._has_turn
        if self._waiting and not busy and not self._events.closed:
            self._answering = asyncio.create_task(self._answer())

    async def _answer(self) -> None:
        end: Event | None = None
        try:
            if self._waiting[0] != self._go_on:
                await self._begin_turn()
            # Taken only now: until here, what waits would be lost with an answer that is cancelled.
            thoughts = self._waiting.popleft()()
            self._unfinished = True
            end = await self._deliver(thoughts)
        except Exception:  # noqa: BLE001 - whatever a dialogue stumbles over, the conversation goes on
            _log.exception("the local agent failed in an answer")
            end = ProviderError("server_error", "the local agent failed; the log says more")
        if self._answering is not asyncio.current_task():
            return  # It was interrupted in the moment in which it ended.
        self._answering, self._unfinished = None, False
        if isinstance(end, ToolCalls):
            self._calls = dict.fromkeys(call.call_id or "" for call in end.calls)
        self._events.put_nowait(end or TurnComplete())
        self._next()

    async def _begin_turn(self) -> None:
        """Tell the dialogue what happened since its last answer."""
        if self._results:
            # The user has gone on: the dialogue takes in the results without a word about them.
            async with aclosing(self._go_on()) as thoughts:  # type: ignore[type-var]
                await anext(thoughts, None)
            self._dialogue.interrupted("")
        elif self._unfinished:
            self._dialogue.interrupted(self._heard())
        self._unfinished = False

    async def _cut(self) -> bool:
        """Stop the answer under way; whether there was one."""
        return await self._cancel_answer()

    async def _cancel_answer(self) -> bool:
        answering, self._answering = self._answering, None
        if answering is not None:
            answering.cancel()
            await asyncio.wait((answering,))
        return answering is not None

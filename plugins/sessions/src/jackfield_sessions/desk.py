"""Calls that a user's client makes itself: in a conversation that is held here, or in a session that is kept.

Nobody is rung up for them: a session that is not in conversation is used as it was kept, by one object for
all who use it at a time, and what happens is added to its events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from jackfield.call_events import publish_decisions, tool_end, tool_start
from jackfield.contract.call import ToolCall
from jackfield.orchestrator import Answer
from jackfield.runtime import Runtime
from jackfield.session.session import Session
from jackfield.session.turn import Turn
from jackfield.store import StoreUnavailableError

from jackfield_sessions.events import Events
from jackfield_sessions.feed import Feed
from jackfield_sessions.talk import Talk

_log = logging.getLogger(__name__)

KEEP_SECONDS = 5.0
"""How long a call that has its answer waits for its events to be kept."""

_R = TypeVar("_R")


@dataclass
class _Seat:
    """A session in use without a conversation."""

    session: Session
    feed: Feed
    users: int = 0


class Desk:
    """Runs calls for users rather than for models."""

    def __init__(self, runtime: Runtime, talks: Mapping[str, Talk]) -> None:
        """`talks` are the conversations of this host."""
        self._runtime = runtime
        self._talks = talks
        self._seats: dict[str, _Seat] = {}
        self._working: set[asyncio.Task[Any]] = set()

    async def run(self, session: Session, call: ToolCall, *, again: bool, group: str | None = None) -> Answer:
        """Answer a call; `again` says that events about it were published before.

        Every call is a turn of its own; consecutive calls of the same `group` share one.
        """
        return await self._to_its_end(self._run(session, call, again, group))

    async def decide(self, session: Session, token: str, *, approve: bool) -> Answer | None:
        """Carry out a user's decision; what became of the call, or nothing for an unknown token."""
        return await self._to_its_end(self._decide(session, token, approve))

    async def settle(self) -> None:
        """Wait until no call is running."""
        while self._working:
            await asyncio.wait(self._working)

    async def _run(self, session: Session, call: ToolCall, again: bool, group: str | None) -> Answer:
        runtime = self._runtime
        async with self._at(session) as used:
            if not again:
                used.publish("tool_start", tool_start(runtime.registry, call))
            turn = used.turn if again else self._turn(used, group)
            (answer,) = await runtime.orchestrator.handle(used, [call], turn)
            publish_decisions(used, answer)
            if not again:
                used.publish(*tool_end(answer))
            return answer

    def _turn(self, session: Session, group: str | None) -> Turn:
        """The turn that a client's call counts against: its own, or that of its group."""
        talk = self._talks.get(session.id)
        turn = session.turn if talk is None else talk.client_turn
        if group is None or turn is None or turn.group != group:
            if talk is None:
                turn = session.begin_turn()
            else:
                # The model's own turn goes on beside it, with its own budget.
                turn = talk.client_turn = Turn(session.turn.number)
            turn.group = group
        return turn

    async def _decide(self, session: Session, token: str, approve: bool) -> Answer | None:
        talk = self._talks.get(session.id)
        if talk is not None and talk.closing is None:
            answer = await talk.conversation.resolve_confirmation(token, approve=approve)
            await talk.feed.flush()
            return answer
        async with self._at(session) as used:
            return await self._runtime.resolve_confirmation(used, token, approve=approve)

    @asynccontextmanager
    async def _at(self, session: Session) -> AsyncIterator[Session]:
        talk = self._talks.get(session.id)
        if talk is not None:
            yield talk.session
            await _within(talk.feed.flush())
            return
        seat = self._seats.get(session.id) or self._sit(session)
        seat.users += 1
        try:
            yield seat.session
        finally:
            seat.users -= 1
            if not seat.users:
                del self._seats[session.id]
            await _within(seat.feed.flush())
            await self._keep(seat.session)

    def _sit(self, session: Session) -> _Seat:
        feed = Feed(Events(session, self._runtime.store, carries=False))
        session.publish = feed.publish
        seat = self._seats[session.id] = _Seat(session, feed)
        return seat

    async def _keep(self, session: Session) -> None:
        if session.id in self._talks:
            return  # Whoever began to carry it meanwhile keeps it.
        try:
            # Another host may carry it and have gone on; what it saved stands.
            await session.save_unless_moved(self._runtime.store)
        except StoreUnavailableError as error:
            _log.error("session %s could not be kept: %s", session.id, error)

    async def _to_its_end(self, work: Coroutine[Any, Any, _R]) -> _R:
        # A task of its own: whoever asked may go away, and what was begun still ends and is recorded.
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return await asyncio.shield(task)


async def _within(flushing: Coroutine[Any, Any, None]) -> None:
    try:
        async with asyncio.timeout(KEEP_SECONDS):
            await flushing
    except TimeoutError:
        _log.warning("events still wait for the store")

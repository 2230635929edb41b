"""Calls that a client makes itself, in a live session or in a saved one.

They need no connection to a model. Concurrent calls of a session that is not live share one session object,
and their events are appended to the event log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from jackfield.call_events import publish_decisions, tool_end, tool_start
from jackfield.contract.tool import ToolCall
from jackfield.orchestrator import CallResult
from jackfield.protocol.codec import event_fields
from jackfield.runtime import Runtime
from jackfield.session.session import Session, Turn
from jackfield.store import StoreUnavailableError

from jackfield_sessions.events import EventLog
from jackfield_sessions.hub import EventHub
from jackfield_sessions.live_session import LiveSession

_log = logging.getLogger(__name__)

FLUSH_SECONDS = 5.0
"""How long an answered call waits for its events to be stored."""

_R = TypeVar("_R")


@dataclass
class _DetachedSession:
    """A session in use that is not live."""

    session: Session
    hub: EventHub
    users: int = 0


class DirectCalls:
    """Runs calls of clients rather than of models."""

    def __init__(self, runtime: Runtime, live_sessions: Mapping[str, LiveSession]) -> None:
        self._runtime = runtime
        self._live_sessions = live_sessions
        self._detached: dict[str, _DetachedSession] = {}
        self._running: set[asyncio.Task[Any]] = set()

    async def run(
        self, session: Session, call: ToolCall, *, again: bool, group: str | None = None
    ) -> CallResult:
        """Run a call and return its result; `again` says that events about it were already published.

        Every call is a separate turn; consecutive calls of the same `group` share one.
        """
        return await self.to_the_end(self._run(session, call, again, group))

    async def resolve_confirmation(self, session: Session, token: str, *, approve: bool) -> CallResult | None:
        """Carry out a user's decision; return the outcome of the call, or None for an unknown token."""
        return await self.to_the_end(self._resolve(session, token, approve))

    async def wait(self) -> None:
        """Wait until no call is running."""
        while self._running:
            await asyncio.wait(self._running)

    async def to_the_end(self, work: Coroutine[Any, Any, _R]) -> _R:
        """Run in a separate task, which completes even if the client disconnects."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _run(self, session: Session, call: ToolCall, again: bool, group: str | None) -> CallResult:
        runtime = self._runtime
        async with self._use(session) as used:
            if not again:
                used.publish(*event_fields(tool_start(runtime.registry, call)))
            turn = used.turn if again else self._turn(used, group)
            (answer,) = await runtime.orchestrator.handle(used, [call], turn)
            publish_decisions(used, answer)
            if not again:
                used.publish(*event_fields(tool_end(answer)))
            return answer

    async def _resolve(self, session: Session, token: str, approve: bool) -> CallResult | None:
        async with self._use(session) as used:
            return await self._runtime.resolve_confirmation(used, token, approve=approve)

    def _turn(self, session: Session, group: str | None) -> Turn:
        """Return the turn that a client's call counts against: a new one, or that of its group."""
        live = self._live_sessions.get(session.id)
        turn = session.turn if live is None else live.client_turn
        if group is None or turn is None or turn.group != group:
            if live is None:
                turn = session.begin_turn()
            else:
                # The model's turn continues at the same time, with its own budget.
                turn = live.client_turn = Turn(session.turn.number)
            turn.group = group
        return turn

    @asynccontextmanager
    async def _use(self, session: Session) -> AsyncIterator[Session]:
        """Yield the session object that all calls of the session share."""
        live = self._live_sessions.get(session.id)
        if live is not None:
            yield live.session
            await _flush(live.hub)
            return
        detached = self._detached.get(session.id)
        if detached is None:
            hub = EventHub(EventLog(session, self._runtime.store, owner=False))
            session.publish = hub.publish
            detached = self._detached[session.id] = _DetachedSession(session, hub)
        detached.users += 1
        try:
            yield detached.session
        finally:
            detached.users -= 1
            if not detached.users:
                del self._detached[session.id]
            await _flush(detached.hub)
            await self._save(detached.session)

    async def _save(self, session: Session) -> None:
        if session.id in self._live_sessions:
            return  # It became live meanwhile; the live session saves it.
        try:
            # If another host has saved it meanwhile, that record is kept.
            await session.save_if_unchanged(self._runtime.store)
        except StoreUnavailableError as error:
            _log.error("session %s could not be saved: %s", session.id, error)


async def _flush(hub: EventHub) -> None:
    try:
        async with asyncio.timeout(FLUSH_SECONDS):
            await hub.flush()
    except TimeoutError:
        _log.warning("events are still waiting for the store")

"""Calls that a client makes itself, in a live session or in a saved one.

They need no connection to a model. All calls of a session that is not live share one session object, and
their events are appended to the event log. The object is kept after a call, so that the next call of the
session need not read and parse it again; one read of the store tells whether another process has changed the
session meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from jackfield import Mode
from jackfield.call_events import publish_decisions, tool_end, tool_start
from jackfield.confirmation import PendingConfirmation
from jackfield.contract.tool import ToolCall
from jackfield.orchestrator import CallResult
from jackfield.protocol.codec import event_fields
from jackfield.registry.registry import RegistryError
from jackfield.runtime import Runtime
from jackfield.session.session import Publish, Session, SessionFormatError, Turn
from jackfield.store import StoreUnavailableError

from jackfield_sessions.events import EventLog, changed_hosts, may_publish_outcome
from jackfield_sessions.hub import EventHub, Listener
from jackfield_sessions.live_session import LiveSession

_log = logging.getLogger(__name__)

FLUSH_SECONDS = 5.0
"""How long an answered call waits for its events to be stored."""

MAX_KEPT = 500
"""How many sessions are kept for their next call."""

KEPT_SECONDS = 30.0
"""How long a session is kept before it is loaded again."""

_R = TypeVar("_R")


@dataclass
class _DetachedSession:
    """A session that is not live: a call is using it, or it is kept for its next call."""

    session: Session
    hub: EventHub
    loaded: float
    saving: asyncio.Lock
    unsaved: bool = False
    """True until the first call of a new session has ended or has to wait."""
    opening: asyncio.Future[None] | None = None
    """The first save of a new session whose first call had to wait."""
    next_save: asyncio.Future[None] | None = None
    """The save that begins after the current one; it covers all calls that have ended by then."""
    users: int = 0


class DirectCalls:
    """Runs calls that clients make, as opposed to models."""

    def __init__(self, runtime: Runtime, live_sessions: Mapping[str, LiveSession]) -> None:
        self._runtime = runtime
        self._live_sessions = live_sessions
        self._detached: OrderedDict[str, _DetachedSession] = OrderedDict()
        self._running: set[asyncio.Task[Any]] = set()

    async def load(self, session_id: str, *, repin: bool = False) -> Session | None:
        """Return a session that is not live; None if the store does not have it. Raises `RegistryError`.

        With `repin`, the session continues with the served registry, because it has no conversation that
        began with other tools.
        """
        runtime, kept = self._runtime, self._detached.get(session_id)
        if (
            kept is not None
            and kept.session.registry_version == runtime.registry.version
            and time.monotonic() - kept.loaded < KEPT_SECONDS
            # A session that calls are using is about to be saved, and they all use this object.
            and ((repin and kept.users) or await kept.session.is_current(runtime.store))
        ):
            return kept.session
        session = await (self._resume_repinned if repin else runtime.resume_session)(session_id, drop_event)
        if kept is not None and not kept.users and self._detached.get(session_id) is kept:
            self._forget(session_id)
        return session

    async def _resume_repinned(self, session_id: str, publish: Publish) -> Session | None:
        await self._runtime.check_signatures()
        try:
            session = await Session.resume(session_id, self._runtime.store, publish)
        except SessionFormatError as error:
            raise RegistryError(str(error)) from None
        if session is not None and session.registry_version != self._runtime.registry.version:
            session.repin(self._runtime.registry.version)
        return session

    async def open(self, tool_id: str, mode: Mode, **fields: Any) -> Session:
        """Open a session for a call that a client makes without one; it has no model and no prompt.

        If the tool may run twice, the session is saved only when the call ends or has to wait. This is safe:
        the call cannot run without the store, because it is claimed first, and the client gets the session's
        token only with the answer, after the session has been saved.
        """
        runtime = self._runtime
        session = runtime.create_session(mode, **fields)
        tool = runtime.registry.catalog(session.toolset).tools.get(tool_id)
        if tool is None or not tool.volatile or not runtime.orchestrator.claims_calls:
            await session.save(runtime.store)
            runtime.announce_session(session)
            return session
        self._keep(session).unsaved = True
        runtime.announce_session(session)
        return session

    async def run(
        self,
        session: Session,
        call: ToolCall,
        *,
        again: bool,
        group: str | None = None,
        listen: Listener | None = None,
    ) -> CallResult:
        """Run a call and return its result; `again` says that events about the call were already published.

        Every call is a separate turn; consecutive calls of the same `group` share one. `listen` gets the
        events of the session while the call runs.
        """
        return await self.to_the_end(self._run(session, call, again, group, listen))

    async def resolve_confirmation(
        self, session: Session, token: str, *, approve: bool, listen: Listener | None = None
    ) -> CallResult | None:
        """Carry out a user's decision; return the outcome of the call, or None for an unknown token."""
        resolve = partial(self._runtime.resolve_confirmation, token=token, approve=approve)
        return await self.to_the_end(self._in_shared(session, resolve, listen))

    async def resolve_pending(
        self, session: Session, pending: PendingConfirmation, *, approve: bool = True
    ) -> CallResult:
        """Carry out a decision without a token, such as one whose host died before the call ran to its end.

        Return the outcome of the call.
        """
        resolve = partial(self._runtime.resolve_pending, pending=pending, approve=approve)
        return await self.to_the_end(self._in_shared(session, resolve))

    async def wait(self) -> None:
        """Wait until no call is running."""
        while self._running:
            await asyncio.wait(self._running)

    async def to_the_end(self, work: Coroutine[Any, Any, _R]) -> _R:
        """Run work in a separate task, which completes even if the client disconnects."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _run(
        self, session: Session, call: ToolCall, again: bool, group: str | None, listen: Listener | None
    ) -> CallResult:
        runtime = self._runtime

        async def run(used: Session) -> CallResult:
            """Run the call and publish its events."""
            if not again:
                used.publish(*event_fields(tool_start(runtime.registry.catalog(used.toolset), call)))
            turn = used.turn if again else self._turn(used, group)
            (answer,) = await runtime.orchestrator.handle(used, [call], turn)
            is_live = used.id in self._live_sessions
            if is_live:
                # The decisions are not stored, and only a live session has clients.
                publish_decisions(used, answer)
            # If several hosts ran a call one after the other, only one of them publishes the outcome.
            moved = call.call_id is not None and changed_hosts(answer)
            if moved:
                is_publisher = await may_publish_outcome(runtime.store, used.id, call.call_id or "")
            else:
                is_publisher = not again
            if is_publisher:
                used.publish(*event_fields(tool_end(answer, encoded=not is_live)))
            return answer

        return await self._in_shared(session, run, listen)

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

    async def _in_shared(
        self, session: Session, work: Callable[[Session], Awaitable[_R]], listen: Listener | None = None
    ) -> _R:
        """Do some work with the session object that all calls of a session share, then store its effects."""
        live = self._live_sessions.get(session.id)
        if live is not None:
            with live.hub.listening(listen):
                done = await work(live.session)
            await _flush(live.hub)
            return done
        detached = self._detached.get(session.id) or self._keep(session)
        self._detached.move_to_end(session.id)
        detached.users += 1
        if detached.unsaved:
            asyncio.get_running_loop().call_soon(self._begin_first_save, detached)
        try:
            with detached.hub.listening(listen):
                return await work(detached.session)
        finally:
            try:
                is_new, detached.unsaved = detached.unsaved, False
                # The hub begins to store the last events, and the session is saved at the same time, so that
                # one transaction and one flush to the disk suffice.
                await asyncio.sleep(0)
                await self._save(detached, is_new=is_new)
                await _flush(detached.hub)
            finally:
                # Not earlier: a call that begins during the save uses this object too.
                detached.users -= 1

    def _begin_first_save(self, detached: _DetachedSession) -> None:
        """Save a new session whose first call has to wait."""
        if detached.unsaved:
            detached.unsaved = False
            detached.opening = asyncio.ensure_future(detached.session.save(self._runtime.store))

    def _keep(self, session: Session) -> _DetachedSession:
        """Keep a session for this call and the next ones; beyond `MAX_KEPT`, drop the least recently used."""
        hub = EventHub(EventLog(session, self._runtime.store, owned=False))
        session.publish = hub.publish
        kept = _DetachedSession(session, hub, time.monotonic(), asyncio.Lock())
        self._detached[session.id] = kept
        if len(self._detached) > MAX_KEPT:
            unused = next((key for key, each in self._detached.items() if not each.users), session.id)
            if unused != session.id:
                self._forget(unused)
        return kept

    def _forget(self, session_id: str) -> None:
        """Drop a session that is not in use."""
        # Session and hub refer to each other; without this, their memory waits for the garbage collector.
        self._detached.pop(session_id).session.publish = drop_event

    async def _save(self, detached: _DetachedSession, *, is_new: bool) -> None:
        session, store = detached.session, self._runtime.store
        if session.id in self._live_sessions:
            return  # It became live meanwhile; the live session saves it.
        # If the first save fails, so does the call: its client must not get the token of a lost session.
        if is_new:
            await session.save(store)
            return
        if detached.opening is not None:
            await detached.opening
            detached.opening = None
        if detached.next_save is not None:
            await detached.next_save
            return
        saved = detached.next_save = asyncio.get_running_loop().create_future()
        try:
            # One at a time: otherwise, a save in progress would look like a change by another host.
            async with detached.saving:
                detached.next_save = None
                # If another host has saved it meanwhile, that record is kept.
                await session.save_if_unchanged(store)
        except StoreUnavailableError as error:
            _log.error("session %s could not be saved: %s", session.id, error)
        finally:
            if detached.next_save is saved:
                detached.next_save = None
            saved.set_result(None)


async def _flush(hub: EventHub) -> None:
    if not await hub.flush(FLUSH_SECONDS):
        _log.warning("events are still waiting for the store")


def drop_event(event: str, fields: Any, *, once: bool = False) -> None:
    """Drop an event of a saved session that no call uses."""

"""The capability `agents`: every task runs in its own session, under the same policies as any other."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jackfield import SessionView, ToolResponse
from jackfield.ledger import DoubtfulCall
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.settings import SettingsError
from jackfield.store import StoreUnavailableError
from jackfield.transport.protocol import Transport, TransportError
from jackfield.user_slots import UserSlot, UserSlots
from jackfield_capability_types.agents import Report, Show, Tell

from jackfield_agents import tool_errors
from jackfield_agents.agent import AgentRun, StepLimitError, brief, progress_details
from jackfield_agents.agent_starts import CERTAIN_SECONDS, AgentStarts, taken_over, task_terms
from jackfield_agents.policies import TASKS, usable
from jackfield_agents.settings import AgentsSettings

if TYPE_CHECKING:
    from jackfield.runtime import Runtime

_log = logging.getLogger("jackfield.agents")

LEAVE_SECONDS = 5.0
"""How long a stopping host waits for its agents to report."""


@dataclass(slots=True, eq=False)
class _ActiveAgent:
    """A running agent."""

    who: str
    tools: Mapping[str, RegisteredTool]
    task: asyncio.Task[Any] | None
    """The call that the agent works for, until its answer is recorded."""

    clock: asyncio.Timeout | None = None
    stopped: str = ""

    def stop(self, why: str) -> None:
        """Stop the agent now, as if its time were up."""
        self.stopped = why
        if self.clock is not None and not self.clock.expired():
            self.clock.reschedule(asyncio.get_running_loop().time())


class AgentPool:
    """Starts agents, limits their number, and tracks the tools of each."""

    def __init__(self, settings: AgentsSettings) -> None:
        self._settings = settings
        self._runtime: Runtime | None = None
        self._slots: UserSlots | None = None
        self._starts: AgentStarts | None = None
        self._usable: tuple[str, dict[str, RegisteredTool]] = "", {}
        self._transport: Transport | None = None
        self._shifts: dict[str, _ActiveAgent] = {}

    def started(self, runtime: Runtime) -> None:
        """Receive the runtime at startup, and determine the tools that agents may use."""
        self._usable = runtime.registry.version, usable(runtime.registry, self._settings.tools)
        if self._runtime is None:
            ttl = self._settings.seconds + LEAVE_SECONDS
            self._slots = UserSlots(runtime.store, runtime.hosts, "agent", ttl)
            self._starts = AgentStarts(runtime.store, runtime.hosts.id)
        self._runtime = runtime

    @property
    def _tools(self) -> dict[str, RegisteredTool]:
        """The tools that agents may use: those of the current registry, which development may reload."""
        if self._runtime is not None and self._usable[0] != self._runtime.registry.version:
            self.started(self._runtime)
        return self._usable[1]

    def for_session(self, session: SessionView) -> SessionAgents:
        """Return the view that handlers of this session use."""
        return SessionAgents(self, session)

    def lease(self, session_id: str) -> Mapping[str, RegisteredTool] | None:
        """Return the tools of the agent that runs in a session; None if no agent does."""
        shift = self._shifts.get(session_id)
        return shift.tools if shift else None

    def writers(self, tools: Sequence[str]) -> list[str]:
        """Return the names of an agent's tools that change something."""
        return [name for name, tool in self._tools.items() if not tool.reads and (not tools or name in tools)]

    async def close(self) -> None:
        """Stop all agents, wait for their answers, and close the transport."""
        working = {shift.task for shift in self._shifts.values() if shift.task}
        for shift in self._shifts.values():
            shift.stop("The host is stopping.")
        if working:
            await asyncio.wait(working, timeout=LEAVE_SECONDS)
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()

    async def work(
        self,
        parent: SessionView,
        instructions: str,
        tools: Sequence[str],
        tell: Tell,
        *,
        show: Show | None = None,
        caller: asyncio.Task[Any] | None = None,
    ) -> Report:
        """Run a task with a new agent for the call in the task `caller`, and return its report."""
        owner = await self._owner(parent)
        lent, transport = self._lent(tools, owner), self._reached()
        who = parent.user or parent.id
        self._admit(who)
        session_id = os.urandom(16).hex()
        shift = self._shifts[session_id] = _ActiveAgent(who, lent, caller or asyncio.current_task())
        try:
            if before := taken_over(parent.id, instructions, tools):
                await tell("its host stopped, and another host continues from the beginning")
                await self._forget_slot(UserSlot(who, before.agent, before.host))
            async with self._counted(who, session_id):
                await self._record_start(parent, session_id, instructions, tools)
                session = await self._session(parent, owner, session_id, lent)
                work = AgentRun(self._here.orchestrator, session, lent, self._settings, tell, show=show)
                return await self._carried_out(shift, session, transport, instructions, work)
        finally:
            del self._shifts[session_id]

    async def settle(self, call: DoubtfulCall) -> ToolResponse | None:
        """Return the outcome of a task that no host continues; None if its agent may have written."""
        if call.tool_id not in TASKS or self._here.store.now() - call.claimed_at > CERTAIN_SECONDS:
            return None
        if self._starts is None or await self._starts.may_write(call.session_id):
            return None
        return tool_errors.host_died()

    async def may_run_again(self, tool_id: str, session_id: str, args: Mapping[str, Any]) -> bool:
        """Return whether this host may continue a task of a dead host: its agent only reads on both hosts."""
        if tool_id not in TASKS or self._starts is None or self.writers(task_terms(args)[1]):
            return False
        return await self._starts.take_over(session_id, args)

    @asynccontextmanager
    async def _counted(self, who: str, session_id: str) -> AsyncIterator[None]:
        """Count an agent against the limit of its user, on all hosts."""
        slots = self._slots
        if slots is None:
            yield
            return
        try:
            try:
                await slots.take(who, session_id)
                running = len(await slots.held(who))
            except StoreUnavailableError as error:
                _log.error("the agents of a user cannot be counted: %s", error)
                raise tool_errors.cannot_be_kept() from None
            if running > self._settings.per_user:
                raise tool_errors.too_many(self._settings.per_user, own=True)
            yield
        finally:
            # The report is still returned; the entry expires.
            with suppress(StoreUnavailableError):
                await slots.release(who, session_id)

    async def _forget_slot(self, slot: UserSlot) -> None:
        """Stop counting the agent of a dead host, whose task this host continues."""
        if self._slots is not None:
            # If it stays, it counts until its host is known to be gone.
            with suppress(StoreUnavailableError):
                await self._slots.remove(slot)

    async def _record_start(
        self, parent: SessionView, session_id: str, instructions: str, tools: Sequence[str]
    ) -> None:
        """Record the start of an agent: if its host dies, its task is continued or in doubt."""
        if self._starts is None:
            return
        writes = bool(self.writers(tools))
        try:
            await self._starts.record(parent.id, session_id, instructions, tools, writes=writes)
        except StoreUnavailableError as error:
            _log.error("the start of an agent could not be recorded: %s", error)
            raise tool_errors.cannot_be_kept() from None

    async def _carried_out(
        self, shift: _ActiveAgent, session: Session, transport: Transport, instructions: str, work: AgentRun
    ) -> Report:
        settings, began, text, cut_short = self._settings, time.monotonic(), "", ""
        try:
            async with asyncio.timeout(0 if shift.stopped else settings.seconds) as shift.clock:
                text = await work.run(transport, self._brief(shift.tools), instructions)
        except TimeoutError:
            cut_short = shift.stopped or f"The time limit of {settings.seconds:g} seconds was reached."
        except StepLimitError:
            cut_short = f"Its {settings.steps} steps were used up."
        except TransportError as error:
            _log.warning("the agent of session %s could not finish: %s", session.id, error)
            raise tool_errors.failure(error, wrote=work.wrote, so_far=progress_details(work)) from None
        finally:
            shift.clock = None
            await self._end(session)
        text = text or work.so_far()
        if not text:
            raise tool_errors.nothing_found(cut_short, wrote=work.wrote, so_far=progress_details(work))
        seconds = round(time.monotonic() - began, 1)
        sources = work.sources.for_report(text)
        return Report(text, work.steps, tuple(work.used), sources, seconds, session.id, cut_short)

    @property
    def _here(self) -> Runtime:
        if self._runtime is None:
            raise tool_errors.no_model("the host has not started yet")
        return self._runtime

    def _brief(self, tools: Mapping[str, RegisteredTool]) -> str:
        return brief(tools, steps=self._settings.steps, characters=self._settings.characters)

    async def _owner(self, parent: SessionView) -> Session | None:
        """Return the session that starts an agent; its roles and its toolset are also the agent's."""
        try:
            return await Session.resume(parent.id, self._here.store)
        except StoreUnavailableError as error:
            _log.error("the session of an agent's task cannot be read: %s", error)
            raise tool_errors.cannot_be_kept() from None

    def _lent(self, tools: Sequence[str], owner: Session | None) -> dict[str, RegisteredTool]:
        usable = self._tools
        if owner is not None and owner.toolset is not None:
            # The implementations of the toolset; a tool outside it does not exist for the agent either.
            offered = self._here.registry.catalog(owner.toolset).tools
            usable = {name: offered[name] for name in usable if name in offered}
        for name in tools:
            if name not in usable:
                raise tool_errors.not_lent(name, list(usable))
        return {name: tool for name, tool in usable.items() if not tools or name in tools}

    def _reached(self) -> Transport:
        """Return the transport that all agents share."""
        if self._transport is None:
            try:
                self._transport = self._here.transport()
            except SettingsError as error:
                _log.error("no agent can work: %s", error)
                raise tool_errors.no_model("no provider is set up for this deployment") from None
        if "text" not in self._transport.modes:
            raise tool_errors.no_model("the provider of this deployment does not support text")
        return self._transport

    def _admit(self, who: str) -> None:
        own = sum(shift.who == who for shift in self._shifts.values())
        if own >= self._settings.per_user:
            raise tool_errors.too_many(self._settings.per_user, own=True)
        if len(self._shifts) >= self._settings.at_once:
            raise tool_errors.too_many(self._settings.at_once, own=False)

    async def _session(
        self,
        parent: SessionView,
        owner: Session | None,
        session_id: str,
        tools: Mapping[str, RegisteredTool],
    ) -> Session:
        """Open a session for the parent's user with the parent's roles, but without the user's words.

        Policies treat the text of a turn as the user's words, and an agent's instructions come from a model.
        """
        runtime = self._here
        try:
            return await runtime.open_session(
                "text",
                session_id=session_id,
                user=parent.user,
                roles=owner.roles if owner else frozenset(),
                organisation=owner.organisation if owner else None,
                toolset=owner.toolset if owner else None,
                prompt_tokens=len(self._brief(tools)) // 4,
            )
        except StoreUnavailableError as error:
            _log.error("no session could be saved for an agent: %s", error)
            raise tool_errors.cannot_be_kept() from None

    async def _end(self, session: Session) -> None:
        try:
            await self._here.end_session(session)
        except StoreUnavailableError as error:
            # The report is still returned; only the end of the session is not saved.
            _log.error("the end of session %s could not be saved: %s", session.id, error)


class SessionAgents:
    """The agents of one session."""

    def __init__(self, agents: AgentPool, session: SessionView) -> None:
        self._agents = agents
        self._session = session
        # A handler gets this view in the task of its call, but may let the agent work in another one.
        self._caller = asyncio.current_task()

    async def work(
        self, instructions: str, *, tools: Sequence[str], tell: Tell, show: Show | None = None
    ) -> Report:
        """Run a task for the session's user."""
        return await self._agents.work(
            self._session, instructions, tools, tell, show=show, caller=self._caller
        )

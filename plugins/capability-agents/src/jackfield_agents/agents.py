"""The capability `agents`: each piece of work is a session of its own, governed like any other."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jackfield import SessionView
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.settings import SettingsError
from jackfield.store import StoreUnavailableError
from jackfield.transport.protocol import Transport, TransportError
from jackfield_capability_types.agents import Report, Tell

from jackfield_agents import tool_errors
from jackfield_agents.agent import AgentRun, StepLimitError, brief, progress_details
from jackfield_agents.policies import usable
from jackfield_agents.settings import AgentsSettings

if TYPE_CHECKING:
    from jackfield.runtime import Runtime

_log = logging.getLogger("jackfield.agents")

LEAVE_SECONDS = 5.0
"""How long a host that stops waits until its agents have said how far they came."""


@dataclass(slots=True, eq=False)
class _ActiveAgent:
    """An agent at work."""

    who: str
    tools: Mapping[str, RegisteredTool]
    task: asyncio.Task[Any] | None
    """The call it works for, up to its recorded answer."""

    clock: asyncio.Timeout | None = None
    stopped: str = ""

    def stop(self, why: str) -> None:
        """End the work now, as if its time were over."""
        self.stopped = why
        if self.clock is not None and not self.clock.expired():
            self.clock.reschedule(asyncio.get_running_loop().time())


class AgentPool:
    """Starts agents, counts them, and knows what each of them was lent."""

    def __init__(self, settings: AgentsSettings) -> None:
        self._settings = settings
        self._runtime: Runtime | None = None
        self._tools: dict[str, RegisteredTool] = {}
        self._transport: Transport | None = None
        self._shifts: dict[str, _ActiveAgent] = {}

    def started(self, runtime: Runtime) -> None:
        """Everything stands: what may be used unattended is known from here on."""
        self._tools = usable(runtime.registry, self._settings.tools)
        self._runtime = runtime

    def for_session(self, session: SessionView) -> SessionAgents:
        """Agents in the name of this session's user."""
        return SessionAgents(self, session)

    def lease(self, session_id: str) -> Mapping[str, RegisteredTool] | None:
        """The tools of the agent whose session this is; nothing when it is no agent's."""
        shift = self._shifts.get(session_id)
        return shift.tools if shift else None

    def writers(self, tools: Sequence[str]) -> list[str]:
        """Those of an agent's tools that change something."""
        return [name for name, tool in self._tools.items() if not tool.reads and (not tools or name in tools)]

    async def close(self) -> None:
        """End all work, let its answers be recorded, and hang up."""
        working = {shift.task for shift in self._shifts.values() if shift.task}
        for shift in self._shifts.values():
            shift.stop("The host is stopping.")
        if working:
            await asyncio.wait(working, timeout=LEAVE_SECONDS)
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()

    async def work(self, parent: SessionView, instructions: str, tools: Sequence[str], tell: Tell) -> Report:
        """Have something done by an agent of its own."""
        lent, transport = self._lent(tools), self._reached()
        who = parent.user or parent.id
        self._admit(who)
        session_id = os.urandom(16).hex()
        shift = self._shifts[session_id] = _ActiveAgent(who, lent, asyncio.current_task())
        try:
            session = await self._session(parent, session_id, lent)
            return await self._carried_out(shift, session, transport, instructions, tell)
        finally:
            del self._shifts[session_id]

    async def _carried_out(
        self, shift: _ActiveAgent, session: Session, transport: Transport, instructions: str, tell: Tell
    ) -> Report:
        settings, began, text, cut_short = self._settings, time.monotonic(), "", ""
        work = AgentRun(self._here.orchestrator, session, shift.tools, settings, tell)
        try:
            async with asyncio.timeout(0 if shift.stopped else settings.seconds) as shift.clock:
                text = await work.run(transport, self._brief(shift.tools), instructions)
        except TimeoutError:
            cut_short = shift.stopped or f"Its time of {settings.seconds:g} seconds was over."
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

    def _lent(self, tools: Sequence[str]) -> dict[str, RegisteredTool]:
        for name in tools:
            if name not in self._tools:
                raise tool_errors.not_lent(name, list(self._tools))
        return {name: tool for name, tool in self._tools.items() if not tools or name in tools}

    def _reached(self) -> Transport:
        """The way to the model, which all agents share."""
        if self._transport is None:
            try:
                self._transport = self._here.transport()
            except SettingsError as error:
                _log.error("no agent can work: %s", error)
                raise tool_errors.no_model("no provider is set up for this deployment") from None
        if "text" not in self._transport.modes:
            raise tool_errors.no_model("the provider of this deployment carries no text")
        return self._transport

    def _admit(self, who: str) -> None:
        own = sum(shift.who == who for shift in self._shifts.values())
        if own >= self._settings.per_user:
            raise tool_errors.too_many(self._settings.per_user, own=True)
        if len(self._shifts) >= self._settings.at_once:
            raise tool_errors.too_many(self._settings.at_once, own=False)

    async def _session(
        self, parent: SessionView, session_id: str, tools: Mapping[str, RegisteredTool]
    ) -> Session:
        """A session in the name of the parent's user, with the parent's roles and none of its words.

        Policies take what is said in a turn for the user's words, and an agent's instructions are a model's.
        """
        runtime = self._here
        try:
            kept = await Session.resume(parent.id, runtime.store)
            return await runtime.open_session(
                "text",
                session_id=session_id,
                user=parent.user,
                roles=kept.roles if kept else frozenset(),
                prompt_tokens=len(self._brief(tools)) // 4,
            )
        except StoreUnavailableError as error:
            _log.error("no session could be kept for an agent: %s", error)
            raise tool_errors.cannot_be_kept() from None

    async def _end(self, session: Session) -> None:
        try:
            await self._here.end_session(session)
        except StoreUnavailableError as error:
            # What was found is worth more than the note that it is over.
            _log.error("the end of session %s could not be kept: %s", session.id, error)


class SessionAgents:
    """Agents as one session may have them work."""

    def __init__(self, agents: AgentPool, session: SessionView) -> None:
        self._agents = agents
        self._session = session

    async def work(self, instructions: str, *, tools: Sequence[str], tell: Tell) -> Report:
        """Have something done in the name of the session's user."""
        return await self._agents.work(self._session, instructions, tools, tell)

"""Where a standard test has work done: agents over a model of the kind it needs, and users who hand over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from jackfield.contract.context import SessionView
from jackfield_capability_types.agents import AgentsView, Report

from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.trials import patiently

Model = Literal["looking", "endless", "silent", "failing", "refusing"]
"""What the model behind the agents does."""

PARENT = "the-session-of-the-user"

on_a_loop = patiently("the agents", 120)


class Agents(Protocol):
    """What a plugin provides under the name `agents`, and a way to end it."""

    def for_session(self, session: SessionView) -> AgentsView:
        """What the handler of a call in this session is given."""

    async def close(self) -> None:
        """End all work."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Somebody who hands work over, and what he is told meanwhile."""

    view: AgentsView
    told: list[str] = field(default_factory=list)

    async def hand_over(
        self, instructions: str = "Find out about rooms.", *, tools: Sequence[str] = ()
    ) -> Report:
        """Have something done."""

        async def tell(what: str) -> None:
            self.told.append(what)

        return await self.view.work(instructions, tools=tools, tell=tell)


@dataclass(frozen=True, slots=True)
class Office:
    """A way to agents."""

    make: Callable[[Path, Model, float], Awaitable[Agents]]
    place: Path
    tools: Sequence[str]
    """What agents may use; the first of them finds things."""

    @asynccontextmanager
    async def desks(self, model: Model, *, seconds: float = 60) -> AsyncIterator[Callable[[str], Desk]]:
        """Users, by their names, of agents over one kind of model."""
        made = await self.make(self.place, model, seconds)

        def desk(user: str) -> Desk:
            context = ToolTestContext(user=user, session_id=f"{PARENT}-{user}")
            return Desk(made.for_session(context.session))

        try:
            yield desk
        finally:
            await made.close()

"""The harness of the agents tests: agents whose model behaves as a test requires, and their users."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from jackfield.contract.context import SessionView
from jackfield_capability_types.agents import AgentsView, Report

from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.suite import async_test_for

ModelBehaviour = Literal["looking", "endless", "silent", "failing", "refusing"]
"""The behaviour of the model behind the agents."""

USER_SESSION = "the-session-of-the-user"

async_test = async_test_for("the agents", 120)


class AgentsCapability(Protocol):
    """The capability `agents`, with a way to close it."""

    def for_session(self, session: SessionView) -> AgentsView:
        """Return the view for the handlers of a session."""

    async def close(self) -> None:
        """Stop all work."""


@dataclass(frozen=True, slots=True)
class AgentsUser:
    """A user who delegates work, and the progress messages about it."""

    view: AgentsView
    progress: list[str] = field(default_factory=list)

    async def delegate(
        self, instructions: str = "Find out about rooms.", *, tools: Sequence[str] = ()
    ) -> Report:
        """Delegate a task and return its report."""

        async def tell(message: str) -> None:
            self.progress.append(message)

        return await self.view.work(instructions, tools=tools, tell=tell)


@dataclass(frozen=True, slots=True)
class AgentsHarness:
    """Creates agents for one test."""

    create: Callable[[Path, ModelBehaviour, float], Awaitable[AgentsCapability]]
    folder: Path
    tools: Sequence[str]
    """The tools of the agents; the first of them finds things."""

    @asynccontextmanager
    async def users(
        self, model: ModelBehaviour, *, seconds: float = 60
    ) -> AsyncIterator[Callable[[str], AgentsUser]]:
        """Create agents over a model, and yield a function that makes users by name."""
        agents = await self.create(self.folder, model, seconds)

        def user(name: str) -> AgentsUser:
            context = ToolTestContext(user=name, session_id=f"{USER_SESSION}-{name}")
            return AgentsUser(agents.for_session(context.session))

        try:
            yield user
        finally:
            await agents.close()

"""`ctx.agents`: background agents that work on a task and return a report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Tell = Callable[[str], Awaitable[None]]
"""Receives an agent's next step, in a few words for the user."""


Show = Callable[[str], None]
"""Receives the next piece of an agent's text."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a task."""

    text: str
    steps: int
    """The number of messages that the agent's model wrote."""

    tools: tuple[str, ...]
    """The tools that were used, each once, in order of first use."""

    sources: tuple[Mapping[str, Any], ...]
    """The sources of the text: `title`, and `id` or `url` or both."""

    seconds: float
    session: str
    """The id of the agent's session, which appears in the audit log."""

    cut_short: str = ""
    """Why the task ended early, as a sentence; empty if it was completed."""


class AgentsView(Protocol):
    """The agents of one session."""

    async def work(
        self, instructions: str, *, tools: Sequence[str], tell: Tell, show: Show | None = None
    ) -> Report:
        """Run a task for the session's user; `tools`, if given, limits the agent's tools.

        `show` receives the agent's text, both remarks and the report, as it is written. Raises `RATE_LIMIT`
        if too many agents are running, `TRANSIENT` or `PERMANENT` if the model fails.
        """

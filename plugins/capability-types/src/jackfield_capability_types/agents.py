"""`ctx.agents`: a second agent that works alone on a piece of work, and reports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Tell = Callable[[str], Awaitable[None]]
"""Is told what an agent does next, in a few words for the user."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a piece of work."""

    text: str
    steps: int
    """How many messages the agent's model wrote."""

    tools: tuple[str, ...]
    """What it used, each once, in the order of first use."""

    sources: tuple[Mapping[str, Any], ...]
    """What its tools gave as evidence for the text: `title`, and `id` or `url` or both."""

    seconds: float
    session: str
    """The agent's own session, under which its calls stand in the audit record."""

    cut_short: str = ""
    """Why the work ended before its time, as a sentence; empty when it was done."""


class AgentsView(Protocol):
    """Agents as one session may have them work."""

    async def work(self, instructions: str, *, tools: Sequence[str], tell: Tell) -> Report:
        """Have the work done in the name of the session's user; `tools`, if any, are all it may use.

        `RATE_LIMIT` when too many work already, `TRANSIENT` or `PERMANENT` when the model fails.
        """

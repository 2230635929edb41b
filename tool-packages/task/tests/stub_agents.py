"""Agents without a model: they record their requests and return a given report."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from jackfield import SessionView, ToolError
from jackfield_capability_types.agents import Report, Show, Tell

SOURCE = {"id": "doc:rooms", "title": "Rooms", "type": "doc", "tool": "kb_search"}


class StubAgents:
    """Returns one report, or one failure, for every request."""

    def __init__(self, refusal: ToolError | None = None, **report: object) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self._refusal = refusal
        given = {"text": "Found.", "steps": 2, "tools": ("kb_search",), "sources": (SOURCE,), "seconds": 1.5}
        self._report = Report(**{**given, "session": "s1", **report})  # type: ignore[arg-type]

    def for_session(self, session: SessionView) -> StubAgents:
        return self

    async def work(
        self, instructions: str, *, tools: Sequence[str], tell: Tell, show: Show | None = None
    ) -> Report:
        self.asked.append((instructions, tuple(tools)))
        if self._refusal is not None:
            raise self._refusal
        await tell("step 1, kb_search")
        if show is not None:
            show("It was ")
            await asyncio.sleep(0)
            show("found.")
        return self._report

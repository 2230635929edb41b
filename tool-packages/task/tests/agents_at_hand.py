"""Agents without a model: they remember what they were asked, and report what they were told to."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield import SessionView, ToolError
from jackfield_capability_types.agents import Report, Tell

SOURCE = {"id": "doc:rooms", "title": "Rooms", "type": "doc", "tool": "kb_search"}


class AgentsAtHand:
    """One report for everything, or one refusal."""

    def __init__(self, refusal: ToolError | None = None, **report: object) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self._refusal = refusal
        given = {"text": "Found.", "steps": 2, "tools": ("kb_search",), "sources": (SOURCE,), "seconds": 1.5}
        self._report = Report(**{**given, "session": "s1", **report})  # type: ignore[arg-type]

    def for_session(self, session: SessionView) -> AgentsAtHand:
        return self

    async def work(self, instructions: str, *, tools: Sequence[str], tell: Tell) -> Report:
        self.asked.append((instructions, tuple(tools)))
        if self._refusal is not None:
            raise self._refusal
        await tell("step 1, kb_search")
        return self._report

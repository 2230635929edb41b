"""One piece of work: a model that calls tools until it has written its report."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jackfield.contract.call import ToolCall
from jackfield.orchestrator import Orchestrator
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.transport.events import Closed, Event, TextDelta, ToolCalls, Trouble, TurnComplete
from jackfield.transport.protocol import Connection, Opening, ToolResult, Transport, TransportError
from jackfield.transport.troubles import TROUBLES
from jackfield.truncation import cut
from jackfield_capability_types.agents import Tell

from jackfield_agents.briefing import GO_ON, LAST_STEP, NOTHING_WRITTEN
from jackfield_agents.options import Options
from jackfield_agents.sources import Sources

PAUSES = (1.0, 3.0, 8.0)
"""Seconds before an answer is asked for again that the provider failed to give."""


class StepsUsedError(Exception):
    """The model has written as many messages as it may, and no report among them."""


class Work:
    """Remembers how far it came, so that whoever ends it early can tell."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        session: Session,
        tools: Mapping[str, RegisteredTool],
        options: Options,
        tell: Tell,
    ) -> None:
        self.steps = 0
        self.used: dict[str, None] = {}
        self.sources = Sources()
        self.remarks: list[str] = []
        """What the model wrote on the way."""
        self._orchestrator = orchestrator
        self._session = session
        self._tools = tools
        self._options = options
        self._tell = tell
        self._writing = ""
        self._retries = 0

    @property
    def wrote(self) -> bool:
        """Whether a tool was called that changes something."""
        return any(name in self._tools and not self._tools[name].reads for name in self.used)

    def so_far(self) -> str:
        """What is known although no report was written: remarks on the way, else what was looked at."""
        written = "\n\n".join([*self.remarks, self._writing.strip()]).strip()
        if written:
            return shortened(written, self._options.characters)
        titles = [str(each["title"]) for each in self.sources.for_report("")]
        looked = shortened("; ".join(titles), self._options.characters)
        return f"Nothing was written yet. What had been found: {looked}" if titles else ""

    async def run(self, transport: Transport, instructions: str, task: str) -> str:
        """Work to the report; `TransportError` or `StepsUsedError` when there is none."""
        connection = await transport.connect(self._opening(transport, instructions))
        try:
            await connection.send_text(task)
            async for event in connection.events():
                if report := await self._take(connection, event):
                    return shortened(report, self._options.characters)
            raise TransportError("network", "the stream of events ended")
        finally:
            await connection.close()

    def _opening(self, transport: Transport, instructions: str) -> Opening:
        adapter = transport.adapter("text")
        declared = {
            tool.id: tool.frozen.provider_schemas[adapter]
            for tool in self._tools.values()
            if adapter in tool.frozen.provider_schemas
        }
        guides = {name: self._tools[name].frozen.documentation for name in declared}
        return Opening("text", instructions, declared, guides=guides)

    async def _take(self, connection: Connection, event: Event) -> str:
        """Do what an event calls for; the report, once it is written."""
        if isinstance(event, TextDelta):
            # A model that writes without end is cut here already, and not only in the report.
            if len(self._writing) <= self._options.characters:
                self._writing += event.text
        elif isinstance(event, ToolCalls):
            await self._call(connection, event.calls)
        elif isinstance(event, TurnComplete):
            return await self._end_of_turn(connection)
        elif isinstance(event, Trouble):
            await self._ask_again(connection, event)
        elif isinstance(event, Closed):
            raise TransportError(event.code or "network", event.detail)
        return ""

    async def _call(self, connection: Connection, calls: Sequence[ToolCall]) -> None:
        self._remember()
        names = list(dict.fromkeys(call.tool_id for call in calls))
        self._step()
        await self._tell(f"step {self.steps}, {', '.join(names)}"[:200])
        self.used |= dict.fromkeys(name for name in names if name in self._tools)
        answers = await self._orchestrator.handle(self._session, calls)
        for answer in answers:
            self.sources.take(answer.tool_id, answer.response.data)
        if self.steps == self._options.steps - 1:
            await connection.send_context(LAST_STEP)
        results = [ToolResult(each.call_id or "", each.tool_id, cut(each.wire)) for each in answers]
        await connection.send_results(results)

    async def _end_of_turn(self, connection: Connection) -> str:
        report = self._writing.strip()
        self._step(report=bool(report))
        if not report:
            await connection.send_context(NOTHING_WRITTEN, respond=True)
        return report

    async def _ask_again(self, connection: Connection, trouble: Trouble) -> None:
        """Ask once more for a message that did not come, where that can help."""
        if TROUBLES[trouble.code].remedy not in ("reconnect", "wait") or self._retries == len(PAUSES):
            raise TransportError(trouble.code, trouble.detail)
        self._remember()
        await asyncio.sleep(PAUSES[self._retries])
        self._retries += 1
        await connection.send_context(GO_ON, respond=True)

    def _step(self, *, report: bool = False) -> None:
        self.steps += 1
        if self.steps >= self._options.steps and not report:
            raise StepsUsedError

    def _remember(self) -> None:
        if remark := self._writing.strip():
            self.remarks.append(remark)
        self._writing = ""


def shortened(text: str, limit: int) -> str:
    """A text that fits, cut behind a sentence where there is one; the cut shows."""
    # What a model wrote may hold halves of surrogate pairs, which no answer can carry.
    text = text.encode("utf-8", "replace").decode()
    if len(text) <= limit:
        return text
    mark = " [...]"
    part = text[: limit - len(mark)]
    ends = [match.end() for match in re.finditer(r"[.!?](?=\s)", part)]
    return (part[: ends[-1]] if ends and ends[-1] > limit // 2 else part) + mark


def told(work: Work) -> dict[str, Any]:
    """How far a piece of work came, for the details of a failure."""
    details: dict[str, Any] = {"steps": work.steps, "tools": list(work.used)}
    if found := work.so_far():
        details["soFar"] = found
    return details

"""Sessions with the agent and tools that do not run: its texts, calls and questions."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from jackfield import Mode
from jackfield.contract.tool import ToolCall
from jackfield.transport.events import Event, FormRequest, ProviderError, TextDelta, ToolCalls, TurnComplete
from jackfield.transport.protocol import ConnectionConfig, ToolResult
from jackfield_local import unchanged
from jackfield_local.agent.agent import LocalAgent
from jackfield_local.connection import TextConnection
from jackfield_local.settings import LocalSettings

from bench.agent.dataset import agent_test_module

PATIENCE = 180.0
"""Timeout of a turn in seconds."""

NO_ANSWER = f"[no answer within {PATIENCE:.0f} seconds]"
"""Represents a missing answer: one row fails, and the others are still scored."""


class Moment:
    """The agent's clock, stopped at the time of the requests."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now


def decider(name: str, clock: Moment, model_path: str = "") -> LocalAgent:
    """Return the agent under test: `router` or `model`."""
    if name == "router":
        return LocalAgent(LocalSettings(time_zone="Europe/Berlin"), clock)
    return LocalAgent.with_model(
        LocalSettings(tool_selection="model", model_path=model_path, time_zone="Europe/Berlin"), clock
    )


class Call(NamedTuple):
    """A call by the agent."""

    tool: str
    args: dict[str, Any]


class Question(NamedTuple):
    """A question by the agent: for a parameter, or, without one, whether the tool is right."""

    tool: str
    parameter: str | None


@dataclass
class Turn:
    """The agent's reaction to one message."""

    said: str = ""
    calls: list[Call] = field(default_factory=list)
    form: FormRequest | None = None
    question: Question | None = None
    seconds: float = 0.0

    @property
    def tool(self) -> str | None:
        """The tool that the agent chose for the message."""
        if self.calls:
            return self.calls[0].tool
        asked = self.form.tool_id if self.form else None
        return asked or (self.question.tool if self.question else None)

    def __str__(self) -> str:
        parts = [f"{each.tool}({json.dumps(each.args, ensure_ascii=False)})" for each in self.calls]
        if self.form is not None:
            parts.append(f"form of {self.form.tool_id} {json.dumps(self.form.values, ensure_ascii=False)}")
        if self.question is not None:
            parts.append(f"question for {self.question.tool}.{self.question.parameter}")
        return "; ".join([*parts, repr(self.said[:300])])


def open_question(connection: TextConnection) -> Question | None:
    """Return the open question of the agent; only its dialogue knows the tool."""
    dialogue: Any = connection._dialogue
    asked = dialogue.state.question
    if asked is None or asked.expects.name not in ("VALUE", "CONSENT"):
        return None  # The choice of the tool is open, or a form asks for the rest.
    return Question(asked.tool.id, None if asked.parameter is None else asked.parameter.name)


def options_of(connection: TextConnection) -> list[str]:
    """Return the tools among which the agent lets the user choose."""
    dialogue: Any = connection._dialogue
    asked = dialogue.state.question
    return [each.id for each in asked.tools] if asked is not None and asked.expects.name == "CHOICE" else []


class Session:
    """One conversation in which the benchmark answers the calls."""

    def __init__(self, connection: TextConnection) -> None:
        self.connection = connection
        self._events = connection.events()
        self._open: list[ToolCall] = []

    async def says(self, text: str) -> Turn:
        """Send a message and return the reaction, up to a call or the end of the turn."""
        return await self._turn(self.connection.send_text(text))

    async def submits(self, tool: str, values: Mapping[str, Any]) -> Turn:
        """Submit a form and return the reaction."""
        return await self._turn(self.connection.send_form(tool, values))

    async def gets(self, data: Any) -> Turn:
        """Send the results of the last calls and return the reaction."""
        envelope = orjson.dumps({"ok": True, "data": data, "intents": []})
        results = [ToolResult(each.call_id or "", each.tool_id, envelope) for each in self._open]
        self._open = []
        return await self._turn(self.connection.send_results(results))

    async def _turn(self, sending: Any) -> Turn:
        turn, began = Turn(), time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE):
                await sending
                async for event in self._events:
                    if not self._takes(event, turn):
                        break
        except TimeoutError:
            turn.user_text += NO_ANSWER
        turn.seconds = time.perf_counter() - began
        if not turn.calls:
            turn.question = open_question(self.connection)
        return turn

    def _takes(self, event: Event, turn: Turn) -> bool:
        """Record an event; return whether the turn continues."""
        if isinstance(event, TextDelta):
            turn.user_text += event.text
        elif isinstance(event, FormRequest):
            turn.form = event
        elif isinstance(event, ToolCalls):
            self._open = list(event.calls)
            turn.calls += [Call(each.tool_id, orjson.loads(each.arguments)) for each in event.calls]
        elif isinstance(event, ProviderError):
            turn.user_text += f" [{event.code}: {event.detail}]"
        return not isinstance(event, ToolCalls | TurnComplete | ProviderError)


def third_party_opening(mode: Mode, *, forms: bool) -> ConnectionConfig:
    """Return the opening of a session with the twelve third-party tools."""
    tools = agent_test_module("agent_tools")
    declared = {
        name: dict(unchanged(name, told, schema).declaration)
        for name, (told, schema, _) in tools.TOOLS.items()
    }
    guides = {name: guide for name, (_, _, guide) in tools.TOOLS.items()}
    return ConnectionConfig(mode, "", declared, guides=guides, writers=tools.WRITERS, forms=forms)


def schema_of(tool: str) -> dict[str, Any]:
    """Return the parameters of a third-party tool."""
    schema: dict[str, Any] = agent_test_module("agent_tools").TOOLS[tool][1]
    return schema


@asynccontextmanager
async def session(agent: LocalAgent, opening: ConnectionConfig) -> AsyncIterator[Session]:
    """Open a conversation with a ready agent; voice has no audio, only its words."""
    connection = TextConnection(await agent.open(opening))
    await agent.ready()
    try:
        yield Session(connection)
    finally:
        await connection.close()

"""A session with the local agent, as the kernel holds it: the real registry in, events out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import orjson
from jackfield import Mode
from jackfield.contract.snapshot import Snapshot
from jackfield.contract.tool import ToolCall
from jackfield.settings import Settings
from jackfield.transport.events import Event, FormRequest, ProviderError, TextDelta, ToolCalls, TurnComplete
from jackfield.transport.protocol import Connection, ConnectionConfig, ToolResult
from jackfield_builder.pipeline import build
from jackfield_local import unchanged
from jackfield_local.agent.agent import LocalAgent
from jackfield_local.connection import TextConnection
from jackfield_local.settings import LocalSettings
from jackfield_local.transport import LocalTransport
from local_requests import NOW

OPTIONS = LocalSettings(time_zone="Europe/Berlin")
TOOLS = frozenset(
    [
        "calendar_create_event",
        "calendar_get_availability",
        "end_voice_session",
        "extract_contacts",
        "format_datetime",
        "ignore_user",
        "image_draft_prompt",
        "image_generate",
        "kb_get",
        "kb_search",
        "linkedin_lookup",
        "rank_results",
        "start_voice_session",
    ]
)
"""The tools that the requests were written for; what else is installed does not matter."""


@cache
def router() -> LocalAgent:
    """The agent without a model that all sessions of a process share, as they do under a host."""
    return LocalAgent(OPTIONS, clock=lambda: NOW)


@cache
def snapshot() -> Snapshot:
    """Build the registry of the installed tools."""
    built = build(Settings(), import_handlers=False)
    assert built.snapshot is not None, built.findings
    return built.snapshot


def opening(mode: Mode = "text", among: frozenset[str] = TOOLS, **changes: Any) -> ConnectionConfig:
    """What the kernel opens a session with, for tools of this repository."""
    tools = [
        tool
        for tool in snapshot().tools.values()
        if mode in tool.manifest.allowed_modes and tool.manifest.tool_id in among
    ]
    text_only = {
        tool.manifest.tool_id: tool.documentation
        for tool in snapshot().tools.values()
        if mode == "voice" and tool.manifest.allowed_modes == ("text",) and tool.manifest.tool_id in among
    }
    return ConnectionConfig(
        mode,
        "You are the assistant of a studio.",
        {tool.manifest.tool_id: tool.provider_schemas["local"] for tool in tools},
        guides={tool.manifest.tool_id: tool.documentation for tool in tools},
        writers=frozenset(
            tool.manifest.tool_id
            for tool in snapshot().tools.values()
            if tool.manifest.side_effects == "writes"
        ),
        confirmed=frozenset(
            tool.manifest.tool_id for tool in tools if tool.manifest.requires_confirmation is True
        ),
        text_only=text_only,
        **changes,
    )


@dataclass
class Session:
    """One conversation."""

    connection: Connection
    events: AsyncIterator[Event]
    mode: Mode = "text"
    calls: list[ToolCall] = field(default_factory=list)
    forms: list[FormRequest] = field(default_factory=list)

    async def says(self, text: str) -> str:
        """What is answered, up to the end of the turn or to a call, which is then the last of `calls`."""
        self.calls.clear()
        await self.connection.send_text(text)
        return await self.answer()

    async def submits(self, **more: Any) -> str:
        """What is answered to the last form, completed with these values."""
        form = self.forms.pop()
        await cast("TextConnection", self.connection).send_form(form.tool_id, {**form.values, **more})
        return await self.answer()

    async def answer(self) -> str:
        """What comes next, up to the end of the turn or to a call."""
        said = ""
        async for event in self.events:
            if isinstance(event, TextDelta):
                said += event.text
            elif isinstance(event, ToolCalls):
                self.calls += event.calls
                return said
            elif isinstance(event, FormRequest):
                self.forms.append(event)
            elif isinstance(event, TurnComplete):
                return said
            else:
                assert not isinstance(event, ProviderError), event
        raise AssertionError("the events ended within an answer")

    async def gets(self, data: Any = None, error: Any = None) -> str:
        """What is said to the answer of the last calls; all of them get the same."""
        envelope = (
            {"ok": True, "data": data, "intents": []} if error is None else {"ok": False, "error": error}
        )
        wire = orjson.dumps(envelope)
        results = [ToolResult(call.call_id or "", call.tool_id, wire) for call in self.calls]
        self.calls.clear()
        await self.connection.send_results(results)
        return await self.answer()

    @property
    def args(self) -> dict[str, Any]:
        """The arguments of the first of the last calls."""
        found: dict[str, Any] = orjson.loads(self.calls[0].arguments)
        return found


@asynccontextmanager
async def session(
    mode: Mode = "text", agent: LocalAgent | None = None, **changes: Any
) -> AsyncIterator[Session]:
    """A conversation on the router or another agent; voice without sound, for its words."""
    begun, agent = opening(mode, **changes), agent or router()
    if mode == "text":
        connection: Connection = await LocalTransport(OPTIONS, agent).connect(begun)
    else:
        connection = TextConnection(await agent.open(begun))
    try:
        yield Session(connection, connection.events(), mode)
    finally:
        await connection.close()


@asynccontextmanager
async def offered(
    tools: Mapping[str, tuple[str, dict[str, Any], str]], agent: Any, **changes: Any
) -> AsyncIterator[Session]:
    """A conversation in text over tools of a test's own, on a agent that is ready for them."""
    async with offered_by(LocalTransport(OPTIONS, agent), tools, **changes) as talk:
        if hasattr(agent, "ready"):
            await agent.ready()
        yield talk


@asynccontextmanager
async def offered_by(
    transport: LocalTransport, tools: Mapping[str, tuple[str, dict[str, Any], str]], **changes: Any
) -> AsyncIterator[Session]:
    """A conversation in text over tools of a test's own."""
    declared = {
        name: dict(unchanged(name, told, schema).declaration) for name, (told, schema, _) in tools.items()
    }
    guides = {name: guide for name, (_, _, guide) in tools.items()}
    connection = await transport.connect(ConnectionConfig("text", "", declared, guides=guides, **changes))
    try:
        yield Session(connection, connection.events())
    finally:
        await connection.close()


def talk_over(
    tools: Mapping[str, tuple[str, dict[str, Any], str]],
    steps: Callable[[Session], Awaitable[None]],
    **changes: Any,
) -> None:
    """Talk to the router in text over tools of a test's own, each with description, schema and guide."""

    async def run() -> None:
        async with asyncio.timeout(60), offered(tools, router(), **changes) as talk:
            await steps(talk)

    asyncio.run(run())

"""Connections of the transport to a scripted Gemini server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from jackfield.contract.tool import ToolCall
from jackfield.transport.events import Event, ToolCalls
from jackfield.transport.protocol import Connection, ConnectionConfig
from jackfield_gemini.settings import GeminiSettings
from jackfield_gemini.transport import GeminiTransport
from jackfield_scripted.gemini import GeminiServer

KEY = "key-of-a-test"
DECLARED = {
    "look_up": {
        "name": "look_up",
        "description": "Looks something up.",
        "parametersJsonSchema": {"type": "object", "properties": {"title": {"type": "string"}}},
    },
    "shop.order": {
        "name": "shop_order",
        "description": "Orders something.",
        "parametersJsonSchema": {"type": "object", "properties": {"item": {"type": "string"}}},
    },
}

Plays = Callable[[Any], Awaitable[None]]
"""A script for a model of either kind."""

_E = TypeVar("_E")


@dataclass
class ScriptedConnection:
    """An open connection whose events are read by a background task."""

    server: GeminiServer
    transport: GeminiTransport
    connection: Connection
    events: list[Event]
    reading: asyncio.Task[None]

    @property
    def model(self) -> Any:
        return self.server.models[-1]

    def of(self, *kinds: type[_E]) -> list[_E]:
        return [event for event in self.events if isinstance(event, kinds)]

    async def until(self, found: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not found():  # noqa: ASYNC110
                await asyncio.sleep(0.002)

    async def next(self, kind: type[_E], number: int = 1) -> _E:
        """Wait for the given number of events of a type and return the last one."""
        await self.until(lambda: len(self.of(kind)) >= number)
        return self.of(kind)[number - 1]

    async def calls(self, number: int = 1) -> tuple[ToolCall, ...]:
        return (await self.next(ToolCalls, number)).calls

    async def hang_up(self) -> list[Event]:
        await self.connection.close()
        await self.reading
        return self.events


def envelope(**fields: Any) -> bytes:
    """Return the envelope of a tool's answer."""
    return orjson.dumps({"ok": True, "data": {}, **fields})


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run an async test."""
    asyncio.run(coroutine)


@asynccontextmanager
async def _line(
    mode: str, *scripts: Plays, settings: dict[str, Any] | None = None, opening: Any = None, **server: Any
) -> AsyncIterator[ScriptedConnection]:
    async with GeminiServer(*scripts, tls=mode == "voice", **server) as serving:
        at = {"base_url": serving.base_url, "ca_file": serving.ca_file}
        transport = GeminiTransport(GeminiSettings(**{**at, **(settings or {})}))
        begun = {"instructions": "You are a clerk.", "declarations": DECLARED, **(opening or {})}
        connection = await transport.connect(ConnectionConfig(mode, **begun))  # type: ignore[arg-type]
        events: list[Event] = []

        async def read() -> None:
            async for event in connection.events():
                events.append(event)  # noqa: PERF401 - others look at it while it grows

        line = ScriptedConnection(serving, transport, connection, events, asyncio.create_task(read()))
        try:
            yield line
        finally:
            await line.hang_up()
            await transport.close()


def live(*scripts: Plays, **options: Any) -> AbstractAsyncContextManager[ScriptedConnection]:
    """Open a voice connection to a script: `async with live(script) as line`."""
    return _line("voice", *scripts, **options)


def text(*scripts: Plays, **options: Any) -> AbstractAsyncContextManager[ScriptedConnection]:
    """Open a text connection to a script."""
    return _line("text", *scripts, **options)

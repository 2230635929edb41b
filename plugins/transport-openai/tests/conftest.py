"""A scripted OpenAI, and a transport that leads to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from jackfield import Mode
from jackfield.transport.protocol import ConnectionConfig
from jackfield_openai import schemas
from jackfield_openai.settings import OpenAISettings
from jackfield_openai.transport import BrowserOpenAITransport
from jackfield_scripted import Script
from jackfield_scripted.openai import OpenAIServer
from jackfield_testkit.transport.harness import TOOLS, EventCollector, ScriptedConnection, ServedTransport

KEY = "sk-test-0123456789abcdef"


class Met(NamedTuple):
    """A talk, and the server that it is held with."""

    talk: ScriptedConnection
    server: OpenAIServer


class Meeting:
    """Makes openings, and holds talks on them."""

    def opening(self, mode: Mode, **changes: Any) -> ConnectionConfig:
        adapt = schemas.realtime if mode == "voice" else schemas.chat
        declarations = {tool: adapt(tool, "A tool.", schema).declaration for tool, schema in TOOLS.items()}
        return replace(ConnectionConfig(mode, "Be brief.", declarations), **changes)

    def transport(self, server: OpenAIServer, **options: Any) -> BrowserOpenAITransport:
        return BrowserOpenAITransport(
            OpenAISettings(**{"base_url": server.base_url, "retries": 0, **options})
        )

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for something that no event tells of."""
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    @asynccontextmanager
    async def talk(
        self,
        mode: Mode,
        *scripts: Script,
        server: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        **changes: Any,
    ) -> AsyncIterator[Met]:
        async with OpenAIServer(*scripts, **(server or {})) as served:
            transport = self.transport(served, **(options or {}))
            connection = await transport.connect(self.opening(mode, **changes))
            ear = EventCollector(connection)
            try:
                yield Met(
                    ScriptedConnection(connection, ear, ServedTransport(transport, served.models)), served
                )
            finally:
                await connection.close()
                await ear.all()
                await transport.close()


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> Meeting:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return Meeting()


@pytest.fixture
def run() -> Callable[[Awaitable[None]], None]:
    """Runs a scenario, and ends one that would wait for ever."""

    def run(scenario: Awaitable[None]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(60):
                await scenario

        asyncio.run(bounded())

    return run

"""A real runtime with the installed tools, as a new user has it: the sample loaded, the calendar empty."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from jackfield import Mode
from jackfield.protocol.close_codes import CloseReason
from jackfield.runtime import Runtime
from jackfield.settings import Settings
from jackfield.transport.events import FormRequest
from jackfield.transport.protocol import ConnectionConfig, VoiceSettings
from jackfield.transport.provider_errors import PROVIDER_ERRORS
from jackfield_local.agent.agent import LocalAgent
from jackfield_local.connection import TextConnection
from jackfield_sessions.hub import ClientQueue
from jackfield_sessions.live_session import LiveSession
from jackfield_sessions.model_connection import base_config

from bench.agent.sessions import NO_ANSWER, PATIENCE, Call, Turn, open_question

USER = "demo"
"""The owner of the sample's personal documents."""

INSTRUCTIONS = "You are the assistant of a design studio."


class SilentTransport:
    """Connects to an agent in text and in voice; voice is transmitted as words, without audio."""

    modes: frozenset[Mode] = frozenset(("text", "voice"))

    def __init__(self, agent: LocalAgent) -> None:
        self._agent = agent
        self.connection: TextConnection | None = None

    def adapter(self, mode: Mode) -> str:
        """The schema adapter whose declarations it needs."""
        return "local"

    async def connect(self, opening: ConnectionConfig) -> TextConnection:
        """Connect to the agent; the last connection is kept."""
        self.connection = TextConnection(await self._agent.open(opening))
        return self.connection

    async def close(self) -> None:
        """Do nothing: the agent serves other conversations as well."""


class Talk(ClientQueue):
    """A user in a live session whose tools really run."""

    def __init__(self, transport: SilentTransport) -> None:
        super().__init__(limit=0)
        self._transport = transport
        self._turn = Turn()
        self._news = asyncio.Event()
        self._ended = self._closed = False
        self._cards: list[str] = []
        self.live: LiveSession | None = None
        self.answers: list[Mapping[str, Any]] = []
        """The complete messages of the assistant."""

    def send(self, message: Mapping[str, Any] | str) -> None:
        """Record a message to the client."""
        if isinstance(message, str):
            # Text deltas arrive encoded.
            self._turn.said += orjson.loads(message)["text"]
            return
        match message["type"]:
            case "form_request":
                self._turn.form = FormRequest(message["formId"], message["tool"], message["values"])
            case "tool_start":
                self._turn.calls.append(Call(message["tool"], orjson.loads(message["arguments"])))
                # Text before a result is not an answer.
                self._turn.said = ""
            case "notification" if message["code"] in PROVIDER_ERRORS:
                self._turn.said += f" [{message['code']}]"
                self._ended = True
            case "message" if message["speaker"] == "assistant":
                self.answers.append(message)
            case "confirmation_required":
                self._cards.append(message["token"])
            case "turn_complete":
                self._ended = True
        self._news.set()

    def close(self, closing: CloseReason) -> None:
        """Record the end of the messages."""
        super().close(closing)
        self._closed = self._ended = True
        self._news.set()

    async def says(self, text: str) -> Turn:
        """Send a message and return the answer; its confirmations are left open."""
        assert self.live is not None
        self._turn, self._cards = Turn(), []
        began = time.perf_counter()
        await self._until_answered(self.live.send_text(text))
        self._turn.seconds = time.perf_counter() - began
        connection = self._transport.connection
        if not self._closed and connection is not None:
            self._turn.question = open_question(connection)
        return self._turn

    async def approves(self) -> str:
        """Approve the last confirmation and return the answer; None if there is none."""
        assert self.live is not None
        if not self._cards:
            return ""
        self._turn = Turn()
        await self._until_answered(self.live.resolve_confirmation(self._cards.pop(), approve=True))
        return self._turn.said

    async def _until_answered(self, doing: Any) -> None:
        self._ended = self._closed
        try:
            async with asyncio.timeout(PATIENCE):
                await doing
                while not self._ended:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            self._turn.said += NO_ANSWER


class Site:
    """The runtime and its folder."""

    def __init__(self, runtime: Runtime, folder: Path) -> None:
        self.runtime = runtime
        self._folder = folder

    async def opening(self, agent: LocalAgent, mode: Mode) -> ConnectionConfig:
        """Return the configuration of a conversation in a mode."""
        session = await self.runtime.open_session(mode, user=USER)
        config = base_config(
            self.runtime.registry,
            session,
            SilentTransport(agent),
            instructions=INSTRUCTIONS,
            voice=VoiceSettings(),
        )
        return replace(config, forms=mode == "text")

    def writers(self, mode: Mode) -> frozenset[str]:
        """Return the tools that write without a confirmation."""
        return frozenset(
            tool.id
            for tool in self.runtime.registry.offered(mode)
            if not tool.reads and tool.manifest.requires_confirmation is not True
        )

    @asynccontextmanager
    async def talk(self, agent: LocalAgent, mode: Mode, *, forms: bool) -> AsyncIterator[Talk]:
        """Start a conversation with a ready agent; the calendar is empty."""
        shutil.rmtree(self._folder / "calendars", ignore_errors=True)
        transport = SilentTransport(agent)
        talk = Talk(transport)
        session = await self.runtime.open_session(mode, user=USER)
        talk.live = live = LiveSession(
            self.runtime, session, transport, instructions=INSTRUCTIONS, dead_air=PATIENCE, forms=forms
        )
        live.attach(talk)
        await live.open()
        await agent.ready()
        live.start()
        try:
            yield talk
        finally:
            await live.close()


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """Build, load the sample and start in a temporary folder, as `nox -s serve` does."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for command in (["build", "--no-import"], ["kb", "add", "--sample"]):
                jackfield = str(Path(sys.executable).with_name("jackfield"))
                subprocess.run([jackfield, *command], check=True, capture_output=True)  # noqa: ASYNC221
            runtime = await Runtime.start(Settings(store="memory", provider="local"))
            try:
                yield Site(runtime, Path(folder))
            finally:
                await runtime.close()
        finally:
            os.chdir(home)

"""What is traced: a text message with a tool call, a confirmation, a barge-in, a voice frame, and a build.

The host, its store and its transport are real, and a WebSocket leads to them. The provider is a script, and
the tools are made for the trace, so that the path is the same whatever else is installed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from jackfield.settings import Settings
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_host.settings import HostSettings
from jackfield_host.uvicorn_server import serve_embedded
from jackfield_scripted import Script, ScriptedCall, ScriptedModel
from jackfield_scripted.audio import tone
from jackfield_scripted.openai import OpenAIServer
from jackfield_sessions import manager
from jackfield_testkit.site_packages import SitePackages
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from call_path.tracer import CallPath, Trace, tracing

ALLOW = (
    "path-*",
    "jackfield-policies",
    "jackfield-observability",
    "jackfield-store-sqlite",
    "jackfield-transport-openai",
)

WRITES = {"category": "action", "sideEffects": "writes", "idempotent": False}
TOOLS: dict[str, dict[str, Any]] = {
    "look": {},
    "book": {**WRITES, "requiresConfirmation": True, "preview": "Book {text}?"},
}

REPETITIONS = 4
"""How often each path is traced, after one run that fills the caches."""

SETTLE_SECONDS = 0.1
"""How long what follows an answer may take: records, metrics, the last events."""

PATIENCE_SECONDS = 60.0

KEY = "PATH_KEY"


class Client:
    """A client that keeps what it gets."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._got: list[dict[str, Any]] = []

    async def send(self, **message: Any) -> None:
        """Send a message."""
        await self._socket.send(json.dumps(message))

    async def speak(self, ms: int = 400) -> None:
        """Send so much sound in frames of 20 ms."""
        for start in range(0, ms, 20):
            await self._socket.send(tone(20, start_ms=start))

    async def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Read up to the next message of a type that has these fields."""
        while True:
            frame = await self._socket.recv()
            if isinstance(frame, str):
                message: dict[str, Any] = json.loads(frame)
                self._got.append(message)
                if message["type"] == kind and fields.items() <= message.items():
                    return message

    async def speech(self, ms: int) -> str:
        """Read so much speech; the item that it belongs to."""
        item, size = "", 0
        while size < ms * 48:
            frame = await self._socket.recv()
            if isinstance(frame, bytes):
                size += len(frame)
            elif (message := json.loads(frame))["type"] == "audio":
                item = message["item"]
        return item


@contextmanager
def site(folder: Path) -> Iterator[Settings]:
    """A deployment with the tools of the traces."""
    made = SitePackages(folder / "site")
    for tool, fields in TOOLS.items():
        schema = {"latencyBudgetMs": 1000, **fields}
        made.tool(tool, distribution=f"path-{tool}", schema=schema)
    before = Path.cwd()
    os.chdir(folder)
    os.environ[KEY] = "k"
    sys.path.insert(0, str(made.folder))
    try:
        yield Settings(
            allow=ALLOW,
            provider="openai",
            registry=folder / "tool_registry.json",
            tables={
                "stores": {"sqlite": {"path": str(folder / "jackfield.db")}},
                "observers": {"audit": {"path": str(folder / "audit.jsonl")}},
            },
        )
    finally:
        sys.path.remove(str(made.folder))
        os.chdir(before)


@asynccontextmanager
async def connected(settings: Settings, mode: str, script: Script) -> AsyncIterator[Client]:
    """A client of a host whose model plays the script."""
    # The host's maintenance also runs without a message, and on a busy machine during every one.
    with patch.object(manager, "MAINTENANCE_SECONDS", 2 * PATIENCE_SECONDS):
        async with asyncio.timeout(PATIENCE_SECONDS), _client_of(settings, mode, script) as client:
            yield client


@asynccontextmanager
async def _client_of(settings: Settings, mode: str, script: Script) -> AsyncIterator[Client]:
    async with OpenAIServer(script) as served:
        table = {"api_key_env": KEY, "base_url": served.base_url}
        tables = {**settings.tables, "transports": {"openai": table}}
        deployed = Settings(
            allow=settings.allow, provider="openai", registry=settings.registry, tables=tables
        )
        async with (
            serve_embedded(deployed, HostSettings(port=0)) as url,
            connect(
                f"{url.replace('http', 'ws', 1)}/ws/{mode}",
                origin=Origin(url),
                subprotocols=[Subprotocol("jackfield.1")],
                compression=None,
            ) as socket,
        ):
            client = Client(socket)
            await client.send(type="start")
            await client.until("caught_up")
            yield client


async def _repeated(once: Callable[[], Awaitable[Trace]]) -> CallPath:
    await once()
    return CallPath.common([await once() for _ in range(REPETITIONS)])


async def text_message(settings: Settings) -> CallPath:
    """A text message that the model answers with the help of one tool that reads."""

    async def script(model: ScriptedModel) -> None:
        while True:
            await model.hears()
            await model.calls(ScriptedCall("look", {"text": "room 4"}))
            await model.says("It is free.")

    async with connected(settings, "text", script) as client:

        async def once() -> Trace:
            with tracing() as trace:
                await client.send(type="text", text="is room 4 free?")
                await client.until("turn_complete")
                await asyncio.sleep(SETTLE_SECONDS)
            return trace

        return await _repeated(once)


async def confirmation(settings: Settings) -> CallPath:
    """A message that asks for a call which the user has to approve, the approval, and the answer."""

    async def script(model: ScriptedModel) -> None:
        while True:
            await model.hears()
            await model.calls(ScriptedCall("book", {"text": "room 4"}))
            await model.says("Please confirm it.")
            await model.hears()
            await model.says("It is booked.")

    async with connected(settings, "text", script) as client:

        async def once() -> Trace:
            with tracing() as trace:
                await client.send(type="text", text="book room 4")
                asked = await client.until("confirmation_required")
                await client.until("turn_complete")
                await client.send(type="approve", token=asked["token"])
                await client.until("turn_complete")
                await asyncio.sleep(SETTLE_SECONDS)
            return trace

        return await _repeated(once)


async def barge_in(settings: Settings) -> CallPath:
    """A user who speaks while the model does: the rest is not played, and the model learns how much was."""
    spoken, cut = asyncio.Event(), asyncio.Event()

    async def script(model: ScriptedModel) -> None:
        while True:
            await model.hears_speech("tell me a story")
            await model.speaks("Once upon a time there was a lighthouse by the sea", ms=1000)
            await spoken.wait()
            spoken.clear()
            await model.is_interrupted()
            await model.truncated()
            await cut.wait()
            cut.clear()
            await model.hears_speech("stop")
            await model.says("I stopped.")

    async with connected(settings, "voice", script) as client:

        async def once() -> Trace:
            await client.speak()
            item = await client.speech(1000)
            await client.send(type="playback", item=item, ms=400)
            await asyncio.sleep(SETTLE_SECONDS)
            with tracing() as trace:
                spoken.set()
                await client.until("message", interrupted=True)
                await asyncio.sleep(SETTLE_SECONDS)
            cut.set()
            await client.speak()
            item = await client.speech(60)
            await client.send(type="playback", item=item, ms=60_000)
            await client.until("turn_complete")
            await asyncio.sleep(SETTLE_SECONDS)
            return trace

        return await _repeated(once)


async def voice_frame(settings: Settings) -> CallPath:
    """20 ms of the user's speech on their way to the provider."""

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("never", after_ms=60_000)

    async with connected(settings, "voice", script) as client:

        async def once() -> Trace:
            with tracing() as trace:
                await client.speak(20)
                await asyncio.sleep(SETTLE_SECONDS)
            return trace

        return await _repeated(once)


def registry_build(settings: Settings) -> CallPath:
    """A registry of the traced tools and their plugins, from entry points to the file."""

    def once() -> Trace:
        with tracing() as trace:
            built = build(settings)
            assert built.snapshot, built.findings
            write_snapshot(built.snapshot, settings.registry)
        return trace

    once()
    return CallPath.common([once(), once()])


def all_paths(folder: Path) -> dict[str, CallPath]:
    """Every path, by its name."""
    with site(folder) as settings:
        paths = {"build": registry_build(settings)}
        for scenario in (text_message, confirmation, barge_in, voice_frame):
            paths[scenario.__name__] = asyncio.run(scenario(settings))
        return paths

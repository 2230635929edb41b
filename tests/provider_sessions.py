"""Live sessions with a real runtime, a real transport and a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jackfield import Mode
from jackfield.runtime import Runtime
from jackfield.settings import Settings
from jackfield.transport.protocol import BrowserTransport, Connection, ConnectionConfig, Transport
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_scripted import Script, ScriptedModel, UserInput
from jackfield_scripted.audio import tone
from jackfield_scripted.gemini import GeminiServer
from jackfield_scripted.openai import OpenAIServer
from jackfield_sessions.hub import ClientQueue
from jackfield_sessions.live_session import LiveSession

INSTRUCTIONS = "You look things up and book tables."
PLUGINS = ("fab-*", "jackfield-policies", "jackfield-transport-*")
FRAME_MS = 20

HANDLER = """\
import asyncio
from pathlib import Path

from jackfield import ok

LOG = Path({log!r})


async def execute(args, ctx):
    with LOG.open("a") as log:
        log.write(f"begun {tool} {{args['text']}}\\n")
    await asyncio.sleep({seconds})
    with LOG.open("a") as log:
        log.write(f"done {tool} {{args['text']}}\\n")
    return ok({{"words": len(args["text"].split()), "seconds": 1}})
"""

_E = TypeVar("_E")


class JoinedCall:
    """A transport that joins a browser's own call, as a host does where audio bypasses it."""

    def __init__(self, inner: BrowserTransport) -> None:
        self._inner = inner
        self.modes = inner.modes
        self.adapter = inner.adapter
        self.close = inner.close

    async def connect(self, opening: ConnectionConfig) -> Connection:
        if opening.mode == "text":
            return await self._inner.connect(opening)
        call = await self._inner.exchange("v=0 offer", opening)
        return await self._inner.attach(call.call_id, opening)


@dataclass(frozen=True)
class ConnectionType:
    """One connection type."""

    provider: str
    mode: Mode
    serve: Callable[..., Any]
    table: dict[str, Any] = field(default_factory=dict)


WAYS = {
    "openai-chat": ConnectionType("openai", "text", OpenAIServer),
    "openai-strict": ConnectionType("openai", "text", OpenAIServer, {"strict": True}),
    "openai-realtime": ConnectionType("openai", "voice", OpenAIServer),
    "openai-webrtc": ConnectionType("openai", "voice", OpenAIServer, {"voice": "webrtc"}),
    "gemini-text": ConnectionType("gemini", "text", GeminiServer),
    "gemini-live": ConnectionType("gemini", "voice", GeminiServer),
    "gemini-native": ConnectionType("gemini", "voice", GeminiServer, {"adapter": "gemini-native"}),
}


class SpeechItem(NamedTuple):
    """A piece of speech that reached the client."""

    item: str
    pcm: bytes
    filler: bool


@dataclass
class User:
    """A user in a live session, and the messages to the client."""

    live: LiveSession
    runtime: Runtime
    mode: Mode
    log: Path
    got: list[dict[str, Any]] = field(default_factory=list)
    """The messages, in order."""
    speech: list[SpeechItem] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    failures: list[Exception] = field(default_factory=list)
    plays_at_once: bool = True
    """Whether the client reports everything as played."""

    async def says(self, words: str) -> None:
        """Send text, or speak for a second."""
        if self.mode == "text":
            await self.live.send_text(words)
            return
        for start in range(0, 400, FRAME_MS):
            await self.live.send_audio(tone(FRAME_MS, start_ms=start))

    async def until(self, condition: Callable[[], _E]) -> _E:
        """Wait for a condition."""
        while not (found := condition()):
            if self.failures:
                raise self.failures[0]
            self.changed.clear()
            await self.changed.wait()
        return found

    async def turn_ends(self, count: int) -> None:
        """Wait until the model has ended this many turns."""
        await self.until(lambda: len(self.turns_ended) >= count)

    @property
    def turns_ended(self) -> list[dict[str, Any]]:
        """The number of turns that the model has ended."""
        return self.of("turn_complete")

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The messages of one type."""
        return [message for message in self.got if message["type"] == kind]

    @property
    def words(self) -> str:
        """Everything that the model said."""
        transcripts = [each for each in self.of("transcript") if each["speaker"] == "assistant"]
        spoken = [each["text"] for each in transcripts if each["final"]]
        return " ".join(spoken) or "".join(each["text"] for each in self.of("text_delta"))

    @property
    def answers(self) -> list[str]:
        """The answers of the assistant, as in the history for a new connection."""
        messages = self.live.checkpoint.history.messages
        said = [each.text for each in messages if each.speaker == "assistant"]
        return [text for text in said if not text.startswith("[called")]

    @property
    def notifications(self) -> list[str]:
        """The codes of the notifications."""
        return [each["code"] for each in self.of("notification")]

    @property
    def fillers(self) -> set[str]:
        """The items of speech that only filled a wait."""
        return {each.item for each in self.speech if each.filler}

    async def begins(self, tool: str) -> None:
        """Wait until a tool runs, according to its log."""
        while not self.effects(tool, "begun"):
            if self.failures:
                raise self.failures[0]
            await asyncio.sleep(0.01)

    def effects(self, tool: str, kind: str = "done") -> int:
        """Return how often a tool ended, or began."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return sum(line.startswith(f"{kind} {tool} ") for line in lines)


class Client(ClientQueue):
    """Passes messages to the client on to the user."""

    def __init__(self, user: User) -> None:
        super().__init__(limit=0)
        self._user = user

    def send(self, message: Mapping[str, Any] | str) -> None:
        self._user.got.append(json.loads(message) if isinstance(message, str) else dict(message))
        self._user.changed.set()

    def send_audio(self, item: str, pcm: bytes) -> None:
        live = self._user.live
        self._user.speech.append(SpeechItem(item, pcm, filler=item == live._loop.speech._filler))
        self._user.changed.set()
        if self._user.plays_at_once:
            live.report_playback(item, 3_600_000)


def tools(site: Any, log: Path) -> None:
    """Install the tools of these tests."""

    def add(tool: str, seconds: float = 0.0, **fields: Any) -> None:
        package = site.tool(tool, **fields)
        (package / "handler.py").write_text(HANDLER.format(log=str(log), tool=tool, seconds=seconds))

    writes: dict[str, Any] = {
        "category": "action",
        "sideEffects": "writes",
        "idempotent": False,
        "requiresConfirmation": False,
    }
    add("fab_look")
    add("fab_slow_look", seconds=30)
    add("fab_note", **writes)
    add("fab_slow_note", seconds=0.3, **writes)
    add("fab_book", **{**writes, "requiresConfirmation": True}, preview="Book {text}?")
    add("fab_text_only", allowedModes=["text"])
    add("fab_voice_only", allowedModes=["voice"])


def hears(way: ConnectionType) -> Callable[[ScriptedModel, str], Awaitable[UserInput]]:
    """Return how a script waits for the user with this connection type."""

    async def wait(model: ScriptedModel, words: str) -> UserInput:
        if way.table.get("voice") == "webrtc":
            # The browser's audio bypasses the host, so nothing here says when the user has spoken.
            await asyncio.sleep(0.3)
        return await (model.hears_speech(words) if way.mode == "voice" else model.hears())

    return wait


@asynccontextmanager
async def provider_session(
    way: ConnectionType,
    site: Any,
    folder: Path,
    *scripts: Script,
    dead_air: float = 60.0,
    patience: float = 60.0,
    plugins: tuple[str, ...] = PLUGINS,
    **server: Any,
) -> AsyncIterator[User]:
    """Open a live session over one connection type; assertions of scripts are raised at the end."""
    log = folder / "log.txt"
    tools(site, log)
    user: User

    def reporting(script: Script) -> Script:
        async def play(model: ScriptedModel) -> None:
            try:
                await script(model)
            except Exception as error:
                # A test that waits for the next step of a failed script does not wait forever.
                user.failures.append(error)
                user.changed.set()
                raise

        return play

    async with way.serve(*map(reporting, scripts), **server) as served:
        table = {"api_key_env": "FAB_KEY", **way.table}
        if served.base_url:
            table["base_url"] = served.base_url
        if getattr(served, "ca_file", None):
            table["ca_file"] = served.ca_file
        settings = Settings(
            allow=plugins, store="memory", provider=way.provider, tables={"transports": {way.provider: table}}
        )
        built = build(settings, import_handlers=False)
        assert built.snapshot, built.findings
        write_snapshot(built.snapshot, settings.registry)
        runtime = await Runtime.start(settings)
        transport: Transport = runtime.transport()
        if table.get("voice") == "webrtc":
            transport = JoinedCall(transport)  # type: ignore[arg-type]
        session = await runtime.open_session(way.mode, user="ada")
        live = LiveSession(runtime, session, transport, instructions=INSTRUCTIONS, dead_air=dead_air)
        user = User(live, runtime, way.mode, log)
        live.attach(Client(user))
        await live.open()
        live.start()
        try:
            async with asyncio.timeout(patience):
                yield user
        finally:
            await live.close()
            await transport.close()
            await runtime.close()

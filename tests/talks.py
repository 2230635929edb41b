"""Conversations as a user has them: a real session, a real transport, a scripted model at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from jackfield import Mode
from jackfield.runtime import Runtime
from jackfield.settings import Settings
from jackfield.transport.events import Audio, TextDelta, Transcript, TurnComplete
from jackfield.transport.protocol import BrowserTransport, Connection, Opening, Transport
from jackfield_builder import freeze
from jackfield_builder.pipeline import build
from jackfield_sessions.conversation import Conversation
from jackfield_sessions.notices import Notice
from jackfield_testkit.providers.audio import tone
from jackfield_testkit.providers.gemini import GeminiServer
from jackfield_testkit.providers.model import Heard, Script, ScriptedModel
from jackfield_testkit.providers.openai import OpenAIServer

INSTRUCTIONS = "You look things up and book tables."
PLUGINS = ("fab-*", "jackfield-policies", "jackfield-intents", "jackfield-transport-*")
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


class Besides:
    """A transport over which a browser's own call is joined, as a host does where audio goes past it."""

    def __init__(self, inner: BrowserTransport) -> None:
        self._inner = inner
        self.modes = inner.modes
        self.adapter = inner.adapter
        self.close = inner.close

    async def connect(self, opening: Opening) -> Connection:
        if opening.mode == "text":
            return await self._inner.connect(opening)
        call = await self._inner.exchange("v=0 offer", opening)
        return await self._inner.attach(call.call_id, opening)


@dataclass(frozen=True)
class Way:
    """One way to a model."""

    provider: str
    mode: Mode
    serve: Callable[..., Any]
    table: dict[str, Any] = field(default_factory=dict)


WAYS = {
    "openai-chat": Way("openai", "text", OpenAIServer),
    "openai-strict": Way("openai", "text", OpenAIServer, {"strict": True}),
    "openai-realtime": Way("openai", "voice", OpenAIServer),
    "openai-webrtc": Way("openai", "voice", OpenAIServer, {"voice": "webrtc"}),
    "gemini-text": Way("gemini", "text", GeminiServer),
    "gemini-live": Way("gemini", "voice", GeminiServer),
    "gemini-native": Way("gemini", "voice", GeminiServer, {"adapter": "gemini-native"}),
}


@dataclass
class Talk:
    """A user in conversation, and what reached the client."""

    conversation: Conversation
    runtime: Runtime
    mode: Mode
    log: Path
    got: list[Any] = field(default_factory=list)
    published: list[tuple[str, Any]] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    failures: list[Exception] = field(default_factory=list)
    plays_at_once: bool = True
    """Whether the client says of everything that it was heard."""

    async def says(self, words: str) -> None:
        """The user writes, or speaks for a second."""
        if self.mode == "text":
            await self.conversation.say(words)
            return
        for start in range(0, 400, FRAME_MS):
            await self.conversation.listen(tone(FRAME_MS, start_ms=start))

    async def until(self, condition: Callable[[], _E]) -> _E:
        """Wait for something to come true."""
        while not (found := condition()):
            if self.failures:
                raise self.failures[0]
            self.news.clear()
            await self.news.wait()
        return found

    async def turn_ends(self, count: int) -> None:
        """Wait until the model has ended so many turns."""
        await self.until(lambda: len(self.turns_ended) >= count)

    @property
    def turns_ended(self) -> list[TurnComplete]:
        """The turns that the model has ended."""
        return self.of(TurnComplete)

    def of(self, kind: type[_E]) -> list[_E]:
        """What came of one kind."""
        return [event for event in self.got if isinstance(event, kind)]

    def told(self, event: str) -> list[Any]:
        """What was published under a name."""
        return [fields for name, fields in self.published if name == event]

    @property
    def words(self) -> str:
        """What the model said, all of it."""
        spoken = [each.text for each in self.of(Transcript) if each.speaker == "assistant" and each.final]
        return " ".join(spoken) or "".join(each.text for each in self.of(TextDelta))

    @property
    def notices(self) -> list[str]:
        """The codes of what the host told the user."""
        return [each.code for each in self.of(Notice)]

    @property
    def heard_item(self) -> str:
        """What is being spoken."""
        return self.of(Audio)[-1].item

    async def begins(self, tool: str) -> None:
        """Wait until a tool is at work, of which it tells nobody but its log."""
        while not self.effects(tool, "begun"):
            if self.failures:
                raise self.failures[0]
            await asyncio.sleep(0.01)

    def effects(self, tool: str, kind: str = "done") -> int:
        """How often a tool came to its end, or began."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return sum(line.startswith(f"{kind} {tool} ") for line in lines)


def tools(site: Any, log: Path) -> None:
    """What the models of these tests can call."""

    def add(tool: str, seconds: float = 0.0, **fields: Any) -> None:
        package = site.tool(tool, **fields)
        (package / "handler.py").write_text(HANDLER.format(log=str(log), tool=tool, seconds=seconds))

    writes: dict[str, Any] = {"category": "action", "sideEffects": "writes", "idempotent": False}
    add("fab_look")
    add("fab_slow_look", seconds=30)
    add("fab_note", **writes)
    add("fab_slow_note", seconds=0.3, **writes)
    add("fab_book", **writes, requiresConfirmation=True, preview="Book {text}?")
    add("fab_text_only", allowedModes=["text"])
    add("fab_voice_only", allowedModes=["voice"])


def hears(way: Way) -> Callable[[ScriptedModel, str], Awaitable[Heard]]:
    """How a script waits for the user on this way."""

    async def wait(model: ScriptedModel, words: str) -> Heard:
        if way.table.get("voice") == "webrtc":
            # The browser's sound goes past us, so nothing here says when the user has spoken.
            await asyncio.sleep(0.3)
        return await (model.hears_speech(words) if way.mode == "voice" else model.hears())

    return wait


@asynccontextmanager
async def talk(
    way: Way,
    site: Any,
    folder: Path,
    *scripts: Script,
    dead_air: float = 60.0,
    patience: float = 60.0,
    plugins: tuple[str, ...] = PLUGINS,
    **server: Any,
) -> AsyncIterator[Talk]:
    """A conversation over one way; what a script asserts is raised at the end."""
    log = folder / "log.txt"
    tools(site, log)
    made: Talk

    def reporting(script: Script) -> Script:
        async def play(model: ScriptedModel) -> None:
            try:
                await script(model)
            except Exception as error:
                # Whoever waits for what the script would have done next need not wait for ever.
                made.failures.append(error)
                made.news.set()
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
        freeze.write(built.snapshot, settings.registry)
        runtime = await Runtime.start(settings)
        transport: Transport = runtime.transport()
        if table.get("voice") == "webrtc":
            transport = Besides(transport)  # type: ignore[arg-type]

        async def deliver(event: Any) -> None:
            made.got.append(event)
            made.news.set()
            if isinstance(event, Audio) and made.plays_at_once:
                conversation.heard(event.item, 3_600_000)

        def publish(event: str, fields: Any, *, once: bool = False) -> None:
            made.published.append((event, dict(fields)))
            made.news.set()

        session = await runtime.open_session(way.mode, user="ada", publish=publish)
        conversation = Conversation(
            runtime, session, transport, deliver, instructions=INSTRUCTIONS, dead_air=dead_air
        )
        made = Talk(conversation, runtime, way.mode, log)
        await conversation.open()
        running = asyncio.create_task(conversation.run())
        try:
            async with asyncio.timeout(patience):
                yield made
        finally:
            await conversation.close()
            await running
            await transport.close()
            await runtime.close()

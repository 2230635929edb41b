"""A voice connection with the real engines, a dialogue that follows a plan, and speech for it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import numpy as np
from jackfield.contract.tool import ToolCall
from jackfield.transport.events import Event, TextDelta, ToolCalls
from jackfield.transport.protocol import ToolResult, VoiceSettings
from jackfield_local.connection import AnswerPart
from jackfield_local.voice.connection import VoiceConnection
from jackfield_local.voice.engines import Samples, SpeechEngines, load_engines
from jackfield_local.voice.speech_input import Resampler

BYTES_PER_MS = 48

_E = TypeVar("_E")


@cache
def speech(text: str) -> bytes:
    """Return a sentence as speech."""
    return load_engines().synthesise(text)


def silence(ms: int) -> bytes:
    """Return so many milliseconds of silence."""
    return bytes(BYTES_PER_MS * ms)


def noise(ms: int, loudness: float, seed: int = 1) -> bytes:
    """Return so many milliseconds of noise."""
    made = np.random.default_rng(seed).normal(0, loudness, 24 * ms)
    return made.clip(-32768, 32767).astype("<i2").tobytes()


def mixed(one: bytes, other: bytes) -> bytes:
    """Two sounds at once, as long as the first."""
    first = np.frombuffer(one, "<i2").astype(np.int32)
    second = np.resize(np.frombuffer(other, "<i2"), len(first))
    return (first + second).clip(-32768, 32767).astype("<i2").tobytes()


def hearable(pcm: bytes) -> Samples:
    """A sound as engines hear it."""
    return Resampler().feed(pcm + silence(10))


def bare(text: str) -> str:
    """A text without the punctuation that a recogniser guesses."""
    return re.sub(r"[^\w ]", "", text).lower()


Plan = Callable[[str], AsyncIterator[AnswerPart]]


@dataclass
class Dialogue:
    """Answers every message as the plan says, and remembers what it was told."""

    plan: Plan
    told: list[tuple[str, Any]] = field(default_factory=list)

    def answer(self, text: str) -> AsyncIterator[AnswerPart]:
        self.told.append(("user", text))
        return self.plan(text)

    def continue_with(self, results: Sequence[ToolResult]) -> AsyncIterator[AnswerPart]:
        self.told.append(("results", [each.envelope for each in results]))
        return self.plan("results")

    def submit_form(self, tool_id: str, values: Mapping[str, Any]) -> AsyncIterator[AnswerPart]:
        raise AssertionError(f"a form of {tool_id} in a conversation by voice")

    def add_context(self, text: str) -> None:
        self.told.append(("learned", text))

    def respond(self) -> AsyncIterator[AnswerPart]:
        self.told.append(("respond", ""))
        return self.plan("respond")

    def interrupted(self, *, heard: bool) -> None:
        self.told.append(("interrupted", heard))

    def of(self, kind: str) -> list[Any]:
        """Return everything of a kind that it was told."""
        return [what for each, what in self.told if each == kind]

    @property
    def asked(self) -> list[str]:
        """What the user said, as bare words."""
        return [bare(text) for text in self.of("user")]


def saying(*texts: str) -> Plan:
    """Says these texts, one for each message, the last one over and over, word by word."""
    left = list(texts)

    async def plan(_: str) -> AsyncIterator[AnswerPart]:
        text = left.pop(0) if len(left) > 1 else left[0]
        for word in text.split(" "):
            yield TextDelta(word + " ")

    return plan


def call(call_id: str = "call-1") -> ToolCalls:
    """A message that is one call."""
    return ToolCalls((ToolCall("look_up", b"{}", call_id),))


@dataclass
class Line:
    """An open connection whose events are read by a task of its own."""

    connection: VoiceConnection
    dialogue: Dialogue
    events: list[Event] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> None:
        async for event in self.connection.events():
            self.events.append(event)
            self._news.set()

    def of(self, kind: type[_E]) -> list[_E]:
        """Return every event of a type so far."""
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, done: Callable[[], Any]) -> None:
        """Read until something holds."""
        while not done():
            self._news.clear()
            await self._news.wait()

    async def next(self, kind: type[_E], number: int = 1) -> _E:
        """Wait for the event of a type with this number."""
        await self.until(lambda: len(self.of(kind)) >= number)
        return self.of(kind)[number - 1]

    async def listened(self) -> None:
        """Wait until the connection has processed all audio and reported its words."""
        heard = self.connection._input
        await heard._audio.join()
        while heard.busy:  # noqa: ASYNC110 - only tests wait for it
            await asyncio.sleep(0.001)

    async def hear(self, pcm: bytes) -> None:
        """The user speaks, in frames as a browser sends them."""
        for place in range(0, len(pcm), 960):
            await self.connection.send_audio(pcm[place : place + 960])


@asynccontextmanager
async def line(
    plan: Plan,
    voice: VoiceSettings | None = None,
    having: SpeechEngines | None = None,
    *,
    reading: bool = True,
    filler_seconds: float = 60.0,
) -> AsyncIterator[Line]:
    """A connection to a dialogue with this plan; its events are read at once, or else after its end."""
    dialogue = Dialogue(plan)
    voice = voice or VoiceSettings()
    connection = VoiceConnection(dialogue, having or load_engines(), voice, filler_seconds=filler_seconds)
    made = Line(connection, dialogue)
    reader = asyncio.create_task(made.read()) if reading else None
    try:
        yield made
    finally:
        await connection.close()
        await (reader or made.read())


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run an asynchronous test with a time limit."""

    async def bounded() -> None:
        async with asyncio.timeout(90):
            await test()

    def run() -> None:
        asyncio.run(bounded())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run

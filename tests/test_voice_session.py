"""A complete voice session without an API key: speech over a WebSocket, a tool call, a spoken answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from jackfield.settings import Settings
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_client import connect
from jackfield_client.messages import (
    AudioChunk,
    ChatMessage,
    Interrupted,
    Message,
    SpeechStarted,
    ToolComplete,
    ToolStart,
    TurnComplete,
)
from jackfield_client.session import ClientSession
from jackfield_host.settings import HostSettings
from jackfield_host.uvicorn_server import serve_embedded
from jackfield_local.voice.engines import load_engines, missing_packages

pytestmark = pytest.mark.skipif(bool(missing_packages()), reason="the extra `voice` is not installed")

TOOLS = ("jackfield-tool-*", "jackfield-policies", "jackfield-transport-local")
FRAME_MS, BYTES_PER_MS = 20, 48
PATIENCE = 180

_M = TypeVar("_M", bound=Message)


def spoken(words: str) -> bytes:
    """Synthesise speech."""
    return load_engines().synthesise(words)


class Caller:
    """Speaks into a session in real time, and plays received audio at once."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self.got: list[Message] = []
        self._news = asyncio.Event()
        self._saying = asyncio.Queue[bytes]()
        self.heard_ms: dict[str, int] = {}
        self.listens = True

    async def microphone(self) -> None:
        """Send endless frames: speech if there is any, else silence."""
        while True:
            said = b"" if self._saying.empty() else self._saying.get_nowait()
            size = FRAME_MS * BYTES_PER_MS
            for start in range(0, max(len(said), 1), size):
                await self._session.send_audio(said[start : start + size].ljust(size, b"\0"))
                await asyncio.sleep(FRAME_MS / 1000)

    async def loudspeaker(self) -> None:
        """Receive everything, and report speech as played."""
        async for message in self._session:
            self.got.append(message)
            if isinstance(message, AudioChunk):
                item = message.item
                self.heard_ms[item] = self.heard_ms.get(item, 0) + len(message.pcm) // BYTES_PER_MS
                if self.listens:
                    await self._session.report_playback(item, self.heard_ms[item])
            self._news.set()

    def says(self, words: str) -> None:
        self._saying.put_nowait(spoken(words))

    async def gets(self, kind: type[_M], fits: Callable[[_M], bool] = lambda _: True, count: int = 1) -> _M:
        """Wait for the matching message of a type, once there are this many."""
        while len(found := [each for each in self.got if isinstance(each, kind) and fits(each)]) < count:
            self._news.clear()
            await self._news.wait()
        return found[count - 1]


@asynccontextmanager
async def calling(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Caller]:
    monkeypatch.chdir(folder)
    settings = Settings(allow=TOOLS, store="memory", provider="local")
    built = build(settings, import_handlers=False)
    assert built.snapshot, built.findings
    write_snapshot(built.snapshot, settings.registry)
    async with (
        serve_embedded(settings, HostSettings.load({}, port=0)) as url,
        connect(url, mode="voice", time_zone="Europe/Berlin") as session,
    ):
        caller = Caller(session)
        tasks = [asyncio.create_task(caller.microphone()), asyncio.create_task(caller.loudspeaker())]
        try:
            async with asyncio.timeout(PATIENCE):
                yield caller
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def on_a_loop(act: Callable[[], Awaitable[Any]]) -> None:
    asyncio.run(act())  # type: ignore[arg-type]


def test_a_spoken_question_gets_the_right_call_and_a_spoken_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act() -> None:
        async with calling(tmp_path, monkeypatch) as caller:
            caller.says("What time is it in Tokyo?")
            began = await caller.gets(ToolStart)
            assert began.tool == "format_datetime"
            assert "Asia/Tokyo" in began.arguments
            done = await caller.gets(ToolComplete)
            answer = await caller.gets(ChatMessage, lambda each: each.speaker == "assistant")
            await caller.gets(TurnComplete)
            asked = await caller.gets(ChatMessage, lambda each: each.speaker == "user")
            assert "tokyo" in asked.text.lower()
            assert done.data["timezone"] == "Asia/Tokyo"
            assert answer.text
            assert sum(caller.heard_ms.values()) > 500

    on_a_loop(act)


def test_a_barge_in_stops_the_spoken_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        async with calling(tmp_path, monkeypatch) as caller:
            caller.listens = False
            caller.says("What can you do for me?")
            first = await caller.gets(AudioChunk)
            # Whatever was sent, only a second of it has been played when the user speaks up.
            await caller._session.report_playback(first.item, 1000)
            started = len([each for each in caller.got if isinstance(each, SpeechStarted)])
            caller.says("Stop please. What time is it in Tokyo?")
            await caller.gets(SpeechStarted, count=started + 1)
            cut = await caller.gets(ChatMessage, lambda each: bool(each.interrupted))
            whole = await caller.gets(ToolStart)
            assert whole.tool == "format_datetime"
            assert len(cut.text.split()) < 12
            assert [each for each in caller.got if isinstance(each, Interrupted | SpeechStarted)]

    on_a_loop(act)

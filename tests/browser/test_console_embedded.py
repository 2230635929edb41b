"""The console with the local agent, which needs no key: text and voice."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import wave
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jackfield.settings import Settings
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_local.voice.engines import load_engines, missing_packages
from jackfield_scripted.openai import OpenAIServer
from playwright.async_api import expect

from browser.harness import ALLOW, TIMEOUT_MS, Console, Deployment, open_console, run_with_chromium
from browser.test_console_voice import CallTraffic, start_call

EVERYTHING = (*ALLOW, "jackfield-transport-local", "jackfield-tool-format-datetime")
RATE = 48_000


@dataclass
class Embedded(Deployment):
    """A deployment with the local agent."""

    def configure(self, server: OpenAIServer, host: str = "", provider: str = "", more: str = "") -> None:
        """Write the settings of the local provider."""
        super().configure(server, host, provider, more)
        settings = (
            f'provider = "local"\nallow = {json.dumps(EVERYTHING)}\n'
            f'[observers.audit]\npath = "audit.jsonl"\n[host]\nport = {self.port}\n'
        )
        (self.folder / "console.toml").write_text(settings)


@pytest.fixture
def embedded(console_site: Path, tmp_path: Path) -> Embedded:
    """A folder with a registry that contains the local agent."""
    shutil.copytree(console_site / "knowledge", tmp_path / "knowledge")
    allow = tuple(each for each in EVERYTHING if each != "con-*")
    built = build(Settings(allow=allow), import_handlers=False)
    assert built.snapshot, built.findings
    write_snapshot(built.snapshot, tmp_path / "tool_registry.json")
    return Embedded(tmp_path, console_site)


def browse(deployment: Deployment, steps: Callable[[Console], Awaitable[None]], **options: Any) -> None:
    """Run the steps in a new browser window."""

    async def run() -> None:
        async with asyncio.timeout(300), open_console(deployment, **options) as console:
            await console.open()
            await expect(console.page.get_by_test_id("state")).to_have_text("ready")
            await steps(console)

    run_with_chromium(run())


def test_a_question_is_answered_from_the_knowledge_base_with_its_source(embedded: Embedded) -> None:
    async def steps(console: Console) -> None:
        page = console.page
        await expect(page.get_by_text("local · text · registry 1.0.")).to_be_visible()
        await console.send("How do I book the photo room?")
        await expect(page.locator(".tool").first).to_contain_text("kb_search")
        said = page.locator(".message.assistant").last
        await expect(said).to_contain_text("Source: How to book the photo room")
        title = "How to book the photo room"
        await said.get_by_role("button", name=title).first.click()
        record = page.get_by_role("region", name="Source")
        await expect(record.get_by_role("heading", name=title).first).to_be_visible()
        await expect(record).to_contain_text("process:book-photo-room")

    browse(embedded, steps)


@pytest.mark.skipif(bool(missing_packages()), reason="the extra `voice` is not installed")
def test_a_spoken_question_is_answered_in_speech_and_playback_is_reported(embedded: Embedded) -> None:
    async def steps(console: Console) -> None:
        traffic = CallTraffic(console)
        await start_call(console)
        page = console.page
        # The question is repeated: a busy machine may have recorded only half of it at first.
        asked = page.locator(".message.user", has_text="Tokyo").first
        await expect(asked).to_be_visible(timeout=2 * TIMEOUT_MS)
        await expect(page.locator(".tool", has_text="format_datetime").first).to_be_visible()
        answer = page.locator(".message.assistant", has_text=re.compile(r"\d:\d\d"))
        await expect(answer.first).to_be_visible()
        # The call listens again once the answer is complete.
        await expect(page.get_by_role("group", name="Call").get_by_role("status")).to_have_text("listening")
        await traffic.wait_played(1000)
        assert traffic.audio_bytes_received > 0
        for positions in traffic.positions_by_item.values():
            assert positions == sorted(positions)
        assert max(map(len, traffic.positions_by_item.values())) > 3

    microphone = [
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-audio-capture={_question(embedded.folder)}",
    ]
    browse(embedded, steps, args=microphone)


def _question(folder: Path) -> Path:
    """Record a question about the time in Tokyo, repeated with pauses, as microphone input.

    The recording begins when the browser opens the microphone, which is before the call listens; so there is
    silence first.
    """
    import numpy as np

    said = np.frombuffer(load_engines().synthesise("What time is it in Tokyo?"), np.int16)
    doubled = np.repeat(said, RATE // 24_000)
    path = folder / "question.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        silence = np.zeros(5 * RATE, np.int16)
        file.writeframes(np.concatenate((silence, doubled, silence)).tobytes())
    return path

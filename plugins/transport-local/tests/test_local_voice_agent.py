"""The whole agent by voice: a spoken request becomes the right call, and its result a spoken answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from jackfield.transport.events import Audio, SpeechStarted, ToolCalls, Transcript, TurnComplete
from jackfield.transport.protocol import ToolResult
from jackfield_local.agent.agent import LocalAgent
from jackfield_local.settings import LocalSettings
from jackfield_local.voice.connection import VoiceConnection
from jackfield_local.voice.engines import load_engines
from local_session import opening
from local_voice_line import Line, bare, hearable, on_a_loop, silence, speech

FOUND = {
    "ok": True,
    "data": {
        "results": [
            {
                "id": "kb-guide-7",
                "type": "process",
                "title": "Welcome week",
                "snippet": "New colleagues meet their mentor on the first morning.",
                "score": 0.9,
                "source_type": "doc",
                "last_updated": "2026-05-04T09:00:00Z",
                "url": "https://studio.example.com/welcome",
                "metadata": {},
            }
        ],
        "total": 1,
    },
}


@asynccontextmanager
async def _agent() -> AsyncIterator[Line]:
    agent = LocalAgent(LocalSettings())
    begun = opening("voice")
    dialogue = await agent.open(begun)
    connection = await VoiceConnection.open(dialogue, begun)
    talk = Line(connection, dialogue)  # type: ignore[arg-type]  # what it was told is its own affair
    reading = asyncio.create_task(talk.read())
    try:
        yield talk
    finally:
        await connection.close()
        await reading
        await agent.close()


async def _asks(talk: Line, words: str, calls: int = 1) -> tuple[str, dict[str, Any], list[str]]:
    """Say something, and wait for the calls of one tool that it leads to."""
    await talk.hear(silence(200) + speech(words) + silence(700))
    made = (await talk.next(ToolCalls, calls)).calls
    arguments: dict[str, Any] = orjson.loads(made[0].arguments)
    return made[0].tool_id, arguments, [each.call_id or "" for each in made]


@on_a_loop
async def test_a_spoken_search_is_called_and_its_result_spoken() -> None:
    async with _agent() as talk:
        tool, arguments, call_ids = await _asks(talk, "Search for the onboarding process.")
        assert tool == "kb_search"
        assert "onboarding" in arguments["query"].lower()
        begun = len(talk.of(Audio))
        await talk.connection.send_results([ToolResult(each, tool, orjson.dumps(FOUND)) for each in call_ids])
        await talk.next(TurnComplete)
        answer = b"".join(each.pcm for each in talk.of(Audio)[begun:])
    heard = bare(load_engines().transcribe(hearable(answer)))
    assert "welcome week" in heard
    assert "https" not in heard
    assert "Welcome week" in talk.of(Transcript)[-1].text


@on_a_loop
async def test_the_request_after_a_barge_in_is_answered() -> None:
    async with _agent() as talk:
        tool, _, call_ids = await _asks(talk, "Search for the onboarding process.")
        await talk.connection.send_results([ToolResult(each, tool, orjson.dumps(FOUND)) for each in call_ids])
        await talk.next(TurnComplete)
        await talk.hear(silence(200) + speech("Please end this call."))
        await talk.next(SpeechStarted, 2)
        await talk.connection.truncate(talk.of(Audio)[-1].item, 900)
        await talk.hear(silence(700))
        (call,) = (await talk.next(ToolCalls, 2)).calls
    assert call.tool_id == "end_voice_session"


@on_a_loop
async def test_thanks_call_no_tool() -> None:
    async with _agent() as talk:
        await talk.hear(silence(200) + speech("Hello, how are you?") + silence(700))
        await talk.next(TurnComplete)
    assert talk.of(ToolCalls) == []
    assert talk.of(Audio)

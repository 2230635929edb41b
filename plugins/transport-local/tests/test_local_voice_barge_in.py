"""Barge-in: speech stops at once, and the dialogue learns whether it was heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from jackfield.transport.events import (
    Audio,
    Event,
    Interrupted,
    SpeechStarted,
    TextDelta,
    ToolCalls,
    TurnComplete,
)
from jackfield.transport.protocol import ToolResult
from jackfield_local.connection import AnswerPart
from local_voice_line import (
    BYTES_PER_MS,
    Line,
    bare,
    call,
    line,
    on_a_loop,
    saying,
    silence,
    speech,
)

SENTENCES = (
    "Once upon a time there was an old lighthouse by the sea.",
    "Its keeper was called Martha.",
    "Every evening she climbed the stairs and lit the lamp.",
)
STORY = " ".join(SENTENCES)
STOP = "Stop, please."


async def _endless(_: str) -> AsyncIterator[AnswerPart]:
    yield TextDelta(STORY + " ")
    await asyncio.Event().wait()


def _sound(events: list[Event]) -> bytes:
    return b"".join(each.pcm for each in events if isinstance(each, Audio))


async def _break_in(talk: Line) -> None:
    await talk.hear(silence(200) + speech(STOP))
    await talk.next(SpeechStarted)


@on_a_loop
async def test_speech_stops_what_is_being_said() -> None:
    async with line(_endless) as talk:
        await talk.connection.send_text("Tell me a story.")
        await talk.next(Audio)
        await _break_in(talk)
        await talk.next(Interrupted)
        place = talk.events.index(SpeechStarted())
        assert isinstance(talk.events[place + 1], Interrupted)
        await talk.hear(silence(700))
        await talk.until(lambda: len(talk.dialogue.asked) == 2)
        later = talk.events[place:]
    assert not [each for each in later if isinstance(each, TurnComplete)]
    assert talk.dialogue.asked[1] == bare(STOP)


@pytest.mark.parametrize(("played_ms", "heard"), [(0, False), (100, False), (900, True), (6000, True)])
def test_the_dialogue_learns_whether_its_answer_was_heard(played_ms: int, heard: bool) -> None:
    @on_a_loop
    async def test() -> None:
        async with line(_endless) as talk:
            await talk.connection.send_text("Tell me a story.")
            await talk.until(lambda: len(_sound(talk.events)) >= 6500 * BYTES_PER_MS)
            await _break_in(talk)
            await talk.connection.truncate("turn-1", played_ms)
            assert talk.dialogue.of("interrupted") == [heard]

    test()


@on_a_loop
async def test_a_complete_answer_can_be_truncated_while_it_plays() -> None:
    async with line(saying(STORY)) as talk:
        await talk.connection.send_text("Tell me a story.")
        await talk.next(TurnComplete)
        await _break_in(talk)
        assert talk.of(Interrupted) == []
        await talk.connection.truncate("turn-1", 1_000)
        assert talk.dialogue.of("interrupted") == [True]
        await talk.connection.truncate("turn-1", 2_000)
        assert len(talk.dialogue.of("interrupted")) == 1


@on_a_loop
async def test_an_answer_played_to_the_end_is_not_truncated() -> None:
    async with line(saying(STORY)) as talk:
        await talk.connection.send_text("Tell me a story.")
        await talk.next(TurnComplete)
        await talk.connection.truncate("turn-1", len(_sound(talk.events)) // BYTES_PER_MS)
        await talk.connection.truncate("turn-1", 10_000_000)
        await talk.connection.truncate("turn-of-another-day", 0)
        assert talk.dialogue.of("interrupted") == []


@on_a_loop
async def test_without_a_truncation_all_sent_audio_counts_as_heard() -> None:
    spoke = asyncio.Event()

    async def plan(_: str) -> AsyncIterator[AnswerPart]:
        yield TextDelta(STORY + " ")
        spoke.set()
        await asyncio.Event().wait()

    async with line(plan) as talk:
        await talk.connection.send_text("Tell me a story.")
        await spoke.wait()
        size = sum(len(speech(each)) for each in SENTENCES)
        await talk.until(lambda: len(_sound(talk.events)) == size)
        await talk.connection.interrupt()
        await talk.connection.send_text("And then?")
        await talk.until(lambda: len(talk.dialogue.asked) == 2)
    assert talk.dialogue.told[1] == ("interrupted", True)


@on_a_loop
async def test_unread_speech_is_withdrawn() -> None:
    spoke = asyncio.Event()

    async def plan(_: str) -> AsyncIterator[AnswerPart]:
        yield TextDelta(STORY + " ")
        spoke.set()
        await asyncio.Event().wait()

    async with line(plan, reading=False) as talk:
        await talk.connection.send_text("Tell me a story.")
        await spoke.wait()
        await talk.connection.interrupt()
        spoke.clear()
        await talk.connection.send_text("Go on.")
        await spoke.wait()
        await talk.connection.interrupt()
    assert talk.events[:2] == [Interrupted(), Interrupted()]
    assert talk.dialogue.told[1] == ("interrupted", False)


@on_a_loop
async def test_thinking_is_interrupted_too() -> None:
    thinks = asyncio.Event()

    async def plan(text: str) -> AsyncIterator[AnswerPart]:
        if text == "Think about it.":
            thinks.set()
            await asyncio.Event().wait()
        yield TextDelta("Yes.")

    async with line(plan) as talk:
        await talk.connection.send_text("Think about it.")
        await thinks.wait()
        await _break_in(talk)
        await talk.next(Interrupted)
        await talk.hear(silence(700))
        await talk.next(TurnComplete)
    assert talk.dialogue.of("interrupted") == [False]


@on_a_loop
async def test_words_before_a_call_are_not_an_interrupted_answer() -> None:
    async def plan(asked: str) -> AsyncIterator[AnswerPart]:
        if asked == "Where is it?":
            yield TextDelta("Let me look that up for you. ")
            yield call()
        else:
            yield TextDelta("Found.")

    async with line(plan) as talk:
        await talk.connection.send_text("Where is it?")
        await talk.next(ToolCalls)
        await _break_in(talk)
        await talk.connection.truncate("turn-1", 100)
        assert talk.dialogue.of("interrupted") == []
        await talk.connection.send_results([ToolResult("call-1", "look_up", b"{}")], respond=False)
        await talk.hear(silence(700))
        await talk.next(TurnComplete)
    assert [kind for kind, _ in talk.dialogue.told] == ["user", "results", "interrupted", "user"]

"""Breaking in on what is being said: it stops at once, and the mind learns which words were heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from jackfield.transport.events import (
    Audio,
    Event,
    Interrupted,
    SpeechStarted,
    ToolCalls,
    TurnComplete,
)
from jackfield.transport.protocol import ToolResult
from jackfield_local.mind import Thought, Words
from jackfield_local.models.speech import engines
from local_voice_line import (
    BYTES_PER_MS,
    Line,
    bare,
    call,
    hearable,
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


async def _endless(_: str) -> AsyncIterator[Thought]:
    yield Words(STORY + " ")
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


@pytest.mark.parametrize("ms", [0, 900, 2500, 4300, 6000])
def test_the_mind_learns_the_words_that_were_heard(ms: int) -> None:
    @on_a_loop
    async def test() -> None:
        async with line(_endless) as talk:
            await talk.connection.send_text("Tell me a story.")
            await talk.until(lambda: len(_sound(talk.events)) >= 6500 * BYTES_PER_MS)
            await _break_in(talk)
            await talk.connection.truncate("turn-1", ms)
            (heard,) = talk.dialogue.of("interrupted")
            pcm = _sound(talk.events)
        assert STORY.startswith(heard)
        # The words that a listener makes out of just so much of the sound are the judge.
        judged = bare(engines().recogniser.write_down(hearable(pcm[: ms * BYTES_PER_MS]))) if ms else ""
        told = bare(heard)
        assert judged.startswith(told)
        assert len(judged.split()) - len(told.split()) <= 1  # A word of which half was heard was not heard.

    test()


@on_a_loop
async def test_what_was_said_to_the_end_can_still_be_cut_while_it_plays() -> None:
    async with line(saying(STORY)) as talk:
        await talk.connection.send_text("Tell me a story.")
        await talk.next(TurnComplete)
        await _break_in(talk)
        assert talk.of(Interrupted) == []
        await talk.connection.truncate("turn-1", 1_000)
        assert talk.dialogue.of("interrupted") == ["Once upon a"]
        await talk.connection.truncate("turn-1", 2_000)
        assert len(talk.dialogue.of("interrupted")) == 1


@on_a_loop
async def test_what_was_heard_to_the_end_was_not_cut() -> None:
    async with line(saying(STORY)) as talk:
        await talk.connection.send_text("Tell me a story.")
        await talk.next(TurnComplete)
        await talk.connection.truncate("turn-1", len(_sound(talk.events)) // BYTES_PER_MS)
        await talk.connection.truncate("turn-1", 10_000_000)
        await talk.connection.truncate("turn-of-another-day", 0)
        assert talk.dialogue.of("interrupted") == []


@on_a_loop
async def test_without_a_word_about_it_all_that_went_out_was_heard() -> None:
    spoke = asyncio.Event()

    async def plan(_: str) -> AsyncIterator[Thought]:
        yield Words(STORY + " ")
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
    assert talk.dialogue.told[1] == ("interrupted", STORY)


@on_a_loop
async def test_speech_that_nobody_took_is_withdrawn() -> None:
    spoke = asyncio.Event()

    async def plan(_: str) -> AsyncIterator[Thought]:
        yield Words(STORY + " ")
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
    assert talk.dialogue.told[1] == ("interrupted", "")


@on_a_loop
async def test_thinking_is_interrupted_too() -> None:
    thinks = asyncio.Event()

    async def plan(text: str) -> AsyncIterator[Thought]:
        if text == "Think about it.":
            thinks.set()
            await asyncio.Event().wait()
        yield Words("Yes.")

    async with line(plan) as talk:
        await talk.connection.send_text("Think about it.")
        await thinks.wait()
        await _break_in(talk)
        await talk.next(Interrupted)
        await talk.hear(silence(700))
        await talk.next(TurnComplete)
    assert talk.dialogue.of("interrupted") == [""]


@on_a_loop
async def test_the_words_before_a_call_are_no_interrupted_answer() -> None:
    async def plan(asked: str) -> AsyncIterator[Thought]:
        if asked == "Where is it?":
            yield Words("Let me look that up for you. ")
            yield call()
        else:
            yield Words("Found.")

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

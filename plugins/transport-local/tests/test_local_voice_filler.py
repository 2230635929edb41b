"""A filler while the local agent or a tool is slow, and turns that end without a word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from jackfield.transport.events import (
    Audio,
    Event,
    Interrupted,
    ProviderError,
    SpeechStarted,
    TextDelta,
    ToolCalls,
    Transcript,
    TurnComplete,
)
from jackfield.transport.protocol import ToolResult
from jackfield_local.connection import AnswerPart
from jackfield_local.voice.engines import load_engines
from local_voice_line import Line, call, hearable, line, on_a_loop, silence, speech

QUESTION = "What is on my calendar tomorrow afternoon?"


SOON = 0.05


def fillers(talk: Line) -> list[str]:
    """The fillers that were sent, in order."""
    return list(dict.fromkeys(each.item for each in talk.of(Audio) if each.filler))


def heard(events: list[Event], *, filler: bool) -> str:
    """What a listener makes out of the fillers, or of the rest."""
    pcm = b"".join(each.pcm for each in events if isinstance(each, Audio) and each.filler is filler)
    return load_engines().transcribe(hearable(pcm)).lower()


class Slow:
    """A dialogue that answers on a signal, with these words."""

    def __init__(self, text: str = "Two meetings.", calls: int = 0) -> None:
        self.go = asyncio.Event()
        self._text = text
        self._calls = calls

    async def plan(self, _: str) -> AsyncIterator[AnswerPart]:
        await self.go.wait()
        if self._calls:
            self._calls -= 1
            self.go.clear()
            yield call()
        elif self._text:
            yield TextDelta(self._text)


async def asks(talk: Line) -> None:
    await talk.hear(silence(200) + speech(QUESTION) + silence(700))


@on_a_loop
async def test_a_slow_agent_says_one_filler_and_then_the_answer() -> None:
    slow = Slow()
    async with line(slow.plan, filler_seconds=SOON) as talk:
        await asks(talk)
        await talk.until(lambda: fillers(talk))
        assert not talk.of(TurnComplete)
        await asyncio.sleep(0.2)
        slow.go.set()
        await talk.next(TurnComplete)
        await asks(talk)
        await talk.next(TurnComplete, 2)
    assert fillers(talk) == ["filler-1"]  # The second answer was there in time.
    sound = [each.filler for each in talk.of(Audio)]
    assert sound == sorted(sound, reverse=True)
    assert "moment" in heard(talk.events, filler=True)
    assert "two meetings" in heard(talk.events, filler=False)
    said = [each.text for each in talk.of(Transcript) if each.speaker == "assistant" and each.final]
    assert said == ["Two meetings."] * 2
    assert talk.of(Interrupted) == []


@on_a_loop
async def test_each_turn_of_the_user_has_its_own_filler_and_no_more() -> None:
    slow = Slow(calls=1)
    async with line(slow.plan, filler_seconds=SOON) as talk:
        await asks(talk)
        await talk.until(lambda: fillers(talk))
        slow.go.set()
        await talk.next(ToolCalls)
        await talk.connection.speak("Still looking.")
        await talk.connection.send_results([ToolResult("call-1", "look_up", b"{}")])
        await asyncio.sleep(0.2)
        assert fillers(talk) == ["filler-1"]
        slow.go.set()
        await talk.next(TurnComplete)
        slow.go.clear()
        await talk.connection.send_text("And the day after?")
        await talk.until(lambda: len(fillers(talk)) == 2)
        slow.go.set()
        await talk.next(TurnComplete, 2)


@on_a_loop
async def test_the_session_can_request_a_filler_for_a_slow_tool() -> None:
    slow = Slow(calls=1)
    slow.go.set()
    async with line(slow.plan) as talk:
        await talk.connection.send_text("Where is it?")
        await talk.next(ToolCalls)
        await talk.connection.speak("Still looking.")
        await talk.until(lambda: fillers(talk))
        await talk.connection.truncate("filler-1", 100)
        slow.go.set()
        await talk.connection.send_results([ToolResult("call-1", "look_up", b"{}")])
        await talk.next(TurnComplete)
    assert "looking" in heard(talk.events, filler=True)
    assert [kind for kind, _ in talk.dialogue.told] == ["user", "results"]
    assert [each.text for each in talk.of(Transcript) if each.final] == ["Two meetings."]


@on_a_loop
async def test_there_is_no_filler_unless_the_user_waits() -> None:
    slow = Slow()
    async with line(slow.plan, filler_seconds=SOON) as talk:
        await talk.connection.speak("One moment.")
        await talk.connection.send_context("The photo was uploaded.", respond=True)
        await asyncio.sleep(0.2)
        slow.go.set()
        await talk.next(TurnComplete)
    assert fillers(talk) == []


@on_a_loop
async def test_speech_cuts_a_filler_off_like_any_other() -> None:
    slow = Slow()
    async with line(slow.plan, filler_seconds=SOON, reading=False) as talk:
        await talk.connection.send_text("Think about it.")
        await asyncio.sleep(0.4)
        await talk.hear(silence(200) + speech("Never slow."))
        await asyncio.sleep(0.4)
    # The filler was not read yet, so it is withdrawn.
    assert [type(each) for each in talk.events[:2]] == [SpeechStarted, Interrupted]
    assert fillers(talk) == []


@on_a_loop
async def test_a_filler_that_is_due_is_not_said_when_the_user_speaks_first() -> None:
    slow = Slow(calls=1)
    slow.go.set()
    async with line(slow.plan) as talk:
        await talk.connection.send_text("Where is it?")
        await talk.next(ToolCalls)
        await talk.hear(silence(200) + speech("Never slow the lamp."))
        await talk.next(SpeechStarted)
        await talk.connection.speak("Still looking.")
        await asyncio.sleep(0.2)
    assert fillers(talk) == []


@on_a_loop
async def test_an_answer_without_words_is_a_whole_turn() -> None:
    slow = Slow(text="")
    slow.go.set()
    async with line(slow.plan, filler_seconds=SOON) as talk:
        await asks(talk)
        await talk.next(TurnComplete)
        await asyncio.sleep(0.2)
        await asks(talk)
        await talk.next(TurnComplete, 2)
    assert not any(isinstance(each, Audio | ProviderError | Interrupted) for each in talk.events)
    assert {each.speaker for each in talk.of(Transcript)} == {"user"}
    assert len(talk.dialogue.asked) == 2

"""Spoken conversations with the real engines: heard, written down, answered aloud."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from jackfield.transport.events import (
    Audio,
    Closed,
    Event,
    Interrupted,
    ProviderError,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolCalls,
    Transcript,
    TurnComplete,
)
from jackfield.transport.protocol import ConnectionConfig, ToolResult, VoiceSettings
from jackfield_local.connection import AnswerPart
from jackfield_local.voice.connection import VoiceConnection
from jackfield_local.voice.engines import Samples, SpeechEngines, load_engines
from local_voice_line import (
    Dialogue,
    bare,
    call,
    hearable,
    line,
    mixed,
    noise,
    on_a_loop,
    saying,
    silence,
    speech,
)

QUESTION = "What is on my calendar tomorrow afternoon?"
ANSWER = "There are two meetings. The first one begins at half past two."


def _kinds(events: list[Event]) -> list[str]:
    """The order of events, with runs of the same kind as one."""
    kinds: list[str] = []
    for event in events:
        kind = type(event).__name__
        if isinstance(event, Transcript):
            kind = f"{event.speaker} {'whole' if event.final else 'piece'}"
        if not kinds or kinds[-1] != kind:
            kinds.append(kind)
    return kinds


@on_a_loop
async def test_a_spoken_question_is_answered_aloud() -> None:
    async with line(saying(ANSWER)) as talk:
        await talk.hear(silence(300) + speech(QUESTION) + silence(700))
        await talk.next(TurnComplete)
    assert talk.dialogue.asked == [bare(QUESTION)]
    order = [kind for kind in _kinds(talk.events) if kind != "user piece"]
    assert order == [
        *("SpeechStarted", "SpeechStopped", "user whole"),
        *("assistant piece", "Audio", "assistant piece", "Audio"),
        *("assistant whole", "TurnComplete", "Closed"),
    ]
    pcm = b"".join(each.pcm for each in talk.of(Audio))
    assert load_engines().transcribe(hearable(pcm)).startswith("There are two meetings.")
    assert all(len(each.pcm) <= 100 * 48 for each in talk.of(Audio))
    assert {each.item for each in talk.of(Audio)} == {"turn-1"}


@on_a_loop
async def test_silence_and_noise_start_no_turn() -> None:
    async with line(saying(ANSWER)) as talk:
        await talk.hear(silence(1500))
        for loudness in (100, 1000, 6000):
            await talk.hear(noise(1500, loudness))
        await talk.hear(silence(300) + speech("Hello there.") + silence(700))
        await talk.next(TurnComplete)
    assert len(talk.of(SpeechStarted)) == 1
    assert talk.dialogue.asked == ["hello there"]


@on_a_loop
async def test_speech_is_understood_through_noise() -> None:
    async with line(saying(ANSWER)) as talk:
        said = silence(400) + speech(QUESTION) + silence(900)
        await talk.hear(mixed(said, noise(900, 250)))
        await talk.next(TurnComplete)
    assert talk.dialogue.asked == [bare(QUESTION)]


@on_a_loop
async def test_a_pause_for_breath_does_not_end_the_turn() -> None:
    async with line(saying(ANSWER), VoiceSettings(silence_ms=1500)) as talk:
        await talk.hear(speech("Please find the project") + silence(300))
        await talk.hear(speech("about the old lighthouse.") + silence(1700))
        await talk.next(TurnComplete)
    assert len(talk.of(SpeechStopped)) == 1
    (heard,) = talk.dialogue.asked
    assert "project" in heard
    assert "lighthouse" in heard


@on_a_loop
async def test_a_closed_microphone_ends_the_turn() -> None:
    async with line(saying(ANSWER)) as talk:
        await talk.hear(silence(200) + speech("Hello there."))
        await talk.next(TurnComplete)
    assert talk.dialogue.asked == ["hello there"]


@on_a_loop
async def test_speech_without_words_is_reported_as_no_audio() -> None:
    class Deaf:
        def transcribe(self, samples: Samples) -> str:
            return ""

    having = SpeechEngines(load_engines().detector, Deaf().transcribe, load_engines().synthesise)
    async with line(saying(ANSWER), having=having) as talk:
        await talk.hear(silence(200) + speech("Hello there.") + silence(700))
        assert (await talk.next(ProviderError)).code == "no_audio"
    assert talk.dialogue.told == []


@on_a_loop
async def test_typed_words_are_answered_aloud_too() -> None:
    async with line(saying("**Two** are at https://docs.example.com/plan [kb-17].")) as talk:
        await talk.connection.send_text("How many?")
        await talk.next(TurnComplete)
    pcm = b"".join(each.pcm for each in talk.of(Audio))
    heard = load_engines().transcribe(hearable(pcm)).lower()
    assert "docs" in heard
    assert "example" in heard
    assert not {"https", "star", "slash", "17", "seventeen"} & set(heard.split())
    (whole,) = [each.text for each in talk.of(Transcript) if each.final]
    assert whole.strip() == "**Two** are at https://docs.example.com/plan [kb-17]."


@on_a_loop
async def test_calls_are_sent_and_their_results_answered() -> None:
    async def plan(asked: str) -> AsyncIterator[AnswerPart]:
        if asked == "results":
            yield TextDelta("It is in the second drawer.")
        else:
            yield TextDelta("Let me look. ")
            yield call()

    async with line(plan) as talk:
        await talk.connection.send_text("Where is the lamp?")
        await talk.next(ToolCalls)
        assert not talk.of(TurnComplete)
        await talk.connection.send_results([ToolResult("call-1", "look_up", b'{"ok":true}')])
        await talk.next(TurnComplete)
    assert talk.dialogue.of("results") == [[b'{"ok":true}']]
    (whole,) = [each.text for each in talk.of(Transcript) if each.final]
    assert whole == "Let me look. It is in the second drawer."
    assert {each.item for each in talk.of(Audio)} == {"turn-1"}


@on_a_loop
async def test_words_during_a_call_are_answered_with_its_result_known() -> None:
    async def plan(asked: str) -> AsyncIterator[AnswerPart]:
        if asked == "Where is it?":
            yield call()
        else:
            yield TextDelta(f"About {asked}.")

    async with line(plan) as talk:
        await talk.connection.send_text("Where is it?")
        await talk.next(ToolCalls)
        await talk.hear(silence(200) + speech("Never mind.") + silence(700))
        await talk.until(lambda: any(each.final for each in talk.of(Transcript)))
        assert talk.dialogue.asked == ["where is it"]
        await talk.connection.send_results([ToolResult("call-1", "look_up", b"{}")])
        await talk.next(TurnComplete)
    assert [kind for kind, _ in talk.dialogue.told] == ["user", "results", "interrupted", "user"]
    assert talk.dialogue.asked[-1] == "never mind"
    assert len(talk.of(TurnComplete)) == 1


@on_a_loop
async def test_results_that_waited_for_speech_are_spoken_after_a_noise() -> None:
    class Deaf:
        def transcribe(self, samples: Samples) -> str:
            return ""

    async def plan(asked: str) -> AsyncIterator[AnswerPart]:
        yield TextDelta("Here it is.") if asked == "results" else call()

    having = SpeechEngines(load_engines().detector, Deaf().transcribe, load_engines().synthesise)
    async with line(plan, having=having) as talk:
        await talk.connection.send_text("Where is it?")
        await talk.next(ToolCalls)
        await talk.hear(silence(200) + speech("Hm."))
        await talk.next(SpeechStarted)
        await talk.connection.send_results([ToolResult("call-1", "look_up", b"{}")], respond=False)
        await talk.hear(silence(700))
        await talk.next(TurnComplete)
    assert talk.of(ProviderError) == []
    assert [each.text for each in talk.of(Transcript) if each.final] == ["Here it is."]


@on_a_loop
async def test_context_is_answered_together_with_the_users_words() -> None:
    async with line(saying(ANSWER)) as talk:
        await talk.hear(silence(200) + speech(QUESTION))
        await talk.next(SpeechStarted)
        await talk.connection.send_context("The user's photo was uploaded.", respond=True)
        await talk.hear(silence(700))
        await talk.next(TurnComplete)
    assert [kind for kind, _ in talk.dialogue.told] == ["learned", "user"]


@on_a_loop
async def test_a_failing_dialogue_leaves_the_connection_open() -> None:
    async def plan(asked: str) -> AsyncIterator[AnswerPart]:
        if asked == "Fail.":
            raise RuntimeError("a bug")
        yield TextDelta("Fine.")

    async with line(plan) as talk:
        await talk.connection.send_text("Fail.")
        assert (await talk.next(ProviderError)).code == "server_error"
        await talk.connection.send_text("Work.")
        await talk.next(TurnComplete)


@on_a_loop
async def test_a_failing_speech_input_closes_the_connection_with_a_reason() -> None:
    class Broken:
        def __call__(self, frame: bytes) -> float:
            raise RuntimeError("a bug")

    having = SpeechEngines(Broken, load_engines().transcribe, load_engines().synthesise)
    async with line(saying(ANSWER), having=having) as talk:
        await talk.hear(silence(200))
        assert (await talk.next(Closed)).code == "server_error"
        await talk.connection.send_text("Hello?")
    assert isinstance(talk.events[-1], Closed)


@on_a_loop
async def test_an_interrupt_before_the_words_are_known_leaves_them_unanswered() -> None:
    known = threading.Event()

    class Slow:
        def transcribe(self, samples: Samples) -> str:
            known.wait()
            return "Do it."

    having = SpeechEngines(load_engines().detector, Slow().transcribe, load_engines().synthesise)
    async with line(saying(ANSWER), having=having) as talk:
        await talk.hear(silence(200) + speech("Do it.") + silence(700))
        await talk.next(SpeechStopped)
        await talk.connection.interrupt()
        await talk.next(Interrupted)
        await talk.connection.interrupt()
        known.set()
        await talk.connection.send_text("Something else.")
        await talk.next(TurnComplete)
    assert talk.dialogue.asked == ["something else"]
    assert len(talk.of(Interrupted)) == 1


def test_another_language_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    @on_a_loop
    async def test() -> None:
        begun = ConnectionConfig("voice", "", {}, voice=VoiceSettings(language="de-DE"))
        connection = await VoiceConnection.open(Dialogue(saying(ANSWER)), begun)
        await connection.close()

    test()
    assert "supports only English, not de-DE" in caplog.text


@on_a_loop
async def test_a_fast_sender_waits_and_is_released_on_close() -> None:
    going = threading.Event()

    class Slow:
        def __call__(self, frame: bytes) -> float:
            going.wait()
            return 0.0

    having = SpeechEngines(Slow, load_engines().transcribe, load_engines().synthesise)
    async with line(saying(ANSWER), having=having) as talk:
        speaking = asyncio.create_task(talk.connection.send_audio(silence(60_000)))
        await asyncio.wait((speaking,), timeout=0.2)
        assert not speaking.done()
        going.set()
        await speaking
        going.clear()
        speaking = asyncio.create_task(talk.connection.send_audio(silence(60_000)))
        await asyncio.wait((speaking,), timeout=0.2)
        assert not speaking.done()
        await talk.connection.close()
        await speaking
        going.set()


@on_a_loop
async def test_several_sessions_share_the_engines() -> None:
    questions = ["What time is it?", "Who wrote this report?", "Please open the second result."]

    async def one(question: str) -> list[str]:
        async with line(saying(ANSWER)) as talk:
            await talk.hear(silence(200) + speech(question) + silence(700))
            await talk.next(TurnComplete)
            return talk.dialogue.asked

    assert await asyncio.gather(*map(one, questions)) == [[bare(question)] for question in questions]


@on_a_loop
async def test_without_transcripts_there_is_sound_alone() -> None:
    async with line(saying(ANSWER), VoiceSettings(transcribe=False)) as talk:
        await talk.hear(silence(200) + speech(QUESTION) + silence(700))
        await talk.next(TurnComplete)
    assert talk.of(Transcript) == []
    assert talk.of(Audio)
    assert talk.of(Interrupted) == []

"""Voice: speech, interruptions, and playback positions."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from gemini_connections import ScriptedConnection, live, run
from jackfield.transport.events import (
    Audio,
    Interrupted,
    SpeechStarted,
    SpeechStopped,
    Transcript,
    TurnComplete,
)
from jackfield_scripted import ScriptedModel
from jackfield_scripted.audio import tone
from jackfield_scripted.gemini import GeminiOptions, LiveModel


def test_an_interrupted_turn_is_not_completed_again() -> None:
    async def is_cut(model: ScriptedModel) -> None:
        await model.hears()
        await model.speaks("Once upon a time", ms=400)
        await model.is_interrupted()
        await model.hears()
        await model.says("Yes?")

    async def talk() -> None:
        async with live(is_cut) as line:
            await line.connection.send_text("A story!")
            await line.next(Interrupted)
            await line.connection.send_text("Stop.")
            await line.next(TurnComplete)
            ends = [type(each) for each in line.events if isinstance(each, Interrupted | TurnComplete)]
            assert ends == [Interrupted, TurnComplete]
            assert len({each.item for each in line.of(Audio)}) == 2

    run(talk())


def test_an_interruption_by_the_host_is_not_speech() -> None:
    async def goes_on(model: ScriptedModel) -> None:
        await model.hears()
        await model.speaks("Once upon a time", ms=400)
        await model.hears()
        await model.says("Yes?")

    async def talk() -> None:
        async with live(goes_on) as line:
            await line.connection.send_text("A story!")
            await line.next(Audio)
            await line.connection.interrupt()
            await line.connection.send_text("Stop.")
            await line.next(TurnComplete)
            assert line.of(SpeechStarted) == []
            assert len(line.of(Interrupted)) == 1

    run(talk())


def test_audio_after_an_interruption_is_dropped() -> None:
    async def does_not_listen(model: LiveModel) -> None:
        await model.hears()
        await model.speaks("Once", ms=40)
        heard = len(model.received)
        await model.inbox.until(lambda: len(model.received) > heard or None)
        # As if this had been sent before the client's message arrived.
        await model._speak("upon a time", tone(400))
        await model.hears()
        await model.says("Yes?")

    async def talk() -> None:
        async with live(does_not_listen) as line:
            await line.connection.send_text("A story!")
            await line.next(Audio)
            await line.connection.interrupt()
            played = len(line.of(Audio))
            line.model.generating = False  # The server does not know yet either that it was interrupted.
            await asyncio.sleep(0.1)
            assert len(line.of(Audio)) == played

    run(talk())


def test_a_note_tells_the_model_how_much_was_heard() -> None:
    async def is_cut(model: ScriptedModel) -> None:
        await model.hears()
        await model.speaks("One two three four five six seven eight nine ten", ms=1000)
        await model.is_interrupted()
        await model.hears()

    async def talk() -> None:
        async with live(is_cut) as line:
            await line.connection.send_text("Count!")
            await line.next(Interrupted)
            item = line.of(Audio)[-1].item
            await line.connection.truncate(item, 300)
            # A repeated playback position changes nothing.
            await line.connection.truncate(item, 200)
            await line.until(lambda: "300 ms" in str(line.model.received))
            (note,) = line.model.inbox.notes
            assert '"One two three"' in note

    run(talk())


def test_a_late_transcript_is_not_new_speech() -> None:
    async def writes_late(model: LiveModel) -> None:
        await model.hears_speech("What is ")
        await model.speaks("That is", ms=80)
        await model._content(inputTranscription={"text": "that?"})
        await model.ends_speaking()

    async def talk() -> None:
        async with live(writes_late) as line:
            await line.connection.send_audio(tone(300))
            await line.next(TurnComplete)
            assert len(line.of(SpeechStarted)) == len(line.of(SpeechStopped)) == 1
            finals = [(each.speaker, each.text) for each in line.of(Transcript) if each.final]
            assert finals == [("user", "What is "), ("user", "that?"), ("assistant", "That is")]

    run(talk())


def test_reported_speech_activity_takes_precedence() -> None:
    async def listens(model: ScriptedModel) -> None:
        await model.hears_speech("What is that?")
        await model.says("A lamp.")

    async def talk() -> None:
        async with live(listens, options=GeminiOptions(voice_activity=True)) as line:
            await line.connection.send_audio(tone(300))
            await line.next(TurnComplete)
            heard = [each for each in line.events if isinstance(each, SpeechStarted | SpeechStopped)]
            assert heard == [SpeechStarted(), SpeechStopped()]
            assert Transcript("user", "What is that?", final=True, item="user-1") in line.events

    run(talk())


def test_a_silent_microphone_ends_the_audio_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_gemini.live.audio.PAUSE_SECONDS", 0.05)

    async def waits(model: LiveModel) -> None:
        await model.inbox.until(lambda: True if model.inbox.audio_ended == 2 else None)

    async def talk() -> None:
        async with live(waits) as line:
            for ended in (1, 2):
                for start in range(0, 300, 20):
                    await line.connection.send_audio(tone(20, start_ms=start))
                await line.until(partial(_ended, line, ended))
            assert len(line.model.inbox.audio) == 2 * 300 * 32

    run(talk())


def _ended(line: ScriptedConnection, times: int) -> bool:
    return bool(line.model.inbox.audio_ended == times)

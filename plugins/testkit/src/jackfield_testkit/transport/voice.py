"""Tests of voice (speech, transcripts, barge-in) and of interruption in both modes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from jackfield.transport.events import (
    Audio,
    ConnectionExpiring,
    Interrupted,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolCalls,
    Transcript,
    TurnComplete,
)
from jackfield_scripted import ScriptedCall, ScriptedModel, UserInput
from jackfield_scripted.audio import milliseconds, tone

from jackfield_testkit.suite import expect, expect_equal
from jackfield_testkit.transport.harness import (
    ScriptedConnection,
    TransportHarness,
    async_test,
    tool_result,
)

_QUESTION = "What is that light?"
_ANSWER = "That is the lamp."
_LONG = " ".join(f"word{number}" for number in range(400))
_LAST = "word399"


class _Answers:
    """Answers a spoken question."""

    def __init__(self) -> None:
        self.heard = UserInput()

    async def __call__(self, model: ScriptedModel) -> None:
        self.heard = await model.hears_speech(_QUESTION, after_ms=200)
        await model.says(_ANSWER)


class VoiceTests:
    """Spoken conversations."""

    @async_test
    async def test_speech_is_detected_and_answered(self, harness: TransportHarness) -> None:
        """Frames of 20 ms reach the model, and its speech arrives as audio."""
        async with harness.connect(script := _Answers()) as link:
            for start in range(0, 600, 20):
                await link.connection.send_audio(tone(20, start_ms=start))
            await link.collector.next(TurnComplete)
            expect(script.heard.audio_ms >= 200, f"{script.heard.audio_ms} ms of speech reached the model")
            pcm = b"".join(each.pcm for each in link.collector.of(Audio))
            expect_equal(
                len(pcm), len(tone(60 * len(_ANSWER.split()))), "the length of the response in bytes"
            )

    @async_test
    async def test_speech_start_and_stop_are_reported(self, harness: TransportHarness) -> None:
        """SpeechStarted comes first, then SpeechStopped."""
        async with harness.connect(_Answers()) as link:
            await link.connection.send_audio(tone(400))
            await link.collector.next(TurnComplete)
            reported = [
                each for each in link.collector.events if isinstance(each, SpeechStarted | SpeechStopped)
            ]
            expect_equal(reported, [SpeechStarted(), SpeechStopped()], "the events of the user's speech")

    @async_test
    async def test_both_speakers_are_transcribed(self, harness: TransportHarness) -> None:
        """Each utterance has one final transcript with the whole text."""
        async with harness.connect(_Answers()) as link:
            await link.connection.send_audio(tone(400))
            await link.collector.next(TurnComplete)
            while not _finals(link.collector.of(Transcript), "user"):
                await link.collector.next(Transcript)
            expect_equal(_finals(link.collector.of(Transcript), "user"), [_QUESTION], "the user's transcript")
            expect_equal(
                _finals(link.collector.of(Transcript), "assistant"), [_ANSWER], "the model's transcript"
            )

    @async_test
    async def test_audio_frames_may_have_any_even_length(self, harness: TransportHarness) -> None:
        """Frames from two bytes to half a second all reach the model."""
        sent = tone(500)
        async with harness.connect(script := _Answers()) as link:
            place = 0
            for length in (2, 958, 4_000, 0, 6, len(sent)):
                await link.connection.send_audio(sent[place : place + length])
                place += length
            await link.collector.next(TurnComplete)
            expect(script.heard.audio_ms >= 200, f"{script.heard.audio_ms} ms of speech reached the model")

    @async_test
    async def test_filler_is_not_part_of_the_response(self, harness: TransportHarness) -> None:
        """Audio from `speak` during a call does not end the turn and is not transcribed."""

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            await model.calls(ScriptedCall("look_up", {"title": "lamp"}))
            await model.says(_ANSWER)

        async with harness.connect(script) as link:
            await link.connection.send_text(_QUESTION)
            (call,) = (await link.collector.next(ToolCalls)).calls
            speak = getattr(link.connection, "speak", None)
            if speak is None:
                pytest.skip("the transport has no `speak`")
            await speak("One moment.")
            filler = await link.collector.next(Audio)
            expect(filler.filler, "audio during a call is not marked as a filler")
            await link.connection.truncate(filler.item, 10)
            await link.connection.send_results([tool_result(call)])
            await link.collector.next(TurnComplete)
            expect_equal(
                _finals(link.collector.of(Transcript), "assistant"), [_ANSWER], "the model's transcript"
            )
            fillers = [each.filler for each in link.collector.of(Audio)]
            expect_equal(fillers, sorted(fillers, reverse=True), "the order of filler and response")
            expect_equal(len(link.collector.of(TurnComplete)), 1, "the number of completed turns")

    @async_test
    async def test_slow_reader_gets_all_audio_in_order(self, harness: TransportHarness) -> None:
        """Audio that is produced faster than it plays arrives whole, in order, and in one item."""

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            await model.speaks("A long story.", ms=12_000)
            await model.ends_speaking()

        async with harness.serve(harness.mode, script) as served:
            connection = await served.transport.connect(harness.config)
            await connection.send_text("Tell me a story.")
            await asyncio.sleep(0.2)
            received: list[Audio] = []
            async for event in connection.events():
                if isinstance(event, Audio):
                    received.append(event)
                    await asyncio.sleep(0.001)
                if isinstance(event, TurnComplete):
                    break
            await connection.close()
            await served.transport.close()
        expect(
            b"".join(each.pcm for each in received) == tone(12_000), "the audio is incomplete or out of order"
        )
        expect_equal(len({each.item for each in received}), 1, "the number of items")
        expect(received[0].item, "audio without an item cannot be truncated")

    @async_test
    async def test_announced_end_of_the_connection_is_reported(self, harness: TransportHarness) -> None:
        """When the provider announces the end of the connection, ConnectionExpiring reports it."""

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            await model.says("Good day.")
            await model.goes_away(40)

        async with harness.connect(script) as link:
            await link.send("Hello.")
            warning = await link.collector.next(ConnectionExpiring)
            expect(35 <= warning.seconds <= 41, f"an announcement of 40 s reports {warning.seconds}")


def _finals(transcripts: list[Transcript], speaker: str) -> list[str]:
    return [each.text for each in transcripts if each.speaker == speaker and each.final]


async def _writes_long(model: ScriptedModel) -> None:
    await model.hears()
    await model.says(_LONG, pieces=400)
    await model.hears()
    await model.says("Yes?")


async def _speaks_long(model: ScriptedModel) -> None:
    await model.hears()
    await model.speaks("Once upon a time there was a keeper.", ms=2000)
    await model.hears()
    await model.says("Yes?")


class InterruptTests:
    """`interrupt` during and outside of a response."""

    @async_test
    async def test_interrupt_without_a_response_does_nothing(self, harness: TransportHarness) -> None:
        """Before, between and after responses, `interrupt` has no effect."""

        async def answers(model: ScriptedModel) -> None:
            for number in range(2):
                await model.hears()
                await model.says(f"Answer {number}. ")

        async with harness.connect(answers) as link:
            await link.connection.interrupt()
            await link.send("One.")
            await link.connection.interrupt()
            await link.connection.interrupt()
            await link.send("Two.")
            expect_equal(link.collector.text(), "Answer 0. Answer 1. ", "the model's text")
            expect_equal(link.collector.of(Interrupted), [], "the Interrupted events")

    @async_test
    async def test_interrupt_stops_the_model(self, harness: TransportHarness) -> None:
        """Interrupted follows, the rest of the response does not arrive, and the next message is answered."""
        text = harness.mode == "text"
        script = _writes_long if text else _speaks_long
        async with harness.connect(script, split=256 if text else 0, delay=0.004 if text else 0.0) as link:
            await link.connection.send_text("Tell me a story.")
            await link.collector.next(TextDelta if text else Audio)
            await link.connection.interrupt()
            await link.collector.next(Interrupted)
            count = _story_pieces(link)
            await link.connection.send_text("Stop.")
            await link.collector.next(TurnComplete)
            expect("Yes?" in link.collector.text(), "the next message was not answered")
            expect(_LAST not in link.collector.text(), "the response was not interrupted")
            after = link.collector.events[_interrupted_index(link) :]
            expect(
                count == _story_pieces(link, after),
                "text of the interrupted response arrived after Interrupted",
            )

    @async_test
    async def test_second_interrupt_does_nothing(self, harness: TransportHarness) -> None:
        """A second `interrupt` before the first took effect does nothing."""
        text = harness.mode == "text"
        script = _writes_long if text else _speaks_long
        async with harness.connect(script, split=256 if text else 0, delay=0.004 if text else 0.0) as link:
            await link.connection.send_text("Tell me a story.")
            await link.collector.next(TextDelta if text else Audio)
            await link.connection.interrupt()
            await link.connection.interrupt()
            await link.collector.next(Interrupted)
            await link.connection.send_text("Stop.")
            await link.collector.next(TurnComplete)
            expect_equal(len(link.collector.of(Interrupted)), 1, "the number of Interrupted events")


class BargeInTests:
    """The user speaks while the model speaks."""

    @async_test
    async def test_barge_in_truncates_at_the_played_position(self, harness: TransportHarness) -> None:
        """The response is cut short, and the model learns how much of it was played."""
        async with harness.connect(script := _BargeIn()) as link:
            item = await _start_and_interrupt(link)
            await link.connection.interrupt()
            await link.connection.truncate(item, 740)
            await script.finish(link)
            expect_equal(script.played_ms, 740, "the played milliseconds that the model knows")

    @async_test
    async def test_truncation_beyond_the_end_is_clamped(self, harness: TransportHarness) -> None:
        """A position beyond the end counts as the end."""
        async with harness.connect(script := _BargeIn()) as link:
            item = await _start_and_interrupt(link)
            sent = milliseconds(sum(len(each.pcm) for each in link.collector.of(Audio)))
            await link.connection.truncate(item, 10_000_000)
            await script.finish(link)
            expect(
                sent - 1 <= script.played_ms <= sent,
                f"{script.played_ms} of {sent} ms were counted as played",
            )

    @async_test
    async def test_truncation_at_zero_deletes_the_item(self, harness: TransportHarness) -> None:
        """A position of 0 removes the item from the conversation."""
        async with harness.connect(script := _BargeIn()) as link:
            item = await _start_and_interrupt(link)
            await link.connection.truncate(item, 0)
            await script.finish(link)
            expect_equal(script.played_ms, 0, "the played milliseconds that the model knows")

    @async_test
    async def test_truncation_of_an_unknown_item_does_nothing(self, harness: TransportHarness) -> None:
        """An unknown item is ignored."""
        async with harness.connect(script := _BargeIn()) as link:
            item = await _start_and_interrupt(link)
            await link.connection.truncate("unknown_item", 100)
            await link.connection.truncate(item, 100)
            await script.finish(link)
            expect_equal(script.played_ms, 100, "the played milliseconds that the model knows")


class _BargeIn:
    """Speaks, is interrupted, learns what was played, and answers the next utterance."""

    def __init__(self) -> None:
        self.played_ms = -1

    async def __call__(self, model: ScriptedModel) -> None:
        await model.hears()
        await model.speaks("Once upon a time there was a keeper.", ms=2000)
        await model.is_interrupted()
        self.played_ms = await model.truncated()
        await model.hears_speech("Stop, please.")
        await model.says("Go on, then.")

    async def finish(self, link: ScriptedConnection) -> None:
        """Wait until the model has answered."""
        await link.connection.send_audio(tone(400))
        while "Go on, then." not in link.collector.text():
            await link.collector.next(TurnComplete)


async def _start_and_interrupt(link: ScriptedConnection) -> str:
    """Start the story, wait until it is cut short, and return its item."""
    await link.connection.send_text("Tell me a story.")
    await link.collector.next(SpeechStarted)
    await link.collector.next(Interrupted)
    return link.collector.of(Audio)[-1].item


def _story_pieces(link: ScriptedConnection, events: Sequence[object] = ()) -> int:
    """Count the pieces of the story up to Interrupted, and in `events`."""
    before = link.collector.events[: _interrupted_index(link)]
    return sum(_is_story(each) for each in [*before, *events])


def _is_story(event: object) -> bool:
    if isinstance(event, TextDelta):
        return event.text.strip().startswith("word")
    return isinstance(event, Transcript) and "Once" in event.text and not event.final


def _interrupted_index(link: ScriptedConnection) -> int:
    return next(n for n, each in enumerate(link.collector.events) if isinstance(each, Interrupted)) + 1

"""Sound in, sound out."""

from __future__ import annotations

import asyncio

import pytest
from jackfield.transport.events import (
    Audio,
    GoingAway,
    SpeechStarted,
    SpeechStopped,
    ToolCalls,
    Transcript,
    TurnComplete,
)
from jackfield_scripted import Call, ScriptedModel, UserInput
from jackfield_scripted.audio import tone

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.transport_contract.stage import Stage, on_a_loop, result

_QUESTION = "What is that light?"
_ANSWER = "That is the lamp."


class _Answers:
    """Listens to a spoken question and answers it."""

    def __init__(self) -> None:
        self.heard = UserInput()

    async def __call__(self, model: ScriptedModel) -> None:
        self.heard = await model.hears_speech(_QUESTION, after_ms=200)
        await model.says(_ANSWER)


class VoiceTests:
    """A spoken conversation."""

    @on_a_loop
    async def test_speech_is_noticed_and_answered(self, stage: Stage) -> None:
        """Frames of 20 ms reach the model; its speech comes back as sound."""
        async with stage.talk(script := _Answers()) as talk:
            for start in range(0, 600, 20):
                await talk.connection.send_audio(tone(20, start_ms=start))
            await talk.ear.next(TurnComplete)
            holds(script.heard.audio_ms >= 200, f"{script.heard.audio_ms} ms of speech reached the model")
            pcm = b"".join(each.pcm for each in talk.ear.of(Audio))
            same(len(pcm), len(tone(60 * len(_ANSWER.split()))), "the length of the answer in bytes")

    @on_a_loop
    async def test_the_users_speech_starts_and_stops(self, stage: Stage) -> None:
        """First it starts, then it stops."""
        async with stage.talk(_Answers()) as talk:
            await talk.connection.send_audio(tone(400))
            await talk.ear.next(TurnComplete)
            noticed = [each for each in talk.ear.events if isinstance(each, SpeechStarted | SpeechStopped)]
            same(noticed, [SpeechStarted(), SpeechStopped()], "what was noticed of the user's speech")

    @on_a_loop
    async def test_both_sides_are_written_down(self, stage: Stage) -> None:
        """The whole of what either said comes once, marked as final, whatever pieces came before."""
        async with stage.talk(_Answers()) as talk:
            await talk.connection.send_audio(tone(400))
            await talk.ear.next(TurnComplete)
            while not _finals(talk.ear.of(Transcript), "user"):
                await talk.ear.next(Transcript)
            same(_finals(talk.ear.of(Transcript), "user"), [_QUESTION], "what the user said")
            same(_finals(talk.ear.of(Transcript), "assistant"), [_ANSWER], "what the model said")

    @on_a_loop
    async def test_sound_in_pieces_of_any_even_length(self, stage: Stage) -> None:
        """Two bytes or half a second: all of it is heard."""
        sent = tone(500)
        async with stage.talk(script := _Answers()) as talk:
            place = 0
            for length in (2, 958, 4_000, 0, 6, len(sent)):
                await talk.connection.send_audio(sent[place : place + length])
                place += length
            await talk.ear.next(TurnComplete)
            holds(script.heard.audio_ms >= 200, f"{script.heard.audio_ms} ms of speech reached the model")

    @on_a_loop
    async def test_a_filler_is_heard_and_is_no_part_of_the_answer(self, stage: Stage) -> None:
        """What `speak` says while a call is open ends no turn, and is not written down."""

        async def calls(model: ScriptedModel) -> None:
            await model.hears()
            await model.calls(Call("look_up", {"title": "lamp"}))
            await model.says(_ANSWER)

        async with stage.talk(calls) as talk:
            await talk.connection.send_text(_QUESTION)
            (call,) = (await talk.ear.next(ToolCalls)).calls
            speak = getattr(talk.connection, "speak", None)
            if speak is None:
                pytest.skip("the transport has no `speak`")
            await speak("One moment.")
            filler = await talk.ear.next(Audio)
            holds(filler.filler, "sound that comes while a call is open is marked as a filler")
            await talk.connection.truncate(filler.item, 10)
            await talk.connection.send_results([result(call)])
            await talk.ear.next(TurnComplete)
            same(_finals(talk.ear.of(Transcript), "assistant"), [_ANSWER], "what the model said")
            sound = [each.filler for each in talk.ear.of(Audio)]
            same(sound, sorted(sound, reverse=True), "the order of filler and answer")
            same(len(talk.ear.of(TurnComplete)), 1, "the ends of turns")

    @on_a_loop
    async def test_fast_sound_and_a_slow_reader(self, stage: Stage) -> None:
        """Sound that is made faster than it plays arrives whole and in order, of one item."""

        async def speaks(model: ScriptedModel) -> None:
            await model.hears()
            await model.speaks("A long story.", ms=12_000)
            await model.ends_speaking()

        async with stage.serving(stage.mode, speaks) as served:
            connection = await served.transport.connect(stage.opening)
            await connection.send_text("Tell me a story.")
            await asyncio.sleep(0.2)
            heard: list[Audio] = []
            async for event in connection.events():
                if isinstance(event, Audio):
                    heard.append(event)
                    await asyncio.sleep(0.001)
                if isinstance(event, TurnComplete):
                    break
            await connection.close()
            await served.transport.close()
        holds(b"".join(each.pcm for each in heard) == tone(12_000), "the sound came incomplete or disordered")
        same(len({each.item for each in heard}), 1, "the items it belongs to")
        holds(heard[0].item, "sound without an item cannot be truncated")

    @on_a_loop
    async def test_a_warning_comes_before_the_end(self, stage: Stage) -> None:
        """When the provider says that the connection will end, so do we."""

        async def leaves(model: ScriptedModel) -> None:
            await model.hears()
            await model.says("Good day.")
            await model.goes_away(40)

        async with stage.talk(leaves) as talk:
            await talk.says("Hello.")
            warning = await talk.ear.next(GoingAway)
            holds(35 <= warning.seconds <= 41, f"a warning of 40 s says {warning.seconds}")


def _finals(transcripts: list[Transcript], speaker: str) -> list[str]:
    return [each.text for each in transcripts if each.speaker == speaker and each.final]

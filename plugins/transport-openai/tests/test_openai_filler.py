"""Fillers over the Realtime API: spoken outside the conversation, and never in the way of an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from jackfield.transport.events import (
    Audio,
    Interrupted,
    ProviderError,
    SpeechStarted,
    ToolCalls,
    Transcript,
    TurnComplete,
    Usage,
)
from jackfield.transport.protocol import VoiceSettings
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_scripted.audio import tone
from jackfield_scripted.openai import RealtimeModel
from jackfield_scripted.openai.realtime_response import RealtimeResponse
from jackfield_testkit.transport.harness import tool_result

FILLER = "One moment."


def sent(model: ScriptedModel, kind: str) -> list[Any]:
    return [each for each in model.received if each["type"] == kind]


async def calls_once(model: ScriptedModel) -> None:
    await model.hears()
    await model.calls(ScriptedCall("look_up", {"title": "lamp"}))
    await model.says("A lamp.")


class Held:
    """A model that calls a tool, and whose filler is played by the test."""

    def __init__(self) -> None:
        self.fillers: asyncio.Queue[RealtimeResponse] = asyncio.Queue()

    async def __call__(self, model: ScriptedModel) -> None:
        assert isinstance(model, RealtimeModel)
        model.session.out_of_band = self.fillers
        await calls_once(model)


async def asked(talk: Any) -> Any:
    """Have the model make its call."""
    await talk.connection.send_text("What is that?")
    (call,) = (await talk.collector.next(ToolCalls)).calls
    return call


def test_a_filler_plays_during_a_call_and_ends_no_turn(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with meeting.talk("voice", calls_once) as (talk, _):
            call = await asked(talk)
            tokens = len(talk.collector.of(Usage))
            await talk.connection.speak(FILLER)
            filler = await talk.collector.next(Audio)
            await meeting.until(lambda: len(talk.collector.of(Usage)) > tokens)
            assert filler.filler
            assert talk.collector.of(TurnComplete) == talk.collector.of(Transcript) == []
            # It is no item of the conversation, so there is nothing to cut; the server would complain.
            await talk.connection.truncate(filler.item, 100)
            await talk.connection.send_results([tool_result(call)])
            await talk.collector.next(TurnComplete)
            assert talk.collector.text() == "A lamp."
            assert not talk.collector.of(Audio)[-1].filler
            spoken = sent(talk.model, "response.create")[1]["response"]
            assert spoken.pop("metadata")
            assert FILLER in spoken.pop("instructions")
            assert spoken.pop("max_output_tokens") < 200
            assert spoken == {"conversation": "none", "input": [], "tools": [], "tool_choice": "none"}

    run(scenario())


def test_a_filler_is_requested_in_the_language_of_the_session(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with meeting.talk("voice", calls_once, voice=VoiceSettings(language="pt-BR")) as (talk, _):
            await asked(talk)
            await talk.connection.speak(FILLER)
            await talk.collector.next(Audio)
            assert "pt-BR" in sent(talk.model, "response.create")[1]["response"]["instructions"]

    run(scenario())


def test_an_answer_waits_for_an_audible_filler(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        script = Held()
        async with meeting.talk("voice", script) as (talk, _):
            call = await asked(talk)
            await talk.connection.speak(FILLER)
            filler = await script.fillers.get()
            await filler.start_message()
            await filler.send_audio(200)
            await talk.collector.next(Audio)
            await talk.connection.send_results([tool_result(call)])
            await meeting.until(lambda: len(sent(talk.model, "conversation.item.create")) == 2)
            await talk.connection.send_context("The lamp is new.", respond=True)
            assert len(sent(talk.model, "response.create")) == 2
            await filler.send_audio(200)
            await filler.finish()
            await talk.collector.next(TurnComplete)
            assert sent(talk.model, "response.cancel") == []
            order = [each.filler for each in talk.collector.of(Audio)]
            assert order == sorted(order, reverse=True)

    run(scenario())


def test_an_answer_replaces_a_filler_that_is_not_audible_yet(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        script = Held()
        async with meeting.talk("voice", script) as (talk, _):
            call = await asked(talk)
            await talk.connection.speak(FILLER)
            filler = await script.fillers.get()
            await talk.connection.send_results([tool_result(call)])
            await talk.collector.next(TurnComplete)
            (cancel,) = sent(talk.model, "response.cancel")
            assert cancel["response_id"] == filler.id
            assert not any(each.filler for each in talk.collector.of(Audio))
            assert talk.collector.of(Interrupted) == talk.collector.of(ProviderError) == []

    run(scenario())


@pytest.mark.parametrize("by_voice", [True, False])
def test_a_filler_stops_when_the_user_speaks_or_interrupts(meeting: Any, run: Any, by_voice: bool) -> None:
    """Speech cuts only responses of the conversation short by itself, so a filler is cancelled by its id."""

    async def scenario() -> None:
        script = Held()
        async with meeting.talk("voice", script) as (talk, _):
            call = await asked(talk)
            await talk.connection.speak(FILLER)
            filler = await script.fillers.get()
            await filler.start_message()
            await filler.send_audio(100)
            await talk.collector.next(Audio)
            if by_voice:
                assert isinstance(talk.model, RealtimeModel)
                await talk.model.is_interrupted()
                await talk.collector.next(SpeechStarted)
            else:
                await talk.connection.interrupt()
            await filler.send_audio(100)
            await meeting.until(lambda: filler.complete)
            (cancel,) = sent(talk.model, "response.cancel")
            assert cancel["response_id"] == filler.id
            assert len(talk.collector.of(Audio)) == 1
            assert talk.collector.of(Interrupted) == []
            await talk.connection.send_results([tool_result(call)], respond=not by_voice)
            if by_voice:
                await talk.connection.send_audio(tone(400))
                await talk.model.hears_speech("Well?")
                await talk.model.says("A lamp.")
            await talk.collector.next(TurnComplete)
            assert talk.collector.of(ProviderError) == []

    run(scenario())


def test_a_filler_that_is_stopped_before_it_starts_never_plays(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        script = Held()
        async with meeting.talk("voice", script) as (talk, _):
            await asked(talk)
            await talk.connection.speak(FILLER)
            await talk.connection.interrupt()
            filler = await script.fillers.get()
            await filler.start_message()
            await filler.send_audio(100)
            await meeting.until(lambda: filler.complete)
            assert talk.collector.of(Audio) == []

    run(scenario())


def test_there_is_no_filler_while_the_model_speaks_or_is_about_to(meeting: Any, run: Any) -> None:
    async def speaks(model: ScriptedModel) -> None:
        await model.hears()
        await model.speaks("Once upon a time", ms=100)
        await model.hears()

    async def scenario() -> None:
        async with meeting.talk("voice", speaks) as (talk, _):
            await talk.connection.send_text("A story, please.")
            await talk.connection.speak(FILLER)
            await talk.collector.next(Audio)
            await talk.connection.speak(FILLER)
            await talk.connection.send_text("Go on.")
            assert len(sent(talk.model, "response.create")) == 1

    run(scenario())


@pytest.mark.parametrize("code", ["conversation_already_has_active_response", "invalid_request_error"])
def test_a_rejected_filler_has_no_effect(meeting: Any, run: Any, code: str) -> None:
    async def refuses(model: ScriptedModel) -> None:
        assert isinstance(model, RealtimeModel)
        session = model.session
        receive = session.receive

        async def refusing(message: Any) -> None:
            if (message.get("response") or {}).get("conversation") != "none":
                await receive(message)
                return
            error = {"type": "invalid_request_error", "code": code, "event_id": message["event_id"]}
            await session.socket.send("error", error={**error, "message": "No."})

        session.receive = refusing  # type: ignore[method-assign]
        await calls_once(model)

    async def scenario() -> None:
        async with meeting.talk("voice", refuses) as (talk, _):
            call = await asked(talk)
            await talk.connection.speak(FILLER)
            await talk.connection.send_results([tool_result(call)])
            await talk.collector.next(TurnComplete)
            assert talk.collector.text() == "A lamp."
            assert talk.collector.of(ProviderError) == []

    run(scenario())


def test_a_filler_that_never_ends_does_not_delay_the_answer(
    meeting: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_openai.realtime.responses.FILLER_SECONDS", 0.1)

    async def scenario() -> None:
        script = Held()
        async with meeting.talk("voice", script) as (talk, _):
            call = await asked(talk)
            await talk.connection.speak(FILLER)
            filler = await script.fillers.get()
            await filler.start_message()
            await filler.send_audio(100)
            await talk.collector.next(Audio)
            await talk.connection.send_results([tool_result(call)])
            await talk.collector.next(TurnComplete)
            assert talk.collector.text() == "A lamp."

    run(scenario())

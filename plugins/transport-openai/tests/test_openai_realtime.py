"""Voice over the Realtime API: who may speak when, and what becomes of what was said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from jackfield.transport.events import (
    Audio,
    Closed,
    ConnectionExpiring,
    Interrupted,
    ProviderError,
    SpeechStarted,
    SpeechStopped,
    ToolCalls,
    TurnComplete,
)
from jackfield.transport.protocol import TransportError, VoiceSettings
from jackfield_scripted import Refusal, ScriptedCall, ScriptedModel
from jackfield_scripted.audio import tone
from jackfield_scripted.openai import OpenAIServer, RealtimeModel
from jackfield_testkit.transport.harness import EventCollector, closed_event, tool_result


def sent(model: ScriptedModel, kind: str) -> list[Any]:
    return [each for each in model.received if each["type"] == kind]


async def answers(model: ScriptedModel) -> None:
    while True:
        await model.hears()
        await model.says("Good day.")


def test_a_response_is_not_requested_while_one_is_active(meeting: Any, run: Any) -> None:
    """Results that come while the model speaks are told at once, and asked about when it is done."""

    async def speaks_meanwhile(model: ScriptedModel) -> None:
        assert isinstance(model, RealtimeModel)
        await model.hears()
        calling = asyncio.create_task(model.calls(ScriptedCall("look_up", {"title": "lamp"})))
        await model.hears()
        await model.speaks("While we wait, a story.", ms=200)
        await calling
        await asyncio.sleep(0.05)
        assert len(sent(model, "response.create")) == 2
        await model.ends_speaking()
        await model.says("It is a lamp.")

    async def scenario() -> None:
        async with meeting.talk("voice", speaks_meanwhile) as (talk, _):
            await talk.connection.send_text("What is that?")
            (call,) = (await talk.collector.next(ToolCalls)).calls
            await talk.connection.send_text("Tell me a story meanwhile.")
            await talk.collector.next(Audio)
            await talk.connection.send_results([tool_result(call)])
            while "It is a lamp." not in talk.collector.text():
                await talk.collector.next(TurnComplete)
            assert len(sent(talk.model, "response.create")) == 3
            assert talk.collector.of(ProviderError) == []

    run(scenario())


def test_a_rejected_response_is_requested_again(meeting: Any, run: Any) -> None:
    """The server began a response of its own while our message was under way."""

    async def begins_by_itself(model: ScriptedModel) -> None:
        assert isinstance(model, RealtimeModel)
        async with model.session.changed:
            await model.session.changed.wait_for(lambda: bool(model.received))
        await model.session.start_response()
        async with model.session.changed:
            await model.session.changed.wait_for(lambda: bool(sent(model, "response.create")))
        await model.says("Of my own accord. ")
        await model.says("And as you asked.")

    async def scenario() -> None:
        crossing = ["conversation_already_has_active_response"]
        async with OpenAIServer(begins_by_itself, allow=crossing) as server:
            transport = meeting.transport(server)
            connection = await transport.connect(meeting.opening("voice"))
            await asyncio.sleep(0.05)
            # Nothing was read yet, so that the response which stands already is not known here.
            await connection.send_text("Hello?")
            ear = EventCollector(connection)
            await ear.next(TurnComplete)
            await ear.next(TurnComplete)
            assert ear.text() == "Of my own accord. And as you asked."
            assert ear.of(ProviderError) == []
            assert len(sent(server.models[0], "response.create")) == 2
            await connection.close()
            await ear.all()
            await transport.close()

    run(scenario())


def test_results_during_speech_are_answered_with_the_speech(meeting: Any, run: Any) -> None:
    """The server answers what the user says; asking about the result too would make two answers."""

    async def is_talked_over(model: ScriptedModel) -> None:
        assert isinstance(model, RealtimeModel)
        await model.hears()
        calling = asyncio.create_task(model.calls(ScriptedCall("look_up", {"title": "lamp"})))
        await asyncio.sleep(0.02)
        await model.is_interrupted()
        await calling
        await model.hears_speech("And who made it?")
        await model.says("A lamp, made by Fresnel.")

    async def scenario() -> None:
        async with meeting.talk("voice", is_talked_over) as (talk, _):
            await talk.connection.send_text("What is that?")
            (call,) = (await talk.collector.next(ToolCalls)).calls
            await talk.collector.next(SpeechStarted)
            await talk.connection.send_results([tool_result(call)])
            await talk.connection.send_audio(tone(400))
            await talk.collector.next(TurnComplete)
            await asyncio.sleep(0.05)
            assert len(sent(talk.model, "response.create")) == 1
            assert talk.collector.text() == "A lamp, made by Fresnel."

    run(scenario())


def test_results_can_wait_for_the_next_speech(meeting: Any, run: Any) -> None:
    async def waits(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("look_up", {"title": "lamp"}))
        await model.says("A lamp.")

    async def scenario() -> None:
        async with meeting.talk("voice", waits) as (talk, _):
            await talk.connection.send_text("What is that?")
            (call,) = (await talk.collector.next(ToolCalls)).calls
            await talk.connection.send_results([tool_result(call)], respond=False)
            await asyncio.sleep(0.05)
            assert len(sent(talk.model, "response.create")) == 1
            await talk.send("Well?")
            assert talk.collector.text() == "A lamp."

    run(scenario())


def test_a_response_is_requested_only_after_every_result(meeting: Any, run: Any) -> None:
    async def calls_twice(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("look_up", {"title": "a"}), ScriptedCall("look_up", {"title": "b"}))
        await model.says("Both.")

    async def scenario() -> None:
        async with meeting.talk("voice", calls_twice) as (talk, _):
            await talk.connection.send_text("Both, please.")
            first, second = (await talk.collector.next(ToolCalls)).calls
            await talk.connection.send_results([tool_result(second)])
            await talk.connection.send_results([tool_result(first)])
            await talk.collector.next(TurnComplete)
            kinds = [each.get("item", each).get("type") for each in talk.model.received]
            assert kinds[-3:] == ["function_call_output", "function_call_output", "response.create"]

    run(scenario())


def test_nothing_is_cancelled_without_a_response(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with meeting.talk("voice", answers) as (talk, _):
            await talk.connection.interrupt()
            await talk.send("Hello.")
            await talk.connection.interrupt()
            await talk.send("Hello again.")
            assert sent(talk.model, "response.cancel") == []
            assert talk.collector.of(ProviderError) == []

    run(scenario())


def test_an_interrupt_cancels_a_response_that_has_not_started(meeting: Any, run: Any) -> None:
    """The server is about to answer by itself; there is nothing to cancel yet."""
    interrupted = asyncio.Event()

    async def is_slow(model: ScriptedModel) -> None:
        assert isinstance(model, RealtimeModel)
        await model.is_interrupted()
        wire = model.session.socket
        await wire.send("input_audio_buffer.speech_stopped", item_id="item_of_the_user", audio_end_ms=400)
        await interrupted.wait()
        await model.session.start_response()
        async with model.session.changed:
            await model.session.changed.wait_for(lambda: bool(sent(model, "response.cancel")))
        await answers(model)

    async def scenario() -> None:
        async with meeting.talk("voice", is_slow) as (talk, _):
            await talk.collector.next(SpeechStopped)
            await talk.connection.interrupt()
            interrupted.set()
            await talk.collector.next(Interrupted)
            assert len(sent(talk.model, "response.cancel")) == 1
            await talk.send("Hello.")
            assert talk.collector.text() == "Good day."
            assert len(sent(talk.model, "response.cancel")) == 1
            assert talk.collector.of(ProviderError) == []

    run(scenario())


def test_a_late_cancel_is_ignored(meeting: Any, run: Any) -> None:
    """The answer was over before the message came; the server says so, and nobody is bothered with it."""

    async def scenario() -> None:
        async with OpenAIServer(answers) as server:
            transport = meeting.transport(server)
            connection = await transport.connect(meeting.opening("voice"))
            await connection.send_text("Hello.")
            # Nothing is read, so that the response counts as active here while it is over there.
            await asyncio.sleep(0.1)
            await connection.interrupt()
            ear = EventCollector(connection)
            await ear.next(TurnComplete)
            await connection.send_text("Still there?")
            await ear.next(TurnComplete)
            assert len(sent(server.models[0], "response.cancel")) == 1
            assert ear.of(ProviderError) == []
            await connection.close()
            await ear.all()
            await transport.close()

    run(scenario())


def test_a_session_is_configured_by_the_settings(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        options = {
            "voice_name": "cedar",
            "transcription_model": "gpt-live-transcribe",
            "noise_reduction": "far_field",
        }
        voice = VoiceSettings(language="pt-BR", silence_ms=700)
        async with meeting.talk("voice", answers, options=options, voice=voice) as (talk, _):
            (update,) = sent(talk.model, "session.update")
            pcm = {"type": "audio/pcm", "rate": 24_000}
            assert update["session"]["audio"] == {
                "input": {
                    "format": pcm,
                    "transcription": {"model": "gpt-live-transcribe", "language": "pt"},
                    "noise_reduction": {"type": "far_field"},
                    "turn_detection": {
                        "type": "server_vad",
                        "silence_duration_ms": 700,
                        "create_response": True,
                        "interrupt_response": True,
                    },
                },
                "output": {"format": pcm, "voice": "cedar"},
            }
        silent = VoiceSettings(voice="ash", transcribe=False)
        semantic = {"turn_detection": "semantic_vad"}
        async with meeting.talk("voice", answers, options=semantic, voice=silent) as (talk, _):
            (update,) = sent(talk.model, "session.update")
            audio = update["session"]["audio"]
            assert audio["input"]["transcription"] is None
            assert audio["output"]["voice"] == "ash"
            assert audio["input"]["turn_detection"]["type"] == "semantic_vad"
            assert "silence_duration_ms" not in audio["input"]["turn_detection"]

    run(scenario())


def test_a_rejected_session_is_not_opened(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with OpenAIServer(answers, allow=["invalid_request_error"]) as server:
            transport = meeting.transport(server)
            with pytest.raises(TransportError) as refused:
                await transport.connect(meeting.opening("voice", declarations={"look_up": {"name": "x"}}))
            assert refused.value.code == "invalid_request_error"
            assert "tool" in refused.value.detail
            await transport.close()

    run(scenario())


def test_the_end_of_the_session_is_announced(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with meeting.talk("voice", answers, options={"renew_after_minutes": 0.001}) as (talk, _):
            warning = await talk.collector.next(ConnectionExpiring)
            assert 3500 < warning.seconds <= 3600
            await talk.send("Hello.")
            assert len(talk.collector.of(ConnectionExpiring)) == 1

    run(scenario())


def test_context_survives_session_expiry(meeting: Any, run: Any) -> None:
    """An expired session ends with that code, by which what was said is carried over into a new one."""

    async def expires(model: ScriptedModel) -> None:
        await model.hears()
        await model.fails("session_expired", "Your session hit the maximum duration of 60 minutes.")

    async def scenario() -> None:
        async with meeting.talk("voice", expires) as (talk, _):
            await talk.connection.send_text("Hello.")
            end = closed_event(await talk.collector.all())
            assert (end.code, "60 minutes" in end.detail) == ("session_expired", True)
            assert talk.collector.of(ProviderError) == []

    run(scenario())


@pytest.mark.parametrize(
    ("status", "details", "event"),
    [
        ("incomplete", {"reason": "content_filter"}, ProviderError("content_refused")),
        ("incomplete", {"reason": "max_output_tokens"}, TurnComplete()),
        ("failed", {"error": {"code": "insufficient_quota", "type": "x"}}, ProviderError("quota_exhausted")),
        ("cancelled", {"reason": "turn_detected"}, Interrupted()),
    ],
)
def test_incomplete_and_failed_responses(
    meeting: Any, run: Any, status: str, details: Any, event: Any
) -> None:
    async def falls_short(model: ScriptedModel) -> None:
        assert isinstance(model, RealtimeModel)
        await model.hears()
        response, model.session.active = model.session.active, None
        assert response is not None
        await response.finish(status, details)

    async def scenario() -> None:
        async with meeting.talk("voice", falls_short, answers) as (talk, _):
            await talk.connection.send_text("Hello.")
            found = await talk.collector.next(type(event))
            assert getattr(found, "code", None) == getattr(event, "code", None)
            assert len(talk.collector.of(TurnComplete)) == (1 if isinstance(event, TurnComplete) else 0)

    run(scenario())


def test_calls_that_ran_into_the_length_limit_never_run(meeting: Any, run: Any) -> None:
    async def runs_out(model: ScriptedModel) -> None:
        assert isinstance(model, RealtimeModel)
        await model.hears()
        response, model.session.active = model.session.active, None
        assert response is not None
        await response.send_call("call_1", "add_note", '{"text": "complete in itself"}')
        await response.finish("incomplete", {"reason": "max_output_tokens"})

    async def scenario() -> None:
        async with meeting.talk("voice", runs_out) as (talk, _):
            await talk.connection.send_text("Note it.")
            assert (await talk.collector.next(ProviderError)).code == "context_length_exceeded"
            assert talk.collector.calls() == []

    run(scenario())


def test_an_invalid_event_is_reported_and_ends_nothing(meeting: Any, run: Any) -> None:
    async def babbles(model: ScriptedModel) -> None:
        assert isinstance(model, RealtimeModel)
        async with model.session.changed:
            await model.session.changed.wait_for(lambda: bool(model.received))
        for nonsense in ("response.done", "response.output_audio.delta", "conversation.item.added", "error"):
            await model.session.socket.send(nonsense)
        await model.session.socket.send("response.output_audio.delta", delta="%%%", item_id=7)
        await model.session.socket.send("an.event.of.tomorrow", response=None)
        await model.hears()
        await model.says("Pardon me.")

    async def scenario() -> None:
        async with meeting.talk("voice", babbles) as (talk, _):
            await talk.send("Hello.")
            assert talk.collector.text() == "Pardon me."
            assert {each.code for each in talk.collector.of(ProviderError)} == {"server_error"}

    run(scenario())


def test_a_silent_server_times_out(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        left = asyncio.Event()

        async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()
            await writer.wait_closed()
            left.set()

        server = await asyncio.start_server(nothing, "127.0.0.1", 0)
        async with server:
            base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            transport = meeting.transport(OpenAIServer(answers), base_url=base_url, connect_timeout=0.1)
            with pytest.raises(TransportError) as late:
                await transport.connect(meeting.opening("voice"))
            assert late.value.code == "network"
            await transport.close()
            await left.wait()

    run(scenario())


def test_a_rejection_includes_the_retry_delay(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        busy = Refusal(429, "rate_limit_exceeded", "Slow down.", retry_after=7)
        async with OpenAIServer(answers, refusals=[busy]) as server:
            transport = meeting.transport(server)
            with pytest.raises(TransportError) as refused:
                await transport.connect(meeting.opening("voice"))
            assert (refused.value.code, refused.value.retry_after) == ("rate_limit_exceeded", 7.0)
            await transport.close()

    run(scenario())


def test_a_broken_socket_is_a_network_error(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with meeting.talk("voice", answers) as (talk, server):
            await talk.send("Hello.")
            server.drop()
            end = closed_event(await talk.collector.all())
            assert end == Closed("network", "")

    run(scenario())

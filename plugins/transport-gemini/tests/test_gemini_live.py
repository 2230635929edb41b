"""Voice: the start, resumption and end of a Gemini Live session."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from gemini_connections import KEY, ScriptedConnection, live, run
from jackfield.transport.events import (
    Closed,
    ConnectionExpiring,
    ProviderError,
    TurnComplete,
)
from jackfield.transport.protocol import ConnectionConfig, TransportError, Utterance, VoiceSettings
from jackfield_gemini.schemas import native
from jackfield_gemini.settings import GeminiSettings
from jackfield_gemini.transport import GeminiTransport
from jackfield_scripted import Refusal, ScriptedCall, ScriptedModel
from jackfield_scripted.audio import tone
from jackfield_scripted.gemini import GeminiServer, LiveModel


async def answers(model: ScriptedModel) -> None:
    while True:
        await model.hears()
        await model.says("Good day.")


def test_the_configuration_of_a_session() -> None:
    async def talk() -> None:
        voice = VoiceSettings(voice="Kore", language="en-GB", silence_ms=700)
        async with live(answers, opening={"voice": voice}) as line:
            setup = line.model.setup
        assert setup["model"] == "models/gemini-3.8-live"
        assert setup["generationConfig"]["responseModalities"] == ["AUDIO"]
        speech = setup["generationConfig"]["speechConfig"]
        assert speech["voiceConfig"]["prebuiltVoiceConfig"]["voiceName"] == "Kore"
        assert speech["languageCode"] == "en-GB"
        assert setup["sessionResumption"] == {}
        assert setup["contextWindowCompression"] == {"slidingWindow": {}}
        assert setup["realtimeInputConfig"] == {"automaticActivityDetection": {"silenceDurationMs": 700}}
        assert setup["inputAudioTranscription"] == setup["outputAudioTranscription"] == {}
        assert line.model.instructions == "You are a clerk."
        assert {name: each["behavior"] for name, each in line.model.tools.items()} == {
            "look_up": "BLOCKING",
            "shop_order": "BLOCKING",
        }

    run(talk())


def test_declarations_of_both_adapters_are_accepted() -> None:
    schema = {"type": "object", "properties": {"size": {"type": ["integer", "null"], "enum": [1, 2]}}}

    async def talk() -> None:
        declared = {"a.b": native("a.b", "Measures.", schema).declaration}
        settings = {"adapter": "gemini-native"}
        async with live(answers, opening={"declarations": declared}, settings=settings) as line:
            assert line.transport.adapter("voice") == "gemini-native"
            (tool,) = line.model.tools.values()
            assert tool["parameters"]["type"] == "OBJECT"

    run(talk())


def test_without_transcription_there_are_no_transcripts() -> None:
    async def talk() -> None:
        async with live(answers, opening={"voice": VoiceSettings(transcribe=False)}) as line:
            assert "inputAudioTranscription" not in line.model.setup
            assert "outputAudioTranscription" not in line.model.setup

    run(talk())


def test_a_session_is_resumed_with_its_handle() -> None:
    async def talk() -> None:
        async with live(answers) as line:
            await line.connection.send_text("I am Ada.")
            await line.next(TurnComplete)
            await line.until(lambda: line.connection.resume)
            handle = line.connection.resume
            await line.connection.close()
            opening = ConnectionConfig(
                "voice", "", {}, history=(Utterance("user", "I am Ada."),), resume=handle
            )
            again = await line.transport.connect(opening)
            old, new = line.server.models
            assert isinstance(new, LiveModel)
            assert new.resumed is old
            await again.send_text("Who am I?")
            async for event in again.events():
                if isinstance(event, TurnComplete):
                    await again.close()
            # The provider's session has the history; sending it again would duplicate it.
            assert "I am Ada." not in str(new.received)

    run(talk())


def test_an_unknown_handle_is_an_expired_session() -> None:
    async def talk() -> None:
        async with live(answers) as line:
            with pytest.raises(TransportError) as refused:
                await line.transport.connect(ConnectionConfig("voice", "", {}, resume="handle-of-yesterday"))
            assert refused.value.code == "session_expired"

    run(talk())


def test_going_away_is_announced_and_the_session_can_be_resumed() -> None:
    async def leaves(model: ScriptedModel) -> None:
        await model.hears()
        await model.goes_away(9.5)
        await model.fails("going_away")

    async def talk() -> None:
        async with live(leaves) as line:
            await line.connection.send_text("Hello.")
            await line.next(Closed)
            assert line.of(ConnectionExpiring) == [ConnectionExpiring(9.5)]
            # The time limit is the connection's; the handle resumes the session.
            assert line.of(Closed)[0].code == "network"
            assert line.connection.resume

    run(talk())


def test_a_refused_turn_is_reported_as_an_error() -> None:
    async def refuses(model: LiveModel) -> None:
        await model.hears()
        await model.refuses("PROHIBITED_INPUT_CONTENT")
        await model.hears()
        await model.calls(ScriptedCall("look_up", "{not json"))
        await model.hears()
        await model.says("Good day.")

    async def talk() -> None:
        async with live(refuses) as line:
            for number in (1, 2):
                await line.connection.send_text("Say something.")
                await line.next(ProviderError, number)
            await line.connection.send_text("Hello.")
            await line.next(TurnComplete)
            assert [each.code for each in line.of(ProviderError)] == ["content_refused", "server_error"]

    run(talk())


@pytest.mark.parametrize(
    "nonsense",
    [
        {"serverContent": 5},
        {"serverContent": {"modelTurn": {"parts": [{"inlineData": {"mimeType": "audio/pcm", "data": 7}}]}}},
        {"toolCall": {"functionCalls": ["look_up"]}},
        {"toolCallCancellation": {"ids": 3}},
        {"usageMetadata": {"promptTokenCount": "many"}},
    ],
    ids=lambda message: next(iter(message)),
)
def test_an_invalid_message_is_reported_and_ends_nothing(nonsense: Any) -> None:
    async def babbles(model: LiveModel) -> None:
        await model.hears()
        await model._send(nonsense)
        await model._send({"somethingNew": {"of": "tomorrow"}})
        await model.says("Good day.")

    async def talk() -> None:
        async with live(babbles) as line:
            await line.connection.send_text("Hello.")
            await line.next(TurnComplete)
            assert [each.code for each in line.of(ProviderError)] == ["server_error"]

    run(talk())


def test_errors_never_contain_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)

    async def talk() -> None:
        refusal = Refusal(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
        async with GeminiServer(answers, refusals=[refusal]) as server:
            settings = GeminiSettings(base_url=server.base_url, ca_file=server.ca_file)
            transport = GeminiTransport(settings)
            with pytest.raises(TransportError) as refused:
                await transport.connect(ConnectionConfig("voice", "", {}))
            await transport.close()
        assert refused.value.code == "authentication"
        assert KEY not in f"{refused.value!r} {refused.value.__cause__!r} {refused.value.detail}"

    run(talk())
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("jackfield")]
    assert not any(KEY in message for message in ours)


def test_an_unknown_certificate_is_not_trusted() -> None:
    async def talk() -> None:
        async with GeminiServer(answers) as server:
            transport = GeminiTransport(GeminiSettings(base_url=server.base_url))
            with pytest.raises(TransportError, match="ca_file"):
                await transport.connect(ConnectionConfig("voice", "", {}))
            await transport.close()
            assert server.models == []

    run(talk())


def test_a_silent_server_times_out() -> None:
    async def talk(port: int) -> None:
        settings = GeminiSettings(base_url=f"https://127.0.0.1:{port}", connect_timeout=0.2)
        transport = GeminiTransport(settings)
        with pytest.raises(TransportError) as given_up:
            await transport.connect(ConnectionConfig("voice", "", {}))
        assert given_up.value.code == "network"
        await transport.close()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        run(talk(silent.getsockname()[1]))


def test_closing_leaves_no_tasks() -> None:
    async def talk() -> None:
        async with live(answers) as line:
            await line.connection.send_audio(tone(100))
            await line.hang_up()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert [each for each in others if "jackfield_gemini/" in repr(each)] == []

    run(talk())


def test_a_closed_connection_is_released() -> None:
    async def breaks(model: ScriptedModel) -> None:
        await model.hears()
        await model.closes(1011)

    async def talk() -> None:
        async with live(breaks) as line:
            await _until_it_breaks(line)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            assert [each for each in others if "jackfield_gemini/" in repr(each)] == []

    run(talk())


async def _until_it_breaks(line: ScriptedConnection) -> None:
    await line.connection.send_audio(tone(40))
    await line.connection.send_text("Hello.")
    await line.next(Closed)
    await asyncio.sleep(0.01)

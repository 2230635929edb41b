"""The effect of the settings on requests to Gemini."""

from __future__ import annotations

import asyncio

from gemini_connections import live, run, text
from jackfield.transport.events import ProviderError
from jackfield.transport.protocol import ConnectionConfig
from jackfield_gemini.settings import GeminiSettings
from jackfield_gemini.transport import GeminiTransport
from jackfield_scripted import ScriptedModel


async def answers(model: ScriptedModel) -> None:
    while True:
        await model.hears()
        await model.says("Good day.")


def test_the_model_of_text_and_the_version_of_the_interface() -> None:
    asked: list[str] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readline()).decode())
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def talk() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        async with server:
            base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            settings = GeminiSettings(base_url=base_url, text_model="our-own-model", api_version="v1alpha")
            transport = GeminiTransport(settings)
            connection = await transport.connect(ConnectionConfig("text", "", {}))
            await connection.send_text("Hello.")
            async for event in connection.events():
                if isinstance(event, ProviderError):
                    await connection.close()
            await transport.close()
        assert asked[0].startswith("POST /v1alpha/models/our-own-model:")

    run(talk())


def test_the_model_voice_and_language_of_speech() -> None:
    async def talk() -> None:
        settings = {"voice_model": "our-own-voice", "voice": "Puck", "language": "fr-FR"}
        async with live(answers, settings=settings) as line:
            setup = line.model.setup
        assert setup["model"] == "models/our-own-voice"
        speech = setup["generationConfig"]["speechConfig"]
        assert speech["voiceConfig"]["prebuiltVoiceConfig"]["voiceName"] == "Puck"
        assert speech["languageCode"] == "fr-FR"

    run(talk())


def test_a_silent_answer_times_out() -> None:
    async def silent(model: ScriptedModel) -> None:
        await model.hears()
        await asyncio.sleep(60)

    async def talk() -> None:
        async with text(silent, settings={"request_timeout": 0.2}) as line:
            await line.connection.send_text("Hello.")
            assert (await line.next(ProviderError)).code == "network"

    run(talk())


def test_the_length_of_an_answer_is_limited_where_the_session_says_so() -> None:
    async def talk() -> None:
        for wanted in (0, 250):
            async with text(answers, opening={"answer_tokens": wanted}) as line:
                await line.connection.send_text("Hello.")
                await line.until(lambda line=line: line.server.models and line.model.requests)  # type: ignore[misc]
                config = line.model.requests[0].request.get("generationConfig") or {}
                assert config.get("maxOutputTokens", 0) == wanted
            async with live(answers, opening={"answer_tokens": wanted}) as line:
                assert line.model.setup["generationConfig"].get("maxOutputTokens", 0) == wanted

    run(talk())

"""The scripted Gemini server with the official SDK and with a raw WebSocket client."""

from __future__ import annotations

import asyncio
import json
import ssl
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from jackfield_scripted import Refusal, ScriptedCall, ScriptedModel, script_from_yaml
from jackfield_scripted.gemini import GeminiServer, LiveModel, ProtocolViolationError, TextModel
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

PATH = "/ws/google.ai.generativelanguage.{version}.GenerativeService.BidiGenerateContent"
SETUP = {"setup": {"model": "models/m", "session_resumption": {}}}


async def answers(model: ScriptedModel) -> None:
    while True:
        await model.hears()
        await model.says("Good day.")


@asynccontextmanager
async def socket(
    server: GeminiServer, version: str = "v1", slash: str = ""
) -> AsyncIterator[ClientConnection]:
    trusted = ssl.create_default_context(cafile=server.ca_file)
    address = server.base_url.replace("https", "wss") + slash + PATH.format(version=version)
    async with connect(address, ssl=trusted, additional_headers={"x-goog-api-key": "k"}) as opened:
        yield opened


async def until(opened: ClientConnection, kind: str) -> Any:
    """Return the next member of that name, in serverContent or at the top level of a message."""
    while True:
        message = json.loads(await opened.recv())
        found = {**message, **message.get("serverContent", {})}
        if kind in found:
            return found[kind]


@pytest.mark.parametrize("version", ["v1", "v1beta", "v1alpha"])
@pytest.mark.parametrize("slash", ["", "/"])
def test_setup_is_confirmed_first_on_every_path(version: str, slash: str) -> None:
    async def talk() -> None:
        async with GeminiServer(answers) as server, socket(server, version, slash) as opened:
            await opened.send(json.dumps(SETUP))
            assert json.loads(await opened.recv()) == {"setupComplete": {}}

    asyncio.run(talk())


@pytest.mark.parametrize(
    "said",
    [
        {"client_content": {"turns": [{"role": "user", "parts": [{"text": "Hi."}]}], "turn_complete": True}},
        {"clientContent": {"turns": [{"role": "user", "parts": [{"text": "Hi."}]}], "turnComplete": True}},
    ],
    ids=["snake_case", "camelCase"],
)
def test_both_spellings_are_accepted_and_a_turn_ends_in_order(said: Any) -> None:
    async def talk() -> None:
        async with GeminiServer(answers) as server, socket(server) as opened:
            await opened.send(json.dumps(SETUP))
            await opened.send(json.dumps(said))
            seen: list[str] = []
            while "turnComplete" not in seen:
                seen += json.loads(await opened.recv()).get("serverContent", {})
            assert seen[-2:] == ["generationComplete", "turnComplete"]
            assert "interrupted" not in seen

    asyncio.run(talk())


def test_interrupted_turn_has_no_generation_complete_and_open_calls_block_resumption() -> None:
    async def is_cut(model: ScriptedModel) -> None:
        await model.hears()
        await model.speaks("Once upon", ms=80)
        await model.is_interrupted()
        await model.calls(ScriptedCall("look_up", {}, "call-1"))
        await model.says("Done.")

    async def talk() -> None:
        async with GeminiServer(is_cut) as server, socket(server) as opened:
            await opened.send(json.dumps(SETUP))
            asked = {"turns": [{"role": "user", "parts": [{"text": "Go."}]}], "turnComplete": True}
            await opened.send(json.dumps({"clientContent": asked}))
            seen: list[str] = []
            while "turnComplete" not in seen:
                seen += json.loads(await opened.recv()).get("serverContent", {})
            assert seen[-2:] == ["interrupted", "turnComplete"]
            assert "generationComplete" not in seen
            assert (await until(opened, "sessionResumptionUpdate"))["newHandle"]
            assert await until(opened, "sessionResumptionUpdate") == {"resumable": False}
            assert (await until(opened, "toolCall"))["functionCalls"][0]["id"] == "call-1"
            response = {"id": "call-1", "name": "look_up", "response": {"ok": True}}
            await opened.send(json.dumps({"tool_response": {"functionResponses": [response]}}))
            await until(opened, "turnComplete")

    asyncio.run(talk())


def test_protocol_violation_is_raised_when_the_block_ends() -> None:
    async def waits(model: LiveModel) -> None:
        await model.inbox.until(lambda: True if model.inbox.responses else None)

    async def talk() -> None:
        async with GeminiServer(waits) as server, socket(server) as opened:  # type: ignore[arg-type]
            await opened.send(json.dumps(SETUP))
            response = {"id": "never-made", "name": "look_up", "response": {}}
            await opened.send(json.dumps({"toolResponse": {"functionResponses": [response]}}))
            await asyncio.sleep(0.1)

    with pytest.raises(ProtocolViolationError, match="never-made"):
        asyncio.run(talk())


def test_a_response_to_a_blocking_call_cannot_continue() -> None:
    async def asks(model: LiveModel) -> None:
        await model.calls(ScriptedCall("look_up", {}, "call-1"))

    async def talk() -> None:
        async with GeminiServer(asks) as server, socket(server) as opened:  # type: ignore[arg-type]
            await opened.send(json.dumps(SETUP))
            await until(opened, "toolCall")
            for more in (True, False):
                response: dict[str, Any] = {"id": "call-1", "name": "look_up", "response": {}}
                response["will_continue"] = more
                await opened.send(json.dumps({"tool_response": {"functionResponses": [response]}}))
            await asyncio.sleep(0.1)

    with pytest.raises(ProtocolViolationError, match="a blocking call"):
        asyncio.run(talk())


def test_script_error_closes_the_connection_and_is_raised() -> None:
    async def fails(model: ScriptedModel) -> None:
        raise ValueError("no such page")

    async def talk() -> None:
        async with GeminiServer(fails) as server, socket(server) as opened:
            await opened.send(json.dumps(SETUP))
            with pytest.raises(ConnectionClosed) as ended:
                await until(opened, "turnComplete")
            assert ended.value.rcvd is not None
            assert ended.value.rcvd.code == 1011

    with pytest.raises(ValueError, match="no such page"):
        asyncio.run(talk())


def test_refusal_rejects_a_socket_with_its_status() -> None:
    async def talk() -> None:
        async with GeminiServer(answers, refusals=[Refusal(429, message="Slow.", retry_after=7)]) as server:
            with pytest.raises(InvalidStatus) as refused:
                async with socket(server):
                    pass
            error = json.loads(bytes(refused.value.response.body or b""))["error"]
            assert (error["status"], error["details"][0]["retryDelay"]) == ("RESOURCE_EXHAUSTED", "7s")

    asyncio.run(talk())


def test_resumed_connection_refers_to_the_earlier_model() -> None:
    async def talk() -> None:
        async with GeminiServer(answers) as server:
            async with socket(server) as opened:
                await opened.send(json.dumps(SETUP))
                handle = (await until(opened, "sessionResumptionUpdate"))["newHandle"]
            async with socket(server) as opened:
                setup = {"model": "models/m", "sessionResumption": {"handle": handle}}
                await opened.send(json.dumps({"setup": setup}))
                await until(opened, "setupComplete")
                first, second = server.models
                assert isinstance(second, LiveModel)
                assert second.resumed is first

    asyncio.run(talk())


def test_sdk_gets_text_whole_and_streamed_over_http_and_tls() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        genai = pytest.importorskip("google.genai")

    async def talk(*, tls: bool) -> None:
        async with GeminiServer(answers, tls=tls) as server:
            trusted = ssl.create_default_context(cafile=server.ca_file)
            options = genai.types.HttpOptions(
                base_url=server.base_url, async_client_args={"ssl": trusted, "verify": trusted}
            )
            client = genai.Client(api_key="k", http_options=options)
            whole = await client.aio.models.generate_content(model="m", contents="Hello.")
            assert whole.text == "Good day."
            stream = await client.aio.models.generate_content_stream(model="m", contents="Good morning.")
            assert "".join([chunk.text or "" async for chunk in stream]) == "Good day."
            assert len(server.models) == 2
            await client.aio.aclose()

    for tls in (False, True):
        asyncio.run(talk(tls=tls))


def test_missing_thought_signature_is_rejected() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        genai = pytest.importorskip("google.genai")

    async def asks(model: TextModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("look_up", {}, "call-1"))

    async def talk() -> None:
        async with GeminiServer(asks, tls=False) as server:  # type: ignore[arg-type]
            client = genai.Client(api_key="k", http_options=genai.types.HttpOptions(base_url=server.base_url))
            said: list[Any] = [{"role": "user", "parts": [{"text": "Look."}]}]
            await client.aio.models.generate_content(model="m", contents=said)
            said.append({"role": "model", "parts": [{"function_call": {"id": "call-1", "name": "look_up"}}]})
            answer = {"id": "call-1", "name": "look_up", "response": {"ok": True}}
            said.append({"role": "user", "parts": [{"function_response": answer}]})
            with pytest.raises(genai.errors.ClientError, match="thought_signature"):
                await client.aio.models.generate_content(model="m", contents=said)
            await client.aio.aclose()

    with pytest.raises(ProtocolViolationError, match="thought_signature"):
        asyncio.run(talk())


def test_yaml_script_plays_on_live() -> None:
    script = script_from_yaml("- hears:\n- says: Good day.\n- goes_away: 5\n")

    async def talk() -> None:
        async with GeminiServer(script) as server, socket(server) as opened:
            await opened.send(json.dumps(SETUP))
            asked = {"turns": [{"role": "user", "parts": [{"text": "Hello."}]}], "turnComplete": True}
            await opened.send(json.dumps({"clientContent": asked}))
            assert (await until(opened, "goAway"))["timeLeft"] == "5s"

    asyncio.run(talk())

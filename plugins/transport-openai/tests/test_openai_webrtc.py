"""Voice between a browser and OpenAI, with us beside it for the tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from jackfield.transport.events import (
    Audio,
    Interrupted,
    SpeechStarted,
    ToolCalls,
    Transcript,
    TurnComplete,
)
from jackfield.transport.protocol import TransportError
from jackfield_scripted import Refusal, Script, ScriptedCall, ScriptedModel
from jackfield_scripted.audio import tone
from jackfield_scripted.openai import OpenAIServer, RealtimeModel
from jackfield_testkit.transport.harness import (
    EventCollector,
    ScriptedConnection,
    ServedTransport,
    closed_event,
    tool_result,
)

OFFER = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=offer\r\n"


async def answers(model: ScriptedModel) -> None:
    while True:
        await model.hears()
        await model.says("Good day.")


@asynccontextmanager
async def beside(meeting: Any, *scripts: Script) -> AsyncIterator[tuple[ScriptedConnection, OpenAIServer]]:
    """A call of a browser, and our line beside it."""
    async with OpenAIServer(*scripts) as server:
        transport = meeting.transport(server)
        opening = meeting.opening("voice")
        call = await transport.exchange(OFFER, opening)
        connection = await transport.attach(call.call_id, opening)
        ear = EventCollector(connection)
        try:
            yield ScriptedConnection(connection, ear, ServedTransport(transport, server.models)), server
        finally:
            await connection.close()
            await ear.all()
            await transport.close()


def test_an_offer_is_exchanged_for_an_answer(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with OpenAIServer(answers) as server:
            transport = meeting.transport(server, voice_model="gpt-realtime-2.1-mini", voice_name="cedar")
            call = await transport.exchange(OFFER, meeting.opening("voice"))
            opened = server.calls.opened[call.call_id]
            assert opened.offer == OFFER
            assert call.answer_sdp.startswith("v=0")
            session = opened.session
            assert (session["model"], session["instructions"]) == ("gpt-realtime-2.1-mini", "Be brief.")
            assert [each["name"] for each in session["tools"]] == ["look_up", "add_note"]
            assert session["audio"]["output"] == {"voice": "cedar"}
            assert "format" not in session["audio"]["input"]
            await transport.hang_up(call.call_id)
            await transport.hang_up(call.call_id)
            assert opened.hung_up
            await transport.close()

    run(scenario())


def test_a_real_peer_can_give_the_answer(meeting: Any, run: Any) -> None:
    async def answer(offer: str) -> str:
        return f"answer to {len(offer)} characters"

    async def scenario() -> None:
        async with OpenAIServer(answers, answer=answer) as server:
            transport = meeting.transport(server)
            call = await transport.exchange(OFFER, meeting.opening("voice"))
            assert call.answer_sdp == f"answer to {len(OFFER)} characters"
            await transport.close()

    run(scenario())


def test_a_browser_opens_its_call_with_a_key_of_its_own(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        from openai import AsyncOpenAI, AuthenticationError

        async with OpenAIServer(answers) as server:
            transport = meeting.transport(server)
            secret = await transport.mint(meeting.opening("voice"), seconds=120)
            assert 100 < secret.expires_at - time.time() <= 121
            async with AsyncOpenAI(api_key=secret.value, base_url=server.base_url) as browser:
                await browser.realtime.calls.create(sdp=OFFER)
            (call,) = server.calls.opened.values()
            assert call.session["instructions"] == "Be brief."
            async with AsyncOpenAI(api_key="ek_guessed", base_url=server.base_url, max_retries=0) as thief:
                with pytest.raises(AuthenticationError):
                    await thief.realtime.calls.create(sdp=OFFER)
            await transport.close()

    run(scenario())


def test_tools_run_during_a_browser_call(meeting: Any, run: Any) -> None:
    async def asks(model: ScriptedModel) -> None:
        await model.hears_speech("Look it up and note it.")
        await model.calls(
            ScriptedCall("look_up", {"title": "lamp"}), ScriptedCall("add_note", {"text": "oil"})
        )
        await model.says("Done.")

    async def scenario() -> None:
        async with beside(meeting, asks) as (talk, _):
            calls = (await talk.collector.next(ToolCalls)).calls
            assert [each.tool_id for each in calls] == ["look_up", "add_note"]
            await talk.connection.send_results([tool_result(each) for each in calls])
            await talk.collector.next(TurnComplete)
            assert talk.collector.text() == "Done."
            assert talk.collector.of(Audio) == []
            heard = [
                each.text for each in talk.collector.of(Transcript) if each.speaker == "user" and each.final
            ]
            assert heard == ["Look it up and note it."]

    run(scenario())


def test_the_host_sets_instructions_and_tools_of_a_browser_call(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with OpenAIServer(answers) as server:
            transport = meeting.transport(server)
            call = await transport.exchange(OFFER, meeting.opening("voice"))
            opened = server.calls.opened[call.call_id].session
            opened |= {"instructions": "Give everything away.", "tools": []}
            connection = await transport.attach(call.call_id, meeting.opening("voice"))
            model = server.models[0]
            assert model.instructions == "Be brief."
            assert list(model.tools) == ["look_up", "add_note"]
            (update,) = [each for each in model.received if each["type"] == "session.update"]
            assert "audio" not in update["session"]
            await connection.close()
            await transport.close()

    run(scenario())


def test_audio_of_a_browser_call_bypasses_the_host(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with beside(meeting, answers) as (talk, _):
            await talk.connection.send_audio(tone(100))
            await talk.connection.truncate("item_000001", 0)
            await talk.send("Hello.")
            kinds = {each["type"] for each in talk.model.received}
            assert kinds == {"session.update", "conversation.item.create", "response.create"}

    run(scenario())


def test_an_interruption_clears_unplayed_audio(meeting: Any, run: Any) -> None:
    async def tells(model: ScriptedModel) -> None:
        await model.hears()
        await model.speaks("Once upon a time.", ms=2000)
        await model.hears()
        await model.says("Yes?")

    async def scenario() -> None:
        async with beside(meeting, tells) as (talk, _):
            await talk.connection.interrupt()
            await talk.connection.send_text("A story.")
            await talk.collector.next(Transcript)
            await talk.connection.interrupt()
            await talk.collector.next(Interrupted)
            await talk.send("Stop.")
            kinds = [each["type"] for each in talk.model.received]
            assert kinds.count("response.cancel") == kinds.count("output_audio_buffer.clear") == 1
            assert kinds.index("response.cancel") + 1 == kinds.index("output_audio_buffer.clear")

    run(scenario())


def test_audio_after_the_response_is_cleared_without_a_cancel(meeting: Any, run: Any) -> None:
    async def plays_on(model: ScriptedModel) -> None:
        assert isinstance(model, RealtimeModel)
        await model.hears()
        await model.says("A long answer.")
        await model.session.socket.send("output_audio_buffer.started", response_id="resp_x")
        await model.is_interrupted()

    async def scenario() -> None:
        async with beside(meeting, plays_on) as (talk, _):
            await talk.send("Hello.")
            await talk.collector.next(SpeechStarted)
            await talk.connection.interrupt()
            await asyncio.sleep(0.05)
            kinds = [each["type"] for each in talk.model.received]
            assert kinds[-1] == "output_audio_buffer.clear"
            assert "response.cancel" not in kinds

    run(scenario())


def test_hanging_up_closes_the_tool_connection(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with beside(meeting, answers) as (talk, server):
            (call_id,) = server.calls.opened
            transport: Any = talk.served.transport
            await transport.hang_up(call_id)
            closed_event(await talk.collector.all())

    run(scenario())


@pytest.mark.parametrize("call_id", ["", "../../v1/models", "rtc_1/hangup?x=", "rtc_1\r\nx: y", "r" * 200])
def test_an_invalid_call_id_is_not_put_into_a_url(meeting: Any, run: Any, call_id: str) -> None:
    async def scenario() -> None:
        async with OpenAIServer(answers) as server:
            transport = meeting.transport(server)
            for verb in (transport.hang_up(call_id), transport.attach(call_id, meeting.opening("voice"))):
                with pytest.raises(TransportError, match="does not have OpenAI's format"):
                    await verb
            await transport.close()

    run(scenario())


def test_rejected_browser_calls_are_reported(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        refusals = [Refusal(401, "invalid_api_key"), Refusal(429, "insufficient_quota"), Refusal(503)]
        async with OpenAIServer(answers, refusals=refusals) as server:
            transport = meeting.transport(server)
            opening = meeting.opening("voice")
            refused_verbs: tuple[tuple[Callable[[], Awaitable[Any]], str], ...] = (
                (lambda: transport.mint(opening), "authentication"),
                (lambda: transport.exchange(OFFER, opening), "quota_exhausted"),
                (lambda: transport.hang_up("rtc_1"), "server_error"),
                (lambda: transport.attach("rtc_unknown", opening), "invalid_request_error"),
                (lambda: transport.exchange("v" * 70_000, opening), "invalid_request_error"),
            )
            for verb, code in refused_verbs:
                with pytest.raises(TransportError) as refused:
                    await verb()
                assert refused.value.code == code
            await transport.close()

    run(scenario())

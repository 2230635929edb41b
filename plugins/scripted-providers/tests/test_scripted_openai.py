"""The scripted OpenAI server with the official SDK as its client."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from jackfield_scripted import Refusal, ScriptedCall, ScriptedModel, UserInput, script_from_yaml
from jackfield_scripted.audio import milliseconds, silence, tone

openai = pytest.importorskip("openai")

from jackfield_scripted.openai import OpenAIServer, ProtocolViolationError  # noqa: E402

TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
SESSION = {"type": "realtime", "instructions": "Be brief.", "output_modalities": ["audio"]}


def async_test(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    def run(**given: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(30):
                await test(**given)

        asyncio.run(bounded())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    run.__signature__ = __import__("inspect").signature(test)  # type: ignore[attr-defined]
    return run


def client_of(server: OpenAIServer, key: str = "sk-test") -> Any:
    return openai.AsyncOpenAI(api_key=key, base_url=server.base_url, max_retries=0)


async def answers(model: ScriptedModel) -> None:
    while True:
        await model.hears()
        await model.says("Good day.")


async def until(connection: Any, kind: str) -> list[Any]:
    """Return every event up to the next one of that type."""
    events = []
    async for event in connection:
        events.append(event)
        if event.type == kind:
            break
    return events


@async_test
async def test_completion_without_streaming_calls_a_tool_and_answers() -> None:
    async def calls(model: ScriptedModel) -> None:
        assert await model.hears() == UserInput("Look it up.")
        assert await model.calls(ScriptedCall("look_up", {"q": 1}, "call_x")) == {"call_x": {"ok": True}}
        await model.says("Found.")

    async with OpenAIServer(calls) as server, client_of(server) as client:
        messages: list[Any] = [{"role": "user", "content": "Look it up."}]
        first = await client.chat.completions.create(model="m", messages=messages, tools=TOOLS)
        (call,) = first.choices[0].message.tool_calls
        assert (call.id, call.function.arguments) == ("call_x", '{"q":1}')
        assert first.choices[0].finish_reason == "tool_calls"
        messages += [
            first.choices[0].message.to_dict(),
            {"role": "tool", "tool_call_id": "call_x", "content": '{"ok": true}'},
        ]
        second = await client.chat.completions.create(model="m", messages=messages, tools=TOOLS)
        assert second.choices[0].message.content == "Found."
        assert second.usage.completion_tokens > 0
        assert [each.id for each in (await client.models.list()).data] == ["gpt-scripted"]


@async_test
async def test_each_conversation_plays_its_own_script() -> None:
    def named(name: str) -> Any:
        async def script(model: ScriptedModel) -> None:
            for number in (1, 2):
                await model.hears()
                await model.says(f"{name} {number}")

        return script

    async with OpenAIServer(named("first"), named("second")) as server, client_of(server) as client:

        async def ask(*said: str) -> str:
            roles = ("user", "assistant")
            messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
            return str(
                (await client.chat.completions.create(model="m", messages=messages))
                .choices[0]
                .message.content
            )

        assert await ask("Hello.") == "first 1"
        assert await ask("Another beginning.") == "second 1"
        assert await ask("Hello.", "first 1", "And?") == "first 2"
        assert await ask("Another beginning.", "second 1", "And?") == "second 2"
        assert len(server.models) == 2


@async_test
async def test_chat_history_with_open_calls_is_rejected() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "user", "content": "Well?"},
    ]

    async def provoke() -> None:
        async with OpenAIServer(answers) as server, client_of(server) as client:
            with pytest.raises(openai.BadRequestError):
                await client.chat.completions.create(model="m", messages=messages)

    with pytest.raises(ProtocolViolationError, match="no tool message"):
        await provoke()


@async_test
async def test_refusals_are_sent_before_any_script_runs() -> None:
    refusals = [
        Refusal(429, "rate_limit_exceeded", "Slow down.", retry_after=2),
        Refusal(401, "invalid_api_key"),
    ]
    async with OpenAIServer(answers, refusals=refusals) as server, client_of(server) as client:
        messages: Any = [{"role": "user", "content": "Hi."}]
        with pytest.raises(openai.RateLimitError) as slow:
            await client.chat.completions.create(model="m", messages=messages)
        assert slow.value.response.headers["retry-after"] == "2"
        with pytest.raises(openai.AuthenticationError):
            await client.chat.completions.create(model="m", messages=messages)
        done = await client.chat.completions.create(model="m", messages=messages)
        assert done.choices[0].message.content == "Good day."


@async_test
async def test_realtime_events_have_the_order_of_the_api() -> None:
    async with OpenAIServer(answers) as server, client_of(server) as client:
        async with client.realtime.connect(model="m") as connection:
            await connection.session.update(session=SESSION)
            await connection.conversation.item.create(
                item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}
            )
            await connection.response.create()
            events = await until(connection, "response.done")
        kinds = [event.type for event in events]
        pieces = ["response.output_audio_transcript.delta", "response.output_audio.delta"]
        assert kinds == [
            "session.created",
            "session.updated",
            "conversation.item.added",
            "conversation.item.done",
            "response.created",
            "response.output_item.added",
            "conversation.item.added",
            "response.content_part.added",
            *pieces * 3,
            "response.output_audio.done",
            "response.output_audio_transcript.done",
            "response.content_part.done",
            "conversation.item.done",
            "response.output_item.done",
            "response.done",
        ]
        sound = b"".join(base64.b64decode(each.delta) for each in events if each.type == pieces[1])
        assert sound == tone(120)
        assert events[-1].response.output[0].content[0].transcript == "Good day."
        assert server.models[0].instructions == "Be brief."


@async_test
async def test_calls_of_a_cancelled_response_are_marked_incomplete() -> None:
    async def hesitates(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(
            ScriptedCall("look_up", {"q": 1}), ScriptedCall("look_up", {"q": 2}), incomplete=True
        )

    async with OpenAIServer(hesitates) as server, client_of(server) as client:
        async with client.realtime.connect(model="m") as connection:
            await connection.response.create()
            events = await until(connection, "response.done")
        done = [each for each in events if each.type == "response.function_call_arguments.done"]
        items = [each.item.status for each in events if each.type == "response.output_item.done"]
        assert [each.arguments for each in done] == ['{"q":1}', '{"q":2}']
        assert items == ["completed", "incomplete"]
        assert events[-1].response.status == "cancelled"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"type": "response.create"}, "conversation_already_has_active_response"),
        (
            {
                "type": "conversation.item.truncate",
                "item_id": "ITEM",
                "content_index": 0,
                "audio_end_ms": 501,
            },
            "invalid_value",
        ),
        ({"type": "conversation.item.delete", "item_id": "item_x"}, "item_delete_invalid_item_id"),
        ({"type": "session.update", "session": {"type": "transcription"}}, "invalid_request_error"),
        (
            {"type": "session.update", "session": {"type": "realtime", "audio": {"output": {"voice": "x"}}}},
            "",
        ),
        (
            {
                "type": "conversation.item.create",
                "item": {"type": "function_call_output", "call_id": "call_9", "output": "{}"},
            },
            "invalid_tool_call_id",
        ),
        ({"type": "input_audio_buffer.append", "audio": "%%%"}, "invalid_request_error"),
        ({"type": "output_audio_buffer.clear"}, "invalid_value"),
        ({"type": "response.crate"}, "invalid_value"),
    ],
)
@async_test
async def test_protocol_violations_are_rejected_and_raised(message: Any, code: str) -> None:
    async def speaks(model: ScriptedModel) -> None:
        await model.hears()
        await model.speaks("Once upon a time.", ms=500)

    async def provoke(**allowed: Any) -> str:
        async with OpenAIServer(speaks, **allowed) as server, client_of(server) as client:
            async with client.realtime.connect(model="m") as connection:
                await connection.response.create()
                for _ in range(5):
                    item = (await until(connection, "response.output_audio.delta"))[-1].item_id
                await connection.send({k: item if v == "ITEM" else v for k, v in message.items()})
                await connection.send({"type": "input_audio_buffer.clear"})
                events = await until(connection, "input_audio_buffer.cleared")
            return next((str(each.error.code) for each in events if each.type == "error"), "")

    if not code:
        assert await provoke() == ""
        return
    assert await provoke(allow=[code]) == code
    with pytest.raises(ProtocolViolationError, match=code):
        await provoke()


@async_test
async def test_voice_is_fixed_after_the_first_audio() -> None:
    async with (
        OpenAIServer(answers, allow=["cannot_update_voice"]) as server,
        client_of(server) as client,
        client.realtime.connect(model="m") as connection,
    ):
        for voice in ("marin", "cedar"):
            await connection.session.update(
                session={"type": "realtime", "audio": {"output": {"voice": voice}}}
            )
        await connection.response.create()
        await until(connection, "response.done")
        await connection.session.update(session={"type": "realtime", "audio": {"output": {"voice": "ash"}}})
        (refused,) = await until(connection, "error")
        assert refused.error.code == "cannot_update_voice"


@async_test
async def test_script_error_is_raised_when_the_block_ends() -> None:
    async def fails(model: ScriptedModel) -> None:
        assert (await model.hears()).text == "something else"

    async def provoke() -> None:
        async with OpenAIServer(fails) as server, client_of(server) as client:
            connection = await client.realtime.connect(model="m").enter()
            await connection.response.create()
            with pytest.raises(Exception, match="1011"):
                await until(connection, "response.done")

    with pytest.raises(AssertionError, match="something else"):
        await provoke()


@async_test
async def test_realtime_socket_needs_a_key_and_either_a_model_or_a_call() -> None:
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus

    key = {"Authorization": "Bearer sk-test"}
    async with OpenAIServer(answers) as server:
        address = server.base_url.replace("http", "ws") + "/realtime"
        for query, headers, status in (
            ("?model=m", {}, 401),
            ("", key, 400),
            ("?model=m&call_id=rtc_1", key, 400),
            ("?call_id=rtc_1", key, 404),
        ):
            with pytest.raises(InvalidStatus) as refused:
                await connect(address + query, additional_headers=headers)
            assert refused.value.response.status_code == status


@async_test
async def test_yaml_script_plays_on_realtime() -> None:
    script = script_from_yaml(
        """
        - hears:
        - calls:
            - look_up: {q: lamp}
            - {tool: look_up, arguments: "{broken", id: call_b}
        - says: {text: Done., pieces: 1}
        """
    )
    async with (
        OpenAIServer(script) as server,
        client_of(server) as client,
        client.realtime.connect(model="m") as connection,
    ):
        await connection.response.create()
        done = (await until(connection, "response.done"))[-1].response
        assert [each.arguments for each in done.output] == ['{"q":"lamp"}', "{broken"]
        for call in done.output:
            output = {"type": "function_call_output", "call_id": call.call_id, "output": "{}"}
            await connection.conversation.item.create(item=output)
        await connection.response.create()
        done = (await until(connection, "response.done"))[-1].response
        assert done.output[0].content[0].transcript == "Done."


def test_every_millisecond_of_the_tone_differs() -> None:
    whole = tone(300)
    assert len(whole) == 14_400
    assert milliseconds(len(whole)) == 300
    assert b"".join(tone(20, start_ms=place) for place in range(0, 300, 20)) == whole
    assert len({whole[place : place + 48] for place in range(0, len(whole), 48)}) == 300
    assert len(tone(100, rate=16_000)) == 3_200
    assert silence(10) == bytes(480)

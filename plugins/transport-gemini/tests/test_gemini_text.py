"""Text: the history in every request, and the events of the answers."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from gemini_connections import envelope, run, text
from jackfield.transport.events import Interrupted, ProviderError, TextDelta, ToolCalls, TurnComplete, Usage
from jackfield.transport.protocol import ToolResult
from jackfield_scripted import Refusal, ScriptedCall, ScriptedModel
from jackfield_scripted.gemini import GeminiOptions, TextModel


def test_thoughts_are_returned_with_their_signatures_and_not_shown() -> None:
    async def thinks(model: TextModel) -> None:
        await model.hears()
        await model.thinks("The user wants a lamp.")
        await model.calls(
            *(ScriptedCall("look_up", {"title": "lamp"}, f"call-{number}") for number in (1, 2))
        )
        await model.says("Here it is.")
        await model.hears()
        await model.says("You are welcome.")

    async def talk() -> None:
        async with text(thinks) as line:
            await line.connection.send_text("A lamp!")
            calls = await line.calls()
            await line.connection.send_results(
                [ToolResult(each.call_id or "", each.tool_id, envelope()) for each in calls]
            )
            await line.next(TurnComplete)
            await line.connection.send_text("Thank you.")
            await line.next(TurnComplete, 2)
            assert "".join(each.text for each in line.of(TextDelta)) == "Here it is.You are welcome."
            # The server rejects a history in which anything of the model is lost or changed.
            asked = [part for part in line.model.received[1]["parts"] if "functionCall" in part]
            assert [part["functionCall"]["id"] for part in asked] == ["call-1", "call-2"]
            assert "thoughtSignature" in asked[0]
            assert "thoughtSignature" not in asked[1]
            assert line.model.received[1]["parts"][0] == {"text": "The user wants a lamp.", "thought": True}

    run(talk())


def test_declarations_and_instructions_go_with_every_request() -> None:
    async def answers(model: ScriptedModel) -> None:
        for _ in range(2):
            await model.hears()
            await model.says("Yes.")

    async def talk() -> None:
        async with text(answers) as line:
            for number in (1, 2):
                await line.connection.send_text("Hello.")
                await line.next(TurnComplete, number)
                assert line.model.instructions == "You are a clerk."
                assert line.model.tools["look_up"]["parametersJsonSchema"]["type"] == "object"

    run(talk())


def test_calls_without_ids_are_answered_in_their_order() -> None:
    got: list[Any] = []

    async def asks(model: ScriptedModel) -> None:
        await model.hears()
        got.extend(
            (await model.calls(*(ScriptedCall("look_up", {"title": title}) for title in "ab"))).values()
        )
        await model.says("Done.")

    async def talk() -> None:
        async with text(asks, options=GeminiOptions(call_ids=False)) as line:
            await line.connection.send_text("Look both up.")
            calls = await line.calls()
            assert [each.call_id for each in calls] == [None, None]
            for call in calls:
                data = orjson.loads(call.arguments)
                await line.connection.send_results([ToolResult("", call.tool_id, envelope(data=data))])
            await line.next(TurnComplete)
            assert [each["data"] for each in got] == [{"title": "a"}, {"title": "b"}]

    run(talk())


def test_a_message_during_a_tool_call_follows_its_result() -> None:
    async def asks(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("look_up", {}, "call-1"))
        await model.says("Done.")

    async def talk() -> None:
        async with text(asks) as line:
            await line.connection.send_text("Look it up.")
            await line.calls()
            await line.connection.send_text("And hurry.")
            await line.connection.send_results([ToolResult("call-1", "look_up", envelope())])
            await line.next(TurnComplete)
            known = ("text", "functionCall", "functionResponse")
            parts = [part for each in line.model.received for part in each["parts"]]
            kinds = [kind for part in parts for kind in known if kind in part]
            assert kinds == ["text", "functionCall", "functionResponse", "text"]

    run(talk())


def test_a_result_without_response_waits_for_the_next_user_message() -> None:
    async def asks(model: TextModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("look_up", {}, "call-1"))
        await model.says("Done.")

    async def talk() -> None:
        async with text(asks) as line:
            await line.connection.send_text("Look it up.")
            await line.calls()
            await line.connection.send_results([ToolResult("call-1", "look_up", envelope())], respond=False)
            await asyncio.sleep(0.05)
            assert len(line.model.requests) == 1
            await line.connection.send_text("Well?")
            await line.next(TurnComplete)
            assert "Well?" in str(line.model.received)

    run(talk())


@pytest.mark.parametrize(
    ("finish", "said", "code"),
    [
        ("SAFETY", "", "content_refused"),
        ("PROHIBITED_CONTENT", "Once", "content_refused"),
        ("RECITATION", "Once", "content_refused"),
        ("MALFORMED_FUNCTION_CALL", "", "server_error"),
        ("MAX_TOKENS", "", "server_error"),
        ("MAX_TOKENS", "Once upon", None),
        ("STOP", "", None),
    ],
)
def test_finish_reasons_are_mapped_to_events(finish: str, said: str, code: str | None) -> None:
    async def stops(model: TextModel) -> None:
        await model.hears()
        await model.stops(finish, said)
        await model.hears()
        await model.says("Good day.")

    async def talk() -> None:
        async with text(stops) as line:
            await line.connection.send_text("Say something.")
            await line.until(lambda: line.of(ProviderError, TurnComplete))
            assert [each.code for each in line.of(ProviderError)] == ([code] if code else [])
            # A failed answer is still pending, so its turn is not complete.
            assert len(line.of(TurnComplete)) == (0 if code else 1)
            await line.connection.send_text("Hello.")
            await line.until(lambda: "Good day." in "".join(each.text for each in line.of(TextDelta)))

    run(talk())


def test_calls_of_a_truncated_answer_are_not_delivered() -> None:
    async def too_long(model: TextModel) -> None:
        await model.hears()
        exchange = model.requests[-1]
        exchange.send({"text": "I order "})
        exchange.send({"functionCall": {"id": "call-1", "name": "shop_order", "args": {"item": "all"}}})
        exchange.send(finish="MAX_TOKENS")
        model._current = None
        await model.hears()
        await model.says("Good day.")

    async def talk() -> None:
        async with text(too_long) as line:
            await line.connection.send_text("Order everything.")
            await line.next(TurnComplete)
            await line.connection.send_text("Hello.")
            await line.next(TurnComplete, 2)
            assert line.of(ToolCalls) == []

    run(talk())


def test_a_blocked_message_does_not_block_the_next() -> None:
    async def blocks(model: TextModel) -> None:
        await model.hears()
        await model.blocks()

    async def answers(model: TextModel) -> None:
        await model.hears()
        await model.says("Good day.")

    async def talk() -> None:
        async with text(blocks, answers) as line:
            await line.connection.send_text("Something terrible.")
            assert (await line.next(ProviderError)).code == "content_refused"
            await line.connection.send_text("Hello.")
            await line.next(TurnComplete)
            assert "terrible" not in str(line.model.received)

    run(talk())


def test_an_interruption_closes_the_stream_and_keeps_what_was_said() -> None:
    async def talks(model: TextModel) -> None:
        await model.hears()
        exchange = model.requests[-1]
        exchange.send({"text": "Once upon "})
        exchange.send({"text": "a time "})
        exchange.send({"functionCall": {"id": "call-1", "name": "shop_order", "args": {}}})
        while not exchange.disconnected:  # noqa: ASYNC110
            await asyncio.sleep(0.002)
        model._current = None
        await model.hears()
        await model.says("Yes?")

    async def talk() -> None:
        async with text(talks) as line:
            await line.connection.send_text("A story!")
            await line.until(lambda: len(line.of(TextDelta)) == 2)
            await line.connection.interrupt()
            await line.next(Interrupted)
            await line.connection.send_text("Stop.")
            await line.next(TurnComplete)
            said = [part for each in line.model.received for part in each["parts"]]
            assert said == [{"text": "A story!"}, {"text": "Once upon a time "}, {"text": "Stop."}]
            assert line.of(ToolCalls) == []

    run(talk())


def test_a_rate_limit_includes_the_retry_delay_and_keeps_the_connection() -> None:
    async def answers(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("Good day.")

    async def talk() -> None:
        limit = Refusal(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted.", retry_after=37)
        async with text(answers, refusals=[limit]) as line:
            await line.connection.send_text("Hello.")
            trouble = await line.next(ProviderError)
            assert (trouble.code, "37 s" in trouble.detail) == ("rate_limit_exceeded", True)
            await line.connection.send_context("Answer now.", respond=True)
            await line.next(TurnComplete)
            assert "Hello." in str(line.model.received)

    run(talk())


def test_tokens_of_an_answer_are_counted_once() -> None:
    async def answers(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("One.", pieces=1)

    async def talk() -> None:
        async with text(answers) as line:
            await line.connection.send_text("Count.")
            await line.next(TurnComplete)
            (usage,) = line.of(Usage)
            assert usage.output_tokens == 2
            assert usage.input_tokens > 0

    run(talk())

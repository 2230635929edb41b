"""Voice: calls and their results over Gemini Live."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from gemini_connections import envelope, live, run
from jackfield.transport.events import (
    Audio,
    Interrupted,
    ToolCalls,
    ToolCallsCancelled,
    TurnComplete,
)
from jackfield.transport.protocol import ToolResult, is_streaming
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_scripted.gemini import GeminiOptions, LiveModel


def test_a_session_cannot_be_resumed_while_a_call_is_open() -> None:
    async def asks(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("look_up", {}, "call-1"))
        await model.says("Done.")

    async def talk() -> None:
        async with live(asks) as line:
            await line.until(lambda: line.connection.resume)
            await line.connection.send_text("Look it up.")
            await line.calls()
            assert line.connection.resume is None
            await line.connection.send_results([ToolResult("call-1", "look_up", envelope())])
            await line.next(TurnComplete)
            await line.until(lambda: line.connection.resume)

    run(talk())


def test_cancelled_calls_are_reported_and_get_no_result() -> None:
    async def changes_its_mind(model: LiveModel) -> None:
        await model.hears()
        asking = asyncio.create_task(
            model.calls(
                ScriptedCall("shop_order", {"item": "oil"}, "call-1"), ScriptedCall("look_up", {}, "call-2")
            )
        )
        await model.inbox.until(lambda: True if len(model.inbox.open) == 2 else None)
        await asyncio.sleep(0.02)
        await model.cancels("call-1", "call-2")
        await asking
        await model.is_interrupted()
        await model.hears()
        await model.says("Fine.")

    async def talk() -> None:
        async with live(changes_its_mind) as line:
            await line.connection.send_text("Order oil.")
            await line.calls()
            assert (await line.next(ToolCallsCancelled)).call_ids == ("call-1", "call-2")
            stopped = orjson.dumps({"ok": False, "error": {"type": "TRANSIENT", "partialSideEffects": False}})
            await line.connection.send_results(
                [
                    ToolResult("call-1", "shop.order", envelope(data={"order": 7})),
                    ToolResult("call-2", "look_up", stopped),
                ]
            )
            await line.connection.send_text("What happened?")
            await line.next(TurnComplete)
            # No model waits for the response, but the effect of the call has to be reported.
            assert line.model.inbox.responses == []
            told = str(line.model.received)
            assert '"order":7' in told
            assert "TRANSIENT" not in told

    run(talk())


@pytest.mark.parametrize("where", ["both", "content"])
def test_a_call_is_delivered_once_wherever_it_appears(where: Any) -> None:
    async def asks(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(*(ScriptedCall("look_up", {"title": title}, f"call-{title}") for title in "ab"))
        await model.says("Done.")

    async def talk() -> None:
        async with live(asks, options=GeminiOptions(calls_in=where)) as line:
            await line.connection.send_text("Look it up.")
            calls = await line.calls()
            await line.connection.send_results(
                [ToolResult(each.call_id or "", each.tool_id, envelope()) for each in calls]
            )
            await line.next(TurnComplete)
            made = [call.call_id for event in line.of(ToolCalls) for call in event.calls]
            assert made == ["call-a", "call-b"]

    run(talk())


@pytest.mark.parametrize("where", ["tool_call", "both"])
def test_calls_without_ids_get_their_results(where: Any) -> None:
    got: list[Any] = []

    async def asks(model: ScriptedModel) -> None:
        await model.hears()
        results = await model.calls(*(ScriptedCall("look_up", {"title": title}) for title in "ab"))
        got.extend(results.values())
        await model.says("Done.")

    async def talk() -> None:
        async with live(asks, options=GeminiOptions(call_ids=False, calls_in=where)) as line:
            await line.connection.send_text("Look it up.")
            calls = await line.calls()
            assert [each.call_id for each in calls] == [None, None]
            await line.connection.send_results(
                [ToolResult("", each.tool_id, envelope(data=orjson.loads(each.arguments))) for each in calls]
            )
            await line.next(TurnComplete)
            assert [each["data"]["title"] for each in got] == ["a", "b"]

    run(talk())


def test_provider_names_are_mapped_back_to_tool_ids() -> None:
    async def asks(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("shop_order", {"item": "oil"}, "call-1"))
        await model.says("Done.")

    async def talk() -> None:
        async with live(asks) as line:
            await line.connection.send_text("Order oil.")
            (call,) = await line.calls()
            assert (call.tool_id, orjson.loads(call.arguments)) == ("shop.order", {"item": "oil"})
            await line.connection.send_results([ToolResult("call-1", "shop.order", envelope())])
            await line.next(TurnComplete)
            (response,) = line.model.inbox.responses
            assert (response["id"], response["name"]) == ("call-1", "shop_order")
            # A model that waits needs no scheduling, and some models reject one.
            assert "scheduling" not in response

    run(talk())


def test_results_of_non_blocking_calls_have_a_scheduling() -> None:
    async def asks(model: ScriptedModel) -> None:
        for number in (1, 2):
            await model.hears()
            await model.calls(ScriptedCall("look_up", {}, f"call-{number}"))
            await model.says("Done.")

    async def talk() -> None:
        settings = {"calls": "non_blocking", "scheduling": "interrupt"}
        async with live(asks, settings=settings, options=GeminiOptions(blocking=False)) as line:
            assert line.model.tools["look_up"]["behavior"] == "NON_BLOCKING"
            for number, respond in ((1, True), (2, False)):
                await line.connection.send_text("Look it up.")
                (call,) = await line.calls(number)
                result = ToolResult(call.call_id or "", call.tool_id, envelope())
                await line.connection.send_results([result], respond=respond)
                await line.next(TurnComplete, number)
            assert [each["scheduling"] for each in line.model.inbox.responses] == ["INTERRUPT", "SILENT"]

    run(talk())


def test_context_waits_until_it_interrupts_nothing() -> None:
    async def speaks(model: LiveModel) -> None:
        await model.hears()
        await model.speaks("Once upon a time", ms=80)
        await asyncio.sleep(0.1)
        assert "map" not in str(model.received)
        await model.ends_speaking()
        await model.hears()
        await model.says("I see it.")

    async def talk() -> None:
        async with live(speaks) as line:
            await line.connection.send_text("A story!")
            await line.next(Audio)
            await line.connection.send_context("The user opened the map.")
            await line.next(TurnComplete)
            assert line.of(Interrupted) == []
            await line.connection.send_text("Do you see it?")
            await line.next(TurnComplete, 2)
            received = str(line.model.received)
            assert 0 <= received.index("opened the map") < received.index("Do you see it?")

    run(talk())


def test_context_does_not_stop_a_pending_answer() -> None:
    async def thinks(model: LiveModel) -> None:
        await model.hears()
        await asyncio.sleep(0.1)
        assert "map" not in str(model.received)
        await model.says("Here it is.")

    async def talk() -> None:
        async with live(thinks) as line:
            await line.connection.send_text("Where is it?")
            await line.connection.send_context("The user opened the map.")
            await line.next(TurnComplete)
            await line.until(lambda: "opened the map" in str(line.model.received))

    run(talk())


def test_parts_of_a_result_continue_its_call_and_stop_with_it() -> None:
    async def asks(model: LiveModel) -> None:
        await model.hears()
        calling = asyncio.create_task(model.calls(ScriptedCall("look_up", {}, "call-1")))
        await model.inbox.until(lambda: True if len(model.inbox.parts.get("call-1", ())) == 2 else None)
        await model.says("One moment.")
        # A model that got a part does not wait for the call, so a note for it does not wait either.
        await model.inbox.until(lambda: True if "opened the map" in str(model.received) else None)
        assert "call-1" in model.inbox.open
        assert (await calling)["call-1"]["data"] == {"pages": 2}
        await model.says("Done.")
        await model.hears()
        await model.says("Still here.")

    async def talk() -> None:
        options = GeminiOptions(blocking=False)
        async with live(asks, settings={"calls": "non_blocking"}, options=options) as line:
            connection: Any = line.connection
            await connection.send_text("Look it up.")
            await line.calls()
            await connection.send_context("The user opened the map.")
            await connection.send_partial(ToolResult("unknown", "look_up", envelope()))
            for page in (1, 2):
                await connection.send_partial(ToolResult("call-1", "look_up", orjson.dumps({"page": page})))
            await line.until(lambda: "opened the map" in str(line.model.received))
            await connection.send_results([ToolResult("call-1", "look_up", envelope(data={"pages": 2}))])
            await line.next(TurnComplete, 2)
            await connection.send_partial(ToolResult("call-1", "look_up", orjson.dumps({"page": 3})))
            await connection.send_text("And now?")
            await line.next(TurnComplete, 3)
            inbox = line.model.inbox
            assert inbox.parts == {"call-1": [{"page": 1}, {"page": 2}]}
            assert [each["willContinue"] for each in inbox.responses] == [True, True, False]

    run(talk())


def test_a_connection_whose_model_waits_takes_no_parts() -> None:
    async def talk() -> None:
        async with live() as waiting, live(settings={"calls": "non_blocking"}) as talking:
            assert not is_streaming(waiting.connection)
            assert is_streaming(talking.connection)

    run(talk())

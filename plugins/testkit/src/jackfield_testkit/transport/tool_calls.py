"""Tests of tool calls from the model and of their results."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from jackfield.transport.events import Interrupted, ProviderError, ToolCalls, ToolCallsCancelled, TurnComplete
from jackfield_scripted import ScriptedCall, ScriptedModel

from jackfield_testkit.suite import expect, expect_equal
from jackfield_testkit.transport.harness import TransportHarness, async_test, tool_result


class ToolCallTests:
    """Calls from the model and their results."""

    @async_test
    async def test_parallel_calls_are_one_event(self, harness: TransportHarness) -> None:
        """The calls of one message are one event; their results reach the model, which continues."""
        got: dict[str, Any] = {}

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            got.update(
                await model.calls(
                    ScriptedCall("look_up", {"title": "lamp"}, "call_1"),
                    ScriptedCall("add_note", {"text": "oil"}, "call_2"),
                )
            )
            await model.says("Noted.")

        async with harness.connect(script) as link:
            await link.connection.send_text("Look the lamp up and note the oil.")
            calls = (await link.collector.next(ToolCalls)).calls
            expect_equal([each.tool_id for each in calls], ["look_up", "add_note"], "the tools of the calls")
            expect_equal(
                [_json(each.arguments) for each in calls],
                [{"title": "lamp"}, {"text": "oil"}],
                "the arguments",
            )
            await link.connection.send_results([tool_result(each, {"n": n}) for n, each in enumerate(calls)])
            await link.collector.next(TurnComplete)
            expect_equal(
                list(got.values()),
                [{"ok": True, "data": {"n": n}} for n in (0, 1)],
                "the results that the model got",
            )
            expect_equal(link.collector.text(), "Noted.", "the model's text")
            expect_equal(len(link.collector.of(ToolCalls)), 1, "the number of ToolCalls events")

    @async_test
    async def test_model_continues_after_the_last_result(self, harness: TransportHarness) -> None:
        """Results may be sent one by one, in any order; the model responds after the last."""

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            await model.calls(
                ScriptedCall("look_up", {"title": "a"}), ScriptedCall("look_up", {"title": "b"})
            )
            await model.says("Found both.")

        async with harness.connect(script) as link:
            await link.connection.send_text("Look both up.")
            first, second = (await link.collector.next(ToolCalls)).calls
            await link.connection.send_results([tool_result(second)])
            await asyncio.sleep(0.05)
            expect_equal(link.collector.text(), "", "the model's text before the last result")
            await link.connection.send_results([tool_result(first)])
            await link.collector.next(TurnComplete)
            expect_equal(link.collector.text(), "Found both.", "the model's text")

    @async_test
    async def test_model_can_call_again_after_a_result(self, harness: TransportHarness) -> None:
        """A model can make further calls after each result."""

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            for title in ("a", "b", "c"):
                await model.calls(ScriptedCall("look_up", {"title": title}))
            await model.says("Three.")

        async with harness.connect(script) as link:
            await link.connection.send_text("Look three things up.")
            for title in ("a", "b", "c"):
                (call,) = (await link.collector.next(ToolCalls)).calls
                expect_equal(_json(call.arguments), {"title": title}, "the arguments")
                await link.connection.send_results([tool_result(call)])
            await link.collector.next(TurnComplete)
            expect_equal(link.collector.text(), "Three.", "the model's text")

    @async_test
    async def test_malformed_arguments_are_delivered_unchanged(self, harness: TransportHarness) -> None:
        """Malformed arguments are delivered as written, so that the call can be answered."""
        texts = ['{"title": "lamp"', "", '{"title": NaN}', "[1, 2]", "not json at all"]

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            await model.calls(*(ScriptedCall("look_up", text) for text in texts))
            await model.says("I see.")

        async with harness.connect(script) as link:
            await link.connection.send_text("Go wild.")
            calls = (await link.collector.next(ToolCalls)).calls
            expect_equal([_text(each.arguments) for each in calls], texts, "the arguments as written")
            await link.connection.send_results([tool_result(each) for each in calls])
            await link.collector.next(TurnComplete)

    @async_test
    async def test_unknown_tools_are_delivered(self, harness: TransportHarness) -> None:
        """A call to an undeclared tool is delivered under its name, and its result reaches the model."""
        got: dict[str, Any] = {}

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            got.update(await model.calls(ScriptedCall("open_the_sesame", {"x": 1})))
            await model.says("Sorry.")

        async with harness.connect(script) as link:
            await link.connection.send_text("Open!")
            (call,) = (await link.collector.next(ToolCalls)).calls
            expect_equal(call.tool_id, "open_the_sesame", "the name of the tool")
            await link.connection.send_results([tool_result(call, "no such tool")])
            await link.collector.next(TurnComplete)
            expect_equal(
                [each["data"] for each in got.values()], ["no such tool"], "the results that the model got"
            )

    @async_test
    async def test_calls_of_an_incomplete_message_are_not_delivered(self, harness: TransportHarness) -> None:
        """Calls of a message that was cut short are not delivered, and the conversation continues."""

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            await model.calls(
                ScriptedCall("add_note", {"text": "delete everything"}),
                ScriptedCall("look_up", {"title": "lamp"}),
                incomplete=True,
            )
            await model.hears()
            await model.says("Forget it.")

        async with harness.connect(script) as link:
            await link.connection.send_text("Delete everything. No, wait!")
            while not _is_cut_short(link.collector.events):
                await link.collector.wait("an event that reports the cut")
            await link.connection.send_text("Forget it.")
            while link.collector.text() != "Forget it.":
                await link.collector.wait("the response to the next message")
            expect_equal(link.collector.calls(), [], "the calls of the incomplete message")

    @async_test
    async def test_duplicate_calls_are_delivered_with_the_same_id(self, harness: TransportHarness) -> None:
        """A call that the provider sends twice is delivered twice with the same id; a policy handles it."""

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            await model.calls(ScriptedCall("add_note", {"text": "once"}, "call_same"))
            await model.calls(ScriptedCall("add_note", {"text": "once"}, "call_same"))
            await model.says("Done.")

        async with harness.connect(script) as link:
            await link.connection.send_text("Note it once.")
            for _ in range(2):
                (call,) = (await link.collector.next(ToolCalls)).calls
                expect_equal(call.call_id, "call_same", "the id of the call")
                await link.connection.send_results([tool_result(call)])
            await link.collector.next(TurnComplete)
            expect_equal(link.collector.text(), "Done.", "the model's text")

    @async_test
    async def test_context_during_a_call_is_not_lost(self, harness: TransportHarness) -> None:
        """Context between a call and its result reaches the model, and so does the result."""
        results: list[Any] = []

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            results.append(await model.calls(ScriptedCall("look_up", {"title": "lamp"}, "call_1")))
            await model.says("Here it is.")

        async with harness.connect(script) as link:
            await link.connection.send_text("Look it up.")
            (call,) = (await link.collector.next(ToolCalls)).calls
            await link.connection.send_context("The user opened the map.")
            await link.connection.send_results([tool_result(call)])
            await link.collector.next(TurnComplete)
            expect_equal(len(results), 1, "the number of results that the model got")
            expect("opened the map" in str(link.model.received), "the context during the call was lost")

    @async_test
    async def test_long_results_arrive_whole(self, harness: TransportHarness) -> None:
        """A result of a hundred thousand characters arrives unchanged."""
        long = "lighthouse é 灯台 " * 6_000
        got: dict[str, Any] = {}

        async def script(model: ScriptedModel) -> None:
            await model.hears()
            got.update(await model.calls(ScriptedCall("look_up", {"title": "all"})))
            await model.says("Much.")

        async with harness.connect(script) as link:
            await link.connection.send_text("Everything, please.")
            (call,) = (await link.collector.next(ToolCalls)).calls
            await link.connection.send_results([tool_result(call, long)])
            await link.collector.next(TurnComplete)
            expect_equal([each["data"] for each in got.values()], [long], "the results that the model got")


def _text(arguments: str | bytes) -> str:
    return arguments if isinstance(arguments, str) else arguments.decode()


def _json(arguments: str | bytes) -> Any:
    return orjson.loads(arguments)


def _is_cut_short(events: list[Any]) -> bool:
    return any(
        isinstance(each, Interrupted | TurnComplete | ProviderError | ToolCallsCancelled) for each in events
    )

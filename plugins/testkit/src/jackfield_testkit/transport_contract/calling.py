"""Tool calls out of the model, results into it."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from jackfield.transport.events import Interrupted, ToolCalls, ToolCallsCancelled, Trouble, TurnComplete
from jackfield_scripted import Call, ScriptedModel

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.transport_contract.stage import Stage, on_a_loop, result


class CallTests:
    """Every call reaches us once, and every result reaches the model."""

    @on_a_loop
    async def test_parallel_calls_come_together(self, stage: Stage) -> None:
        """The calls of one message are one event; their results reach the model, and it goes on."""
        got: dict[str, Any] = {}

        async def asks(model: ScriptedModel) -> None:
            await model.hears()
            got.update(
                await model.calls(
                    Call("look_up", {"title": "lamp"}, "call_1"), Call("add_note", {"text": "oil"}, "call_2")
                )
            )
            await model.says("Noted.")

        async with stage.talk(asks) as talk:
            await talk.connection.send_text("Look the lamp up and note the oil.")
            calls = (await talk.ear.next(ToolCalls)).calls
            same([each.tool_id for each in calls], ["look_up", "add_note"], "the tools of the message")
            same([_json(each.arguments) for each in calls], [{"title": "lamp"}, {"text": "oil"}], "arguments")
            await talk.connection.send_results([result(each, {"n": n}) for n, each in enumerate(calls)])
            await talk.ear.next(TurnComplete)
            same(list(got.values()), [{"ok": True, "data": {"n": n}} for n in (0, 1)], "what the model got")
            same(talk.ear.words(), "Noted.", "what the model said")
            same(len(talk.ear.of(ToolCalls)), 1, "messages with calls")

    @on_a_loop
    async def test_the_model_goes_on_when_all_results_are_there(self, stage: Stage) -> None:
        """Results may come one by one, in any order; only the last lets the model speak."""

        async def asks(model: ScriptedModel) -> None:
            await model.hears()
            await model.calls(Call("look_up", {"title": "a"}), Call("look_up", {"title": "b"}))
            await model.says("Both are there.")

        async with stage.talk(asks) as talk:
            await talk.connection.send_text("Look both up.")
            first, second = (await talk.ear.next(ToolCalls)).calls
            await talk.connection.send_results([result(second)])
            await asyncio.sleep(0.05)
            same(talk.ear.words(), "", "what the model said before all results were there")
            await talk.connection.send_results([result(first)])
            await talk.ear.next(TurnComplete)
            same(talk.ear.words(), "Both are there.", "what the model said")

    @on_a_loop
    async def test_calls_after_calls(self, stage: Stage) -> None:
        """A model that calls again after a result is answered again."""

        async def asks(model: ScriptedModel) -> None:
            await model.hears()
            for title in ("a", "b", "c"):
                await model.calls(Call("look_up", {"title": title}))
            await model.says("Three.")

        async with stage.talk(asks) as talk:
            await talk.connection.send_text("Look three things up.")
            for title in ("a", "b", "c"):
                (call,) = (await talk.ear.next(ToolCalls)).calls
                same(_json(call.arguments), {"title": title}, "the arguments")
                await talk.connection.send_results([result(call)])
            await talk.ear.next(TurnComplete)
            same(talk.ear.words(), "Three.", "what the model said")

    @on_a_loop
    async def test_malformed_arguments_are_passed_on(self, stage: Stage) -> None:
        """What the model wrote comes as it is, so that it can be answered instead of being lost."""
        texts = ['{"title": "lamp"', "", '{"title": NaN}', "[1, 2]", "not json at all"]

        async def writes(model: ScriptedModel) -> None:
            await model.hears()
            await model.calls(*(Call("look_up", text) for text in texts))
            await model.says("I see.")

        async with stage.talk(writes) as talk:
            await talk.connection.send_text("Go wild.")
            calls = (await talk.ear.next(ToolCalls)).calls
            same([_text(each.arguments) for each in calls], texts, "the arguments as they were written")
            await talk.connection.send_results([result(each) for each in calls])
            await talk.ear.next(TurnComplete)

    @on_a_loop
    async def test_unknown_tools_are_passed_on(self, stage: Stage) -> None:
        """A tool nobody declared comes under the name the model gave it, and its result gets back."""
        got: dict[str, Any] = {}

        async def invents(model: ScriptedModel) -> None:
            await model.hears()
            got.update(await model.calls(Call("open_the_sesame", {"x": 1})))
            await model.says("Sorry.")

        async with stage.talk(invents) as talk:
            await talk.connection.send_text("Open!")
            (call,) = (await talk.ear.next(ToolCalls)).calls
            same(call.tool_id, "open_the_sesame", "the name of the tool")
            await talk.connection.send_results([result(call, "no such tool")])
            await talk.ear.next(TurnComplete)
            same([each["data"] for each in got.values()], ["no such tool"], "what the model got")

    @on_a_loop
    async def test_calls_that_were_taken_back_never_come(self, stage: Stage) -> None:
        """A message that was cut short holds no calls, however complete they look; talking goes on."""

        async def hesitates(model: ScriptedModel) -> None:
            await model.hears()
            await model.calls(
                Call("add_note", {"text": "delete everything"}),
                Call("look_up", {"title": "lamp"}),
                incomplete=True,
            )
            await model.hears()
            await model.says("Forget it.")

        async with stage.talk(hesitates) as talk:
            await talk.connection.send_text("Delete everything. No, wait!")
            while not _cut_short(talk.ear.events):
                await talk.ear.anything("a sign that the message was cut short")
            await talk.connection.send_text("Forget it.")
            while talk.ear.words() != "Forget it.":
                await talk.ear.anything("the answer to the next message")
            same(talk.ear.calls(), [], "calls of a message that was cut short")

    @on_a_loop
    async def test_a_duplicate_is_passed_on(self, stage: Stage) -> None:
        """A call that the provider delivers again comes again with the same id, for the policy to judge."""

        async def repeats(model: ScriptedModel) -> None:
            await model.hears()
            await model.calls(Call("add_note", {"text": "once"}, "call_same"))
            await model.calls(Call("add_note", {"text": "once"}, "call_same"))
            await model.says("Done.")

        async with stage.talk(repeats) as talk:
            await talk.connection.send_text("Note it once.")
            for _ in range(2):
                (call,) = (await talk.ear.next(ToolCalls)).calls
                same(call.call_id, "call_same", "the id of the call")
                await talk.connection.send_results([result(call)])
            await talk.ear.next(TurnComplete)
            same(talk.ear.words(), "Done.", "what the model said")

    @on_a_loop
    async def test_words_while_a_tool_runs_are_not_lost(self, stage: Stage) -> None:
        """What the user says between a call and its result reaches the model, and the result does too."""
        seen: list[Any] = []

        async def asks(model: ScriptedModel) -> None:
            await model.hears()
            seen.append(await model.calls(Call("look_up", {"title": "lamp"}, "call_1")))
            await model.says("Here it is.")

        async with stage.talk(asks) as talk:
            await talk.connection.send_text("Look it up.")
            (call,) = (await talk.ear.next(ToolCalls)).calls
            await talk.connection.send_context("The user opened the map.")
            await talk.connection.send_results([result(call)])
            await talk.ear.next(TurnComplete)
            same(len(seen), 1, "whether the model got the result")
            holds("opened the map" in str(talk.model.received), "what came while the tool ran was lost")

    @on_a_loop
    async def test_a_long_result_arrives_whole(self, stage: Stage) -> None:
        """A result of a hundred thousand characters is neither cut nor changed."""
        long = "lighthouse é 灯台 " * 6_000
        got: dict[str, Any] = {}

        async def asks(model: ScriptedModel) -> None:
            await model.hears()
            got.update(await model.calls(Call("look_up", {"title": "all"})))
            await model.says("Much.")

        async with stage.talk(asks) as talk:
            await talk.connection.send_text("Everything, please.")
            (call,) = (await talk.ear.next(ToolCalls)).calls
            await talk.connection.send_results([result(call, long)])
            await talk.ear.next(TurnComplete)
            same([each["data"] for each in got.values()], [long], "what the model got")


def _text(arguments: str | bytes) -> str:
    return arguments if isinstance(arguments, str) else arguments.decode()


def _json(arguments: str | bytes) -> Any:
    return orjson.loads(arguments)


def _cut_short(events: list[Any]) -> bool:
    return any(isinstance(each, Interrupted | TurnComplete | Trouble | ToolCallsCancelled) for each in events)

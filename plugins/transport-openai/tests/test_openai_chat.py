"""Text over chat completions: OpenAI's own, and servers that speak almost like it."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from jackfield.contract.tool import ToolCall
from jackfield.transport.events import (
    Closed,
    Interrupted,
    ProviderError,
    TextDelta,
    ToolCalls,
    TurnComplete,
)
from jackfield.transport.protocol import TransportError
from jackfield_openai import schemas
from jackfield_scripted import Refusal, ScriptedCall, ScriptedModel
from jackfield_scripted.openai import OpenAIServer, ProtocolViolationError
from jackfield_scripted.openai.chat import SIGNATURE
from jackfield_testkit.transport.harness import EventCollector, tool_result

CALLS = (
    ScriptedCall("look_up", {"title": "lamp"}, "call_a"),
    ScriptedCall("look_up", {"title": "oil"}, "call_b"),
)


class Caller:
    """Calls twice at once, and keeps what it gets."""

    def __init__(self) -> None:
        self.got: dict[str, Any] = {}

    async def __call__(self, model: ScriptedModel) -> None:
        await model.hears()
        self.got = await model.calls(*CALLS)
        await model.says("Done.")


async def answers(model: ScriptedModel) -> None:
    while True:
        await model.hears()
        await model.says("Good day.")


@pytest.mark.parametrize("style", ["pieces", "whole", "no_index", "no_id", "gemini"])
def test_calls_of_every_compatible_server_are_understood(meeting: Any, run: Any, style: str) -> None:
    async def scenario() -> None:
        script = Caller()
        async with meeting.talk("text", script, server={"deltas": style}) as (talk, _):
            await talk.connection.send_text("Look both up.")
            calls = (await talk.collector.next(ToolCalls)).calls
            assert [orjson.loads(each.arguments) for each in calls] == [{"title": "lamp"}, {"title": "oil"}]
            assert [each.call_id for each in calls] == (
                [None, None] if style == "no_id" else ["call_a", "call_b"]
            )
            await talk.connection.send_results([tool_result(each, n) for n, each in enumerate(calls)])
            await talk.collector.next(TurnComplete)
            assert [each["data"] for each in script.got.values()] == [0, 1]

    run(scenario())


def test_the_signature_of_a_thought_is_returned_to_the_server(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with meeting.talk("text", Caller(), server={"deltas": "gemini"}) as (talk, server):
            await talk.connection.send_text("Look both up.")
            calls = (await talk.collector.next(ToolCalls)).calls
            await talk.connection.send_results([tool_result(each) for each in calls])
            await talk.collector.next(TurnComplete)
            (message,) = [each for each in server.requests[-1]["messages"] if each.get("tool_calls")]
            signed = [each["extra_content"]["google"]["thought_signature"] for each in message["tool_calls"]]
            assert signed == [SIGNATURE, SIGNATURE]

    run(scenario())


def test_a_server_without_token_counts_is_supported(meeting: Any, run: Any) -> None:
    unknown = Refusal(400, "unknown_parameter", "Unrecognized request argument supplied: stream_options")

    async def scenario() -> None:
        async with meeting.talk("text", answers, server={"refusals": [unknown]}) as (talk, server):
            await talk.send("Hello.")
            await talk.send("And again.")
            assert talk.collector.text() == "Good day.Good day."
            assert [("stream_options" in each) for each in server.requests] == [True, False, False]

    run(scenario())


def test_text_before_an_interruption_stays_in_the_history(meeting: Any, run: Any) -> None:
    story = " ".join(f"word{number}" for number in range(300))

    async def tells(model: ScriptedModel) -> None:
        await model.hears()
        await model.says(story, pieces=300)
        await model.hears()
        await model.says("Yes?")

    async def scenario() -> None:
        async with meeting.talk("text", tells, server={"split": 256, "delay": 0.004}) as (talk, server):
            await talk.connection.send_text("A story.")
            await talk.collector.next(TextDelta)
            await talk.connection.interrupt()
            await talk.collector.next(Interrupted)
            heard = talk.collector.text()
            await talk.send("Stop.")
            messages = server.requests[-1]["messages"]
            assert [each["role"] for each in messages] == ["system", "user", "assistant", "user"]
            assert messages[2]["content"] == heard
            assert story.startswith(heard)
            assert len(heard) < len(story)

    run(scenario())


def test_a_call_in_an_interrupted_answer_never_runs(meeting: Any, run: Any) -> None:
    async def calls_slowly(model: ScriptedModel) -> None:
        await model.hears()
        # The next request does not speak of the call, because nobody but this script ever saw it whole.
        with pytest.raises(ProtocolViolationError, match="continues without the calls"):
            await model.calls(ScriptedCall("add_note", {"text": "x" * 3000}))

    async def scenario() -> None:
        # It takes more than a second until the call is whole.
        slow = {"split": 128, "delay": 0.05}
        async with meeting.talk("text", calls_slowly, answers, server=slow) as (talk, server):
            await talk.connection.send_text("Note it.")
            await meeting.until(lambda: server.requests)
            await asyncio.sleep(0.05)
            await talk.connection.interrupt()
            await talk.collector.next(Interrupted)
            await asyncio.sleep(0.3)
            assert talk.collector.calls() == []
            await talk.connection.send_text("Forget it.")
            await meeting.until(lambda: len(server.requests) == 2)
            roles = [each["role"] for each in server.requests[-1]["messages"]]
            assert roles == ["system", "user", "user"]

    run(scenario())


def test_calls_that_ran_into_the_length_limit_never_run(meeting: Any, run: Any) -> None:
    async def runs_out(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(*CALLS, incomplete=True)

    async def scenario() -> None:
        async with meeting.talk("text", runs_out, answers) as (talk, _):
            await talk.connection.send_text("Look both up.")
            assert (await talk.collector.next(ProviderError)).code == "context_length_exceeded"
            await talk.send("Never mind.")
            assert talk.collector.calls() == []

    run(scenario())


def test_a_filtered_answer_is_reported_as_content_refused(meeting: Any, run: Any) -> None:
    async def is_filtered(model: ScriptedModel) -> None:
        await model.hears()
        await model.fails("content_filter", "I would")

    async def scenario() -> None:
        async with meeting.talk("text", is_filtered) as (talk, _):
            await talk.connection.send_text("Say something bad.")
            assert (await talk.collector.next(ProviderError)).code == "content_refused"
            assert talk.collector.text() == "I would"

    run(scenario())


def test_a_message_during_an_answer_is_answered_after_it(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with meeting.talk("text", answers, server={"split": 64, "delay": 0.002}) as (talk, server):
            await talk.connection.send_text("One.")
            await talk.collector.next(TextDelta)
            await talk.connection.send_text("Two.")
            await talk.collector.next(TurnComplete)
            await talk.collector.next(TurnComplete)
            roles = [each["role"] for each in server.requests[-1]["messages"]]
            assert roles == ["system", "user", "assistant", "user"]

    run(scenario())


def test_a_message_during_tool_calls_follows_their_results(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with meeting.talk("text", Caller()) as (talk, server):
            await talk.connection.send_text("Look both up.")
            calls = (await talk.collector.next(ToolCalls)).calls
            await talk.connection.send_text("Quickly, please.")
            await asyncio.sleep(0.05)
            assert len(server.requests) == 1
            await talk.connection.send_results([tool_result(each) for each in calls])
            await talk.collector.next(TurnComplete)
            roles = [each["role"] for each in server.requests[-1]["messages"]]
            assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
            assert len(server.requests) == 2

    run(scenario())


def test_malformed_arguments_are_not_kept_in_the_history(meeting: Any, run: Any) -> None:
    """Servers that read them would refuse every request from then on."""

    async def scribbles(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("look_up", '{"title": '))
        await model.says("Sorry.")

    async def scenario() -> None:
        async with meeting.talk("text", scribbles) as (talk, server):
            await talk.connection.send_text("Look it up.")
            (call,) = (await talk.collector.next(ToolCalls)).calls
            assert call.arguments == '{"title": '
            await talk.connection.send_results([tool_result(call)])
            await talk.collector.next(TurnComplete)
            (message,) = [each for each in server.requests[-1]["messages"] if each.get("tool_calls")]
            assert message["tool_calls"][0]["function"]["arguments"] == "{}"

    run(scenario())


def test_results_can_wait_for_the_next_user_message(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        async with meeting.talk("text", Caller()) as (talk, server):
            await talk.connection.send_text("Look both up.")
            calls = (await talk.collector.next(ToolCalls)).calls
            await talk.connection.send_results([tool_result(each) for each in calls], respond=False)
            await asyncio.sleep(0.05)
            assert len(server.requests) == 1
            await talk.send("Well?")
            roles = [each["role"] for each in server.requests[-1]["messages"]]
            assert roles == ["system", "user", "assistant", "tool", "tool", "user"]

    run(scenario())


def test_a_message_after_a_failure_is_sent_with_the_first_one(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        failing = {"refusals": [Refusal(503, "server_error", "Overloaded.")]}
        async with meeting.talk("text", answers, server=failing) as (talk, server):
            await talk.connection.send_text("My name is Ada.")
            assert (await talk.collector.next(ProviderError)).code == "server_error"
            await talk.send("What is my name?")
            said = [each["content"] for each in server.requests[-1]["messages"]]
            assert said == ["Be brief.", "My name is Ada.", "What is my name?"]

    run(scenario())


def test_the_sdk_retries_a_request_that_could_not_start(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        failing = {"refusals": [Refusal(503, "server_error", "Overloaded.", retry_after=0.01)]}
        async with meeting.talk("text", answers, server=failing, options={"retries": 1}) as (talk, server):
            await talk.send("Hello.")
            assert talk.collector.of(ProviderError) == []
            assert len(server.requests) == 2

    run(scenario())


def test_a_renamed_tool_is_called_under_its_own_id(meeting: Any, run: Any) -> None:
    tool_id = "kb.search/v2 (beta)"
    declared = schemas.chat(tool_id, "A tool.", {"type": "object", "properties": {}}).declaration

    async def calls_it(model: ScriptedModel) -> None:
        await model.hears()
        (name,) = model.tools
        await model.calls(ScriptedCall(name))
        await model.says("Done.")

    async def scenario() -> None:
        assert declared["function"]["name"] != tool_id
        async with meeting.talk("text", calls_it, declarations={tool_id: declared}) as (talk, _):
            await talk.connection.send_text("Search.")
            (call,) = (await talk.collector.next(ToolCalls)).calls
            assert call.tool_id == tool_id
            await talk.connection.send_results([tool_result(call)])
            await talk.collector.next(TurnComplete)

    run(scenario())


def test_nulls_that_strict_mode_asked_for_are_dropped(meeting: Any, run: Any) -> None:
    parameters = {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query"],
        "additionalProperties": False,
    }
    declared = schemas.strict("look_up", "A tool.", parameters).declaration

    async def fills_in_null(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("look_up", {"query": "lamp", "limit": None}))
        await model.says("Done.")

    async def scenario() -> None:
        async with meeting.talk("text", fills_in_null, declarations={"look_up": declared}) as (talk, _):
            await talk.connection.send_text("Search.")
            (call,) = (await talk.collector.next(ToolCalls)).calls
            assert orjson.loads(call.arguments) == {"query": "lamp"}
            await talk.connection.send_results([tool_result(call)])
            await talk.collector.next(TurnComplete)

    run(scenario())


def test_a_rejected_key_is_not_quoted(meeting: Any, run: Any) -> None:
    said = "Incorrect API key provided: sk-test-0123456789abcdef. You can find your API key at the dashboard."

    async def scenario() -> None:
        refusing = {"refusals": [Refusal(401, "invalid_api_key", said)]}
        async with meeting.talk("text", answers, server=refusing) as (talk, _):
            await talk.connection.send_text("Hello.")
            closed = await talk.collector.next(Closed)
            assert closed.code == "authentication"
            assert "sk-" not in closed.detail
        async with OpenAIServer(answers, refusals=[Refusal(401, "invalid_api_key", said)]) as server:
            transport = meeting.transport(server)
            with pytest.raises(TransportError) as refused:
                await transport.connect(meeting.opening("voice"))
            assert "sk-" not in str(refused.value)
            await transport.close()

    run(scenario())


def test_a_compatible_server_needs_no_key(meeting: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")

    async def scenario() -> None:
        async with meeting.talk("text", answers) as (talk, _):
            await talk.send("Hello.")
            assert talk.collector.text() == "Good day."

    run(scenario())


def test_results_of_calls_without_ids_find_their_calls(meeting: Any, run: Any) -> None:
    """They carry only the tool, and may come in another order than the calls."""

    async def scenario() -> None:
        async def calls_both(model: ScriptedModel) -> None:
            await model.hears()
            got = await model.calls(ScriptedCall("look_up", {}), ScriptedCall("add_note", {}))
            assert [each["data"] for each in got.values()] == ["found", "noted"]
            await model.says("Done.")

        async with meeting.talk("text", calls_both, server={"deltas": "no_id"}) as (talk, _):
            await talk.connection.send_text("Both.")
            await talk.collector.next(ToolCalls)
            noted = tool_result(ToolCall("add_note", "", None), "noted")
            found = tool_result(ToolCall("look_up", "", None), "found")
            await talk.connection.send_results([noted, found])
            await talk.collector.next(TurnComplete)

    run(scenario())


def test_a_slow_reader_slows_the_stream_down(meeting: Any, run: Any) -> None:
    async def talks(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("x" * 5000, pieces=5000)

    async def scenario() -> None:
        async with OpenAIServer(talks) as server:
            transport = meeting.transport(server)
            connection = await transport.connect(meeting.opening("text"))
            await connection.send_text("Go.")
            await asyncio.sleep(0.3)
            ear = EventCollector(connection)
            await ear.next(TurnComplete)
            assert ear.text() == "x" * 5000
            await connection.close()
            await ear.all()
            await transport.close()

    run(scenario())

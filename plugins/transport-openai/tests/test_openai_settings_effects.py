"""What the settings of text change in the requests that go out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from jackfield.transport.events import ProviderError
from jackfield_openai.settings import OpenAISettings
from jackfield_openai.transport import OpenAITransport
from jackfield_scripted import Refusal, ScriptedCall, ScriptedModel


async def answers(model: ScriptedModel) -> None:
    while True:
        await model.hears()
        await model.says("Good day.")


def test_the_model_and_the_temperature_of_text(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        options = {"text_model": "our-own-model", "temperature": 0.5}
        async with meeting.talk("text", answers, options=options) as (talk, server):
            await talk.send("Hello.")
            (request,) = server.requests
            assert (request["model"], request["temperature"]) == ("our-own-model", 0.5)
        async with meeting.talk("text", answers) as (talk, server):
            await talk.send("Hello.")
            # Some models refuse to be given one.
            assert "temperature" not in server.requests[0]

    run(scenario())


def test_a_silent_request_times_out(meeting: Any, run: Any) -> None:
    async def silent(model: ScriptedModel) -> None:
        await model.hears()
        await asyncio.sleep(60)

    async def scenario() -> None:
        async with meeting.talk("text", silent, options={"request_timeout": 0.2}) as (talk, _):
            await talk.connection.send_text("Hello.")
            assert (await talk.collector.next(ProviderError)).code == "network"

    run(scenario())


@pytest.mark.parametrize(
    ("base_url", "tokens"),
    [
        (None, None),
        ("https://models.example.org/v1", None),
        ("http://10.0.0.7:8000/v1", None),
        ("http://127.0.0.1:11434/v1", 3000),
        ("http://localhost:1234/v1", 3000),
        ("http://[::1]:8080/v1", 3000),
    ],
)
def test_a_server_on_this_machine_gets_a_shorter_prompt(base_url: str | None, tokens: int | None) -> None:
    assert OpenAITransport(OpenAISettings(base_url=base_url)).prompt_tokens == tokens


@pytest.mark.parametrize("refused", ["", "max_tokens"])
def test_the_answer_limit_uses_the_parameter_name_of_the_server(refused: str, meeting: Any, run: Any) -> None:
    unknown = Refusal(400, "unsupported_parameter", f"Unsupported parameter: {refused!r}")

    async def scenario() -> None:
        told = {"refusals": [unknown] if refused else []}
        async with meeting.talk("text", answers, server=told, answer_tokens=200) as (talk, server):
            await talk.send("Hello.")
            names = [[name for name in request if name.startswith("max_")] for request in server.requests]
            assert names == ([["max_tokens"], ["max_completion_tokens"]] if refused else [["max_tokens"]])
        async with meeting.talk("text", answers) as (talk, server):
            await talk.send("Hello.")
            assert not [name for name in server.requests[0] if name.startswith("max_")]

    run(scenario())


@pytest.mark.parametrize(("limit", "code"), [(200, "server_error"), (0, "context_length_exceeded")])
def test_calls_over_the_answer_limit_do_not_cause_a_summary(
    limit: int, code: str, meeting: Any, run: Any
) -> None:
    async def cut_off(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("look_up", {"title": "lamp"}), incomplete=True)

    async def scenario() -> None:
        async with meeting.talk("text", cut_off, answer_tokens=limit) as (talk, _):
            await talk.connection.send_text("Hello.")
            assert (await talk.collector.next(ProviderError)).code == code

    run(scenario())

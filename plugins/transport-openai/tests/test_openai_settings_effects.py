"""What the settings of text change in the requests that go out."""

from __future__ import annotations

import asyncio
from typing import Any

from jackfield.transport.events import Trouble
from jackfield_testkit.providers.model import ScriptedModel


async def answers(model: ScriptedModel) -> None:
    while True:
        await model.hears()
        await model.says("Good day.")


def test_the_model_and_the_temperature_of_text(meeting: Any, run: Any) -> None:
    async def scenario() -> None:
        options = {"text_model": "our-own-model", "temperature": 0.5}
        async with meeting.talk("text", answers, options=options) as (talk, server):
            await talk.says("Hello.")
            (request,) = server.requests
            assert (request["model"], request["temperature"]) == ("our-own-model", 0.5)
        async with meeting.talk("text", answers) as (talk, server):
            await talk.says("Hello.")
            # Some models refuse to be given one.
            assert "temperature" not in server.requests[0]

    run(scenario())


def test_a_request_that_stays_silent_is_given_up(meeting: Any, run: Any) -> None:
    async def silent(model: ScriptedModel) -> None:
        await model.hears()
        await asyncio.sleep(60)

    async def scenario() -> None:
        async with meeting.talk("text", silent, options={"request_timeout": 0.2}) as (talk, _):
            await talk.connection.send_text("Hello.")
            assert (await talk.ear.next(Trouble)).code == "network"

    run(scenario())

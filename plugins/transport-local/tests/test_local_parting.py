"""A call ends when somebody plainly says so, and not for half a sentence that a microphone caught."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from jackfield_local.planner.language.parting import is_parting
from jackfield_local.text import TextConnection
from local_session import Session, opening, planner, session

FAREWELLS = (
    "Goodbye.",
    "okay, bye bye",
    "Thanks, that's all.",
    "Thank you, that was everything I needed.",
    "Hang up, please.",
    "please end this call",
    "could you stop the conversation now?",
    "I'm done, see you later",
    "I have to go now.",
    "Can we go back to typing?",
    "let's switch to the chat",
)
FRAGMENTS = (
    "The",
    "You",
    "Good.",
    "the end",
    "end of the month",
    "Stop.",
    "stop talking",
    "stop the music",
    "hang on a second",
    "hang",
    "hold the line",
    "call me",
    "the call",
    "session",
    "the table is booked",
    "I'm on the train",
    "needed",
    "everything",
    "nothing",
    "two",
    "finished",
    "close the window",
    "let's go",
    "can we go",
    "write it in the chat",
    "Okay, Joe.",
    "bye the way",
    "that is everything about the project",
    "is that all?",
)
UNWANTED = (
    "don't hang up",
    "please do not end this call",
    "when does the call end",
    "why did you hang up?",
    "I'm done with the lamps",
    "I have to go to the storage",
    "hang up the coats",
)
DECLARED = {
    "description": "End the call.",
    "parameters": {
        "type": "object",
        "required": ["reason"],
        "properties": {"reason": {"type": "string", "enum": ["asked", "other"]}},
    },
}
GUIDE = """\
# leave

Ends the call.

## Examples

Over and out.

```json
{"reason": "asked"}
```
"""


def _called(*said: str) -> dict[str, list[str]]:
    """The tools that are called for each of these, said to a session of its own."""

    async def run() -> dict[str, list[str]]:
        found = {}
        for words in said:
            async with session("voice") as talk:
                await talk.says(words)
                found[words] = [each.tool_id for each in talk.calls]
        return found

    return asyncio.run(run())


def test_a_plain_farewell_ends_the_call() -> None:
    assert {
        said: calls for said, calls in _called(*FAREWELLS).items() if calls != ["end_voice_session"]
    } == {}


def test_a_fragment_does_not_end_it() -> None:
    called = _called(*FRAGMENTS, *UNWANTED)
    assert [said for said, calls in called.items() if "end_voice_session" in calls] == []


def test_a_fragment_that_comes_instead_of_an_answer_does_not_end_it_either() -> None:
    async def run() -> list[str]:
        async with session("voice") as talk:
            assert "?" in await talk.says("look somebody up on LinkedIn")
            await talk.says("hang on a second")
            return [each.tool_id for each in talk.calls]

    assert "end_voice_session" not in asyncio.run(run())


@pytest.mark.parametrize("said", UNWANTED)
def test_what_is_denied_asked_about_or_goes_on_is_no_farewell(said: str) -> None:
    assert not is_parting(said)


def test_a_guide_may_teach_a_farewell_of_its_own() -> None:
    taught = replace(opening("voice"), declarations={"leave": DECLARED}, guides={"leave": GUIDE})

    async def run(said: str) -> list[str]:
        connection = TextConnection(await planner().open(taught))
        try:
            talk = Session(connection, connection.events())
            await talk.says(said)
            return [each.tool_id for each in talk.calls]
        finally:
            await connection.close()

    assert asyncio.run(run("Over and out!")) == ["leave"]
    assert asyncio.run(run("over the hill")) == []

"""A question about something is looked up, however many words of time it has; the time alone is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield_local.language.words import content
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.asked import asked_of
from local_requests import NOW
from local_session import TOOLS, Session, session, talk_over

_OFFERED = (TOOLS - {"image_generate"}) | {"task"}
"""What is there where no service is set up."""

_OFFICE = {
    "type": "object",
    "properties": {"day": {"type": "string", "format": "date", "description": "Which day is meant."}},
}


def _talk(steps: Callable[[Session], Awaitable[None]]) -> None:
    async def run() -> None:
        async with session(among=_OFFERED) as talk, asyncio.timeout(60):
            await steps(talk)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("said", "sought"),
    [
        ("What are the opening hours of the studio?", ("opening hours", "studio")),
        ("When does the Lantern festival begin?", ("Lantern festival",)),
        ("Do you know when the festival starts?", ("festival",)),
        ("How long does a poster take?", ("poster",)),
        ("until what time is the studio open on Fridays?", ("studio", "open")),
        ("What time does the studio open?", ("studio", "open")),
        ("when is the time sheet closed for last month?", ("time sheet",)),
        ("What date is the launch of the museum?", ("launch of the museum",)),
        ("what are your opening hours?", ("opening hours",)),
        ("opening hours?", ("opening hours",)),
        ("On which days is the photo room taken?", ("photo room",)),
        ("is the studio open tomorrow?", ("studio", "open")),
    ],
)
def test_what_is_asked_of_a_thing_is_looked_up(said: str, sought: tuple[str, ...]) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(said)
        assert [call.tool_id for call in talk.calls] == ["kb_search"]
        assert all(each in talk.args["query"] for each in sought), talk.args
        assert "filters" not in talk.args

    _talk(steps)


@pytest.mark.parametrize(
    "said",
    [
        "what's the time?",
        "What time is it?",
        "do you know what time it is?",
        "what is the exact time?",
        "What's the date today?",
        "what day is it?",
        "what's the local time in Tokyo?",
        "how many days until Christmas?",
        "How long until the launch on 1 December 2026?",
        "Write the date of the contract, 2026-12-24, in Brazilian Portuguese.",
    ],
)
def test_the_time_itself_is_told(said: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(said)
        assert [call.tool_id for call in talk.calls] == ["format_datetime"]

    _talk(steps)


@pytest.mark.parametrize(
    "said",
    ["is the team free tomorrow?", "what is booked for me on Friday?", "when is my next free hour today?"],
)
def test_the_user_s_own_time_is_looked_at_in_the_calendar(said: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(said)
        assert [call.tool_id for call in talk.calls] == ["calendar_get_availability"]

    _talk(steps)


def test_a_tool_without_words_still_answers_for_what_its_author_names() -> None:
    told = "Tells whether the office is open."
    example = "When does the gate shut?\n\n```json\n{}\n```\n"
    guide = f"# office_status\n\n{told}\n\n## Examples\n\n{example}"
    tools: dict[str, Any] = {"office_status": (told, _OFFICE, guide)}

    async def steps(talk: Session) -> None:
        await talk.says("is the office open today?")
        assert [call.tool_id for call in talk.calls] == ["office_status"]
        await talk.gets({"open": True})
        await talk.says("is the gate shut on Sunday?")
        assert [call.tool_id for call in talk.calls] == ["office_status"]
        await talk.gets({"open": False})
        assert "which tool you mean" in await talk.says("when does the swimming pool close?")

    talk_over(tools, steps)


@pytest.mark.parametrize(
    ("said", "sought"),
    [
        ("and on Fridays?", "the opening hours of the studio on Fridays"),
        ("what about Saturdays?", "the opening hours of the studio Saturdays"),
        ("and who sets them?", "opening hours"),
    ],
)
def test_what_is_asked_on_is_asked_of_the_same(said: str, sought: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says("What are the opening hours of the studio?")
        await talk.gets({"results": [{"id": "doc:a", "title": "Keys"}, {"id": "doc:b", "title": "Doors"}]})
        await talk.says(said)
        assert [call.tool_id for call in talk.calls] == ["kb_search"]
        assert sought in talk.args["query"]
        await talk.gets({"results": []})
        await talk.says("what time is it?")
        assert [call.tool_id for call in talk.calls] == ["format_datetime"]

    _talk(steps)


@given(
    st.sampled_from(["When does", "What time does", "How long does", "Until when does", "when"]),
    st.sampled_from(["bakery", "parcel", "newsletter", "Tidewater", "winter fair"]),
    st.sampled_from(["on Friday", "tomorrow at 9 am", "", "on 3 May 2027", "this week"]),
)
def test_a_thing_is_told_from_the_time_that_is_said_with_it(lead: str, thing: str, time: str) -> None:
    assert Heard(f"{lead} the {thing} open {time}?", NOW).asked_of == {*content(thing), "open"}


@given(
    st.sampled_from(["am I free", "do we meet", "is it", "are there gaps", "can you come", "is that"]),
    st.sampled_from(["on Friday", "tomorrow", "in Tokyo", ""]),
)
def test_nothing_is_asked_of_where_the_user_is_meant(asked: str, where: str) -> None:
    assert asked_of(f"when {asked} {where}?") == frozenset()

"""Several wishes in one message: each served as if it stood alone, in their order, and none lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield_local.planner.deciding.several import MOST_WISHES
from jackfield_local.planner.language.wishes import LONGEST_MESSAGE, pieces
from local_session import Session, session

SINGLE = (
    "search for the holiday policy",
    "book a meeting called Review on Friday at 10 am for an hour",
    "draw a lighthouse in a storm",
    "what time is it in Tokyo?",
    "show me doc:brand-book",
    "when am I free tomorrow afternoon?",
)
"""Each is a whole wish, and each for another tool."""

_FOUND = {"results": [{"id": "doc:a", "title": "Ants", "score": 0.9}, {"id": "doc:b", "title": "Bees"}]}


def _talk(steps: Callable[[Session], Awaitable[None]], mode: Any = "text", **changes: Any) -> None:
    async def run() -> None:
        async with session(mode, **changes) as talk, asyncio.timeout(60):
            await steps(talk)

    asyncio.run(run())


async def _served(talk: Session, said: str, data: Any = None) -> list[tuple[str, dict[str, Any]]]:
    """The calls that a message leads to, each answered."""
    made = []
    await talk.says(said)
    while talk.calls:
        made.append((talk.calls[-1].tool_id, talk.args))
        await talk.gets(data or {"results": []})
    return made


@pytest.mark.parametrize("between", [" and then ", ", then ", ". ", ". Also, ", "\n", ". And please "])
def test_two_wishes_lead_to_the_calls_that_each_leads_to_alone(between: str) -> None:
    async def run() -> None:
        alone = {}
        for each in SINGLE:
            async with session() as talk:
                alone[each] = await _served(talk, each)
                assert len(alone[each]) == 1
        for place, first in enumerate(SINGLE):
            second = SINGLE[(place + 2) % len(SINGLE)]
            said = f"{first.rstrip('?') if between[0] in ' ,' else first}{between}{second}"
            async with session() as talk:
                assert await _served(talk, said) == alone[first] + alone[second], said

    asyncio.run(run())


@pytest.mark.parametrize(
    "said",
    [
        "search for salt and pepper",
        "find out who leads the harbour project and when it starts",
        "what is the travel policy and does it cover hotels?",
        "draw a cat and a dog and a bird",
        "draw a boat. It should be red.",
        "create an event called Search and Rescue on Monday at 9 am for two hours",
        'put "Plan and build" into my calendar on Tuesday from 1pm to 2pm',
        "I have a doctor's appointment tomorrow at 8:15 for an hour. Please add it to my calendar.",
        "book a meeting tomorrow at 9. Call it Review. Invite ann@example.org.",
        "Find the contacts in this:\nSearch for Ann. Then book a flight with bob@example.org.",
    ],
)
def test_one_wish_is_not_taken_apart(said: str) -> None:
    async def steps(talk: Session) -> None:
        assert len(await _served(talk, said)) == 1

    _talk(steps)


def test_what_is_said_beside_the_wishes_is_left_out() -> None:
    said = (
        "Hello, I am new here and my colleague told me that you help with a lot of things. I would "
        "first of all like to know how many days of holiday I get in a year, because I am planning a "
        "trip to Portugal in the spring and my sister has to know by next week. Then please put a "
        "meeting with my manager into the calendar for tomorrow at 9 am, it should last half an hour "
        "and be called First week. My manager is very busy. And finally I would love to have a "
        "picture of a sailing boat, if that is something that you can do at all."
    )

    async def steps(talk: Session) -> None:
        first, second, third = await _served(talk, said)
        assert first[0] == "kb_search"
        assert "Portugal" not in first[1]["query"]
        assert (second[0], second[1]["title"]) == ("calendar_create_event", "First week")
        assert second[1]["start_time"] == "2026-11-17T09:00:00+01:00"
        assert second[1]["end_time"] == "2026-11-17T09:30:00+01:00"
        assert third[0] in ("image_generate", "image_draft_prompt")
        assert "sailing boat" in str(third[1])

    _talk(steps)


def test_a_question_back_holds_the_rest_until_it_is_answered() -> None:
    async def steps(talk: Session) -> None:
        assert "When" in await talk.says("create an event called Retro and tell me the time in Lima")
        made = await _served(talk, "on Friday at 4 pm for half an hour")
        assert [tool for tool, _ in made] == ["calendar_create_event", "format_datetime"]

    _talk(steps)


@pytest.mark.parametrize("away", ["never mind", "what is our policy on dogs?"])
def test_who_leaves_the_question_leaves_the_rest(away: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says("create an event called Retro and tell me the time in Lima")
        assert "format_datetime" not in [tool for tool, _ in await _served(talk, away)]

    _talk(steps)


def test_what_no_tool_does_is_said_and_the_rest_is_done() -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says("email the handbook to my boss and then show me doc:brand-book")
        assert "no tool here does it" in said
        assert talk.args == {"ids": ["doc:brand-book"]}

    _talk(steps)


def test_a_failure_of_one_does_not_keep_the_other_back() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("search for the holiday policy and then draw a lighthouse in a storm")
        said = await talk.gets(error={"type": "TRANSIENT", "message": "The shelf is stuck."})
        assert "The shelf is stuck" in said
        assert talk.calls[0].tool_id == "image_generate"

    _talk(steps)


def test_it_is_what_was_just_found_and_the_day_is_that_just_spoken_of() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("look up the handbook and open it in full")
        await talk.gets(_FOUND)
        assert (talk.calls[0].tool_id, talk.args) == ("kb_get", {"ids": ["doc:a"]})
        await talk.gets({"records": [], "missing": []})
        await talk.says("Am I free on Friday? Book lunch with Tom at noon for an hour.")
        await talk.gets({"existing_events": [], "available_slots": [], "summary": "none"})
        assert talk.args["start_time"] == "2026-11-20T12:00:00+01:00"

    _talk(steps)


def test_what_is_asked_of_another_place_follows_in_the_same_breath() -> None:
    async def steps(talk: Session) -> None:
        made = await _served(talk, "What time is it in Tokyo? And in New York?")
        assert [args["timezone"] for _, args in made] == ["Asia/Tokyo", "America/New_York"]

    _talk(steps)


def test_breaking_in_leaves_what_was_to_follow() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("search for the holiday policy and then draw a lighthouse in a storm")
        talk.connection._dialogue.interrupted("")  # type: ignore[attr-defined]
        await talk.gets(_FOUND)
        assert talk.calls == []

    _talk(steps)


def test_by_voice_they_are_served_too() -> None:
    async def steps(talk: Session) -> None:
        made = await _served(talk, "what time is it in Tokyo and then search for the holiday policy")
        assert [tool for tool, _ in made] == ["format_datetime", "kb_search"]

    _talk(steps, "voice")


def test_there_is_an_end_to_the_wishes_of_a_message() -> None:
    cities = ("Tokyo", "Lima", "Oslo", "Rome", "Paris", "Cairo", "Delhi", "Perth", "Seoul")
    said = " ".join(f"What time is it in {city}?" for city in cities)

    async def steps(talk: Session) -> None:
        told = await talk.says(said)
        for _ in range(MOST_WISHES):
            assert talk.calls[0].tool_id == "format_datetime"
            told = await talk.gets({"formatted": "noon"})
        assert talk.calls == []
        assert "Say this again: What time is it in Delhi?; What time is it in Perth?" in told

    _talk(steps)


@given(
    st.lists(
        st.sampled_from([*SINGLE, "and", "then", ".", "?", ",", "\n", "it is red", '"', "9 a.m."]),
        max_size=12,
    )
)
def test_the_parts_of_a_message_stand_in_it_in_their_order(words: list[str]) -> None:
    text = " ".join(words)
    place = 0
    for piece in pieces(text):
        assert text[piece.start : piece.start + len(piece.text)] == piece.text
        assert piece.start >= place
        place = piece.start + len(piece.text)


def test_a_text_is_not_taken_apart() -> None:
    text = "Search for the lamp. " * (LONGEST_MESSAGE // 20)
    assert [each.text for each in pieces(text)] == [text]

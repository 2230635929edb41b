"""A conversation on the language model: it chooses and speaks, and the planner does the rest."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from jackfield.transport.events import Interrupted, TextDelta
from jackfield.transport.protocol import Utterance
from jackfield_local.guide import Example, Guide
from jackfield_local.llama.briefing import LONGEST_BRIEF, NONE, NOT_SAID, SPEAKING, choosing
from jackfield_local.llama.engine import Piece
from jackfield_local.llama.speaking import LONGEST_EXCERPT, UNCLEAR, grounded
from jackfield_local.planner.reading.tool import Tool, tools_of
from local_llama_script import FAILED, Scripted, chosen, talking
from local_session import opening

FOUND = {
    "results": [
        {
            "id": "doc:holidays",
            "title": "Holiday policy",
            "snippet": "Everybody has 30 days of holiday a year. Days lapse in March.",
            "score": 0.9,
            "url": "https://kb.example/holidays",
        },
        {"id": "process:sick-leave", "title": "Sick leave", "snippet": "Call in before nine.", "score": 0.5},
    ]
}


def _run(talk: Any) -> None:
    asyncio.run(asyncio.wait_for(talk, 30))


def test_the_model_chooses_and_the_planner_fills_in() -> None:
    async def talk() -> None:
        # The planner alone takes this for something else.
        model = Scripted(chosen("start_voice_session"))
        async with talking(model) as session:
            assert await session.says("could we do this over the phone instead?") == ""
            assert session.calls[-1].tool_id == "start_voice_session"
        (asked,) = model.asked
        assert asked.schema is not None
        assert {*asked.schema["properties"]["tool"]["enum"]} == {*opening().declarations, NONE}
        assert asked.messages[-1] == ("user", "could we do this over the phone instead?")

    _run(talk())


def test_an_id_that_was_said_outweighs_the_model() -> None:
    async def talk() -> None:
        async with talking(Scripted(chosen("kb_search"))) as session:
            await session.says("show me doc:onboarding")
            assert session.calls[-1].tool_id == "kb_get"
            assert session.args == {"ids": ["doc:onboarding"]}

    _run(talk())


def test_what_is_missing_is_asked_for_and_its_answer_needs_no_model() -> None:
    async def talk() -> None:
        model = Scripted(chosen("calendar_create_event"))
        async with talking(model) as session:
            assert "When?" in await session.says("create an event called Retro")
            await session.says("tomorrow from 3 to 4 pm")
            assert session.calls[-1].tool_id == "calendar_create_event"
            assert session.args["start_time"].startswith("2026-11-17T15:00")
        assert len(model.asked) == 1

    _run(talk())


def test_small_talk_is_in_the_models_words_and_calls_nothing() -> None:
    async def talk() -> None:
        model = Scripted("Hello to you! What is up?", "You are welcome.")
        async with talking(model) as session:
            assert (await session.says("hello there")).strip() == "Hello to you! What is up?"
            assert (await session.says("thank you")).strip() == "You are welcome."
            assert not session.calls
        first, second = model.asked
        assert first.brief == second.brief == SPEAKING
        assert first.schema is None
        # The time is said last, so that what stands before it stays read.
        assert "16 November 2026" in first.messages[-1].content
        assert "2026" not in "".join(each.content for each in first.brief)
        assert [each.content.strip() for each in second.messages[:2]] == [
            "hello there",
            "Hello to you! What is up?",
        ]

    _run(talk())


def test_what_it_can_do_is_told_by_the_guides() -> None:
    async def talk() -> None:
        model = Scripted()
        async with talking(model) as session:
            assert "With the tools that are installed" in await session.says("what can you do?")
        assert not model.asked

    _run(talk())


def test_what_no_tool_is_for_is_answered_in_words() -> None:
    async def talk() -> None:
        model = Scripted(chosen(NONE), "That is beyond me, I am afraid.")
        async with talking(model) as session:
            assert (await session.says("jump over the moon")).strip() == "That is beyond me, I am afraid."
            assert not session.calls

    _run(talk())


def test_an_answer_is_the_models_and_the_citations_are_the_planners() -> None:
    async def talk() -> None:
        model = Scripted(chosen("kb_search"), "You have 30 days a year. They lapse in March.")
        async with talking(model) as session:
            await session.says("how much holiday do we get?")
            said = await session.gets(FOUND)
            assert said.startswith("You have 30 days a year. They lapse in March.\n\nSource: Holiday policy")
            assert "[doc:holidays], https://kb.example/holidays" in said
            assert "2. Sick leave [process:sick-leave]" in said
            model.lines.append(chosen("kb_get"))
            await session.says("open the second one")
            assert session.args == {"ids": ["process:sick-leave"]}
        asked = model.asked[1].messages[-1].content
        assert "Everybody has 30 days" in asked
        assert "how much holiday do we get?" in asked
        # It is reminded of what led where.
        assert model.asked[2].messages[:2] == (
            ("user", "how much holiday do we get?"),
            ("assistant", chosen("kb_search")),
        )

    _run(talk())


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("You have 45 days. Enjoy them.", "Everybody has 30 days of holiday a year. Days lapse in March."),
        ("You have 30 days. Ask boss@example.org.", "You have 30 days."),
        (FAILED, "Everybody has 30 days of holiday a year. Days lapse in March."),
        (NOT_SAID, f"{UNCLEAR} Everybody has 30 days of holiday a year. Days lapse in March."),
        ([Piece("You have 30 days. And then"), Piece("", cut=True)], "You have 30 days."),
        ([Piece("You have 30"), Piece(" days", cut=True)], "You have 30 days ..."),
    ],
)
def test_what_the_record_does_not_have_is_not_said(written: Any, said: str) -> None:
    async def talk() -> None:
        async with talking(Scripted(chosen("kb_search"), written)) as session:
            await session.says("how much holiday do we get?")
            answer, _, sources = (await session.gets(FOUND)).partition("\n\nSource: ")
            assert answer == said
            assert sources.startswith("Holiday policy [doc:holidays]")

    _run(talk())


def test_a_long_record_is_read_in_part() -> None:
    async def talk() -> None:
        model = Scripted(chosen("kb_search"), "It does not say.")
        async with talking(model) as session:
            await session.says("how much holiday do we get?")
            await session.gets({"results": [{**FOUND["results"][0], "snippet": "word " * 20_000}]})
        assert len(model.asked[1].messages[-1].content) < LONGEST_EXCERPT + 1000

    _run(talk())


def test_what_is_no_evidence_is_told_by_the_planner() -> None:
    async def talk() -> None:
        model = Scripted(chosen("kb_search"), chosen("format_datetime"))
        async with talking(model) as session:
            await session.says("how much holiday do we get?")
            assert "Nothing was found" in await session.gets({"results": []})
            await session.says("what time is it in Lisbon?")
            failed = {"type": "TRANSIENT", "message": "the clock is late", "retryable": True}
            assert "the clock is late" in await session.gets(error=failed)
        assert len(model.asked) == 2

    _run(talk())


@pytest.mark.parametrize("written", [FAILED, "not a choice", '["kb_search"]'])
def test_where_the_model_cannot_choose_the_planner_does(written: Any) -> None:
    async def talk() -> None:
        async with talking(Scripted(written)) as session:
            await session.says("what time is it in Lisbon?")
            assert session.calls[-1].tool_id == "format_datetime"

    _run(talk())


def test_where_the_model_has_no_words_the_planner_has() -> None:
    async def talk() -> None:
        async with talking(Scripted(FAILED, "")) as session:
            assert await session.says("thank you") == "You are welcome."
            assert (await session.says("good morning")).strip().startswith("Hello.")

    _run(talk())


def test_words_that_break_off_say_so() -> None:
    async def talk() -> None:
        async with talking(Scripted([Piece("Well, there"), Piece("", cut=True)])) as session:
            assert await session.says("tell me a joke") == "Well, there ..."

    _run(talk())


def test_an_interruption_stops_the_model_and_what_was_heard_is_remembered() -> None:
    async def talk() -> None:
        model = Scripted("Once upon a time", "All right.")
        model.held.clear()
        async with talking(model) as session:
            await session.connection.send_text("tell me a joke")
            assert isinstance(await anext(session.events), TextDelta)
            await session.connection.interrupt()
            assert isinstance(await anext(session.events), Interrupted)
            assert model.stopped == 1
            model.held.set()
            await session.says("thank you")
        assert ("assistant", "Once ") in model.asked[1].messages

    _run(talk())


def test_a_conversation_that_goes_on_is_remembered() -> None:
    async def talk() -> None:
        model = Scripted(chosen("kb_search"))
        history = (
            Utterance("user", "am I free tomorrow?"),
            Utterance("assistant", '[called calendar_get_availability: {"ok": true, "data": {}}]'),
            Utterance("assistant", "All day."),
        )
        async with talking(model, history=history) as session:
            await session.says("how much holiday do we get?")
        assert model.asked[0].messages[:2] == (
            ("user", "am I free tomorrow?"),
            ("assistant", chosen("calendar_get_availability")),
        )

    _run(talk())


def test_a_text_that_was_handed_over_is_not_all_read() -> None:
    async def talk() -> None:
        model = Scripted(chosen("extract_contacts"))
        async with talking(model) as session:
            await session.says(f"which addresses are in here: ann@example.org {'and more ' * 3000}")
            assert session.args["text"].startswith("ann@example.org and more")
        assert len(model.asked[0].messages[-1].content) < 500

    _run(talk())


def test_with_too_many_tools_the_planner_chooses() -> None:
    def tools(count: int) -> list[Tool]:
        example = Example("do the thing with number one for me please", {})
        return [Tool(f"tool_{n}", "x", Guide("Does a thing. " * 9, (example,) * 9), ()) for n in range(count)]

    few, some = choosing(tools(5)), choosing(tools(50))
    assert few is not None
    assert some is not None
    assert len(few) / 5 > len(some) / 50
    assert sum(len(each.content) for each in some) <= LONGEST_BRIEF
    assert choosing(tools(2000)) is None

    async def talk() -> None:
        async with talking(Scripted(), briefed=False) as session:
            await session.says("what time is it in Lisbon?")
            assert session.calls[-1].tool_id == "format_datetime"

    _run(talk())


def test_sessions_with_the_same_tools_share_what_is_read() -> None:
    brief = choosing(tools_of(opening()))
    assert brief is not None
    assert brief == choosing(tools_of(replace(opening(), instructions="Else.")))
    shown = {each.content for each in brief if each.role == "user"}
    assert len(shown) > 2 * len(opening().declarations)


def test_numbers_and_addresses_are_held_against_the_evidence() -> None:
    evidence = "Open from 9:30 to 18:00, call +49 30 901820 or write to desk@example.org."
    assert grounded("It opens at 9:30.", evidence)
    assert grounded("Write to desk@example.org!", evidence)
    assert not grounded("It opens at 9:00.", evidence)
    assert not grounded("See https://example.org/hours.", evidence)

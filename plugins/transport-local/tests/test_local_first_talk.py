"""What somebody types in a first half hour: what no tool does, talk, other languages, second thoughts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield_local.language.sentences import sentences
from jackfield_local.planner.language.foreign import other_language
from local_session import Session, session

_EVENT = {"status": "created", "title": "Review", "start": "2026-11-20T10:00:00+01:00"}
_RECORD = {
    "id": "doc:holidays",
    "title": "Holiday policy",
    "text": "Holiday policy\n\nAsk two weeks ahead.\nTell your lead.\nEnter it.\nThen go.\nCome back.",
    "score": 0.9,
}


def _talk(steps: Callable[[Session], Awaitable[None]], mode: Any = "text", **changes: Any) -> None:
    async def run() -> None:
        async with session(mode, **changes) as talk, asyncio.timeout(60):
            await steps(talk)

    asyncio.run(run())


@pytest.mark.parametrize(
    "wish",
    [
        "send an e-mail to my landlord",
        "can you send emails?",
        "delete the meeting on Friday",
        "cancel my appointment tomorrow",
        "move the review to Monday",
        "translate “good morning” into French",
        "remind me to water the plants at 6",
        "set an alarm for 7 am",
        "buy me a ticket to Rome",
        "switch the radio on",
        "phone my dentist",
        "make me a sandwich",
        "write a letter to the tax office",
        "ditch that appointment",
        "what's 17 times 23?",
    ],
)
def test_what_no_tool_does_is_said_and_nothing_is_called(wish: str) -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says(wish)
        assert talk.calls == []
        assert "I cannot do that, as no tool here does it." in said
        assert "Searches the knowledge base" in said

    _talk(steps)


@pytest.mark.parametrize(
    ("wish", "tool"),
    [
        ("make a picture of a heron", "image_generate"),
        ("schedule Standup for Monday at 9 am for an hour", "calendar_create_event"),
        ("write me a prompt for a poster of a fair", "image_draft_prompt"),
        ("turn on the microphone", "start_voice_session"),
        ("remind me what the style guide says about fonts", "kb_search"),
        ("send me the LinkedIn of Mara Example", "linkedin_lookup"),
    ],
)
def test_the_same_verbs_reach_a_tool_that_does_it(wish: str, tool: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(wish)
        assert [call.tool_id for call in talk.calls] == [tool]

    _talk(steps)


def test_what_can_be_done_is_listed_once_and_not_at_every_misunderstanding() -> None:
    async def steps(talk: Session) -> None:
        assert "Searches the knowledge base" in await talk.says("flurble the quux wombat")
        again = await talk.says("wombat quux the flurble")
        assert "Searches the knowledge base" not in again
        assert "what I can do" in again
        assert "Searches the knowledge base" in await talk.says("what can you do?")

    _talk(steps)


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ("Write me a poem", "make things up"),
        ("make up a rhyme for my aunt", "make things up"),
        ("how old are you?", "I am a program"),
        ("hey, who am I talking to?", "I am a program"),
        ("do you speak German?", "English only"),
        ("hmm", "Take your time"),
        ("thanks, that was great", "welcome"),
        ("have a nice evening", "Goodbye"),
        ("why?", "I have done nothing yet"),
    ],
)
def test_talk_is_answered_plainly_and_calls_nothing(said: str, answered: str) -> None:
    async def steps(talk: Session) -> None:
        assert answered in await talk.says(said)
        assert talk.calls == []

    _talk(steps)


def test_who_doubts_an_answer_is_told_what_it_was_taken_for() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("what is our policy on dogs?")
        await talk.gets({"results": []})
        said = await talk.says("are you sure?")
        assert "what is our policy on dogs?" in said
        assert "kb search" in said
        await talk.says("flurble the quux wombat")
        assert "did not understand" in await talk.says("what do you mean?")
        assert talk.calls == []

    _talk(steps)


@pytest.mark.parametrize(
    ("said", "own"),
    [
        ("Wann bin ich am Freitag frei?", "nur Englisch"),
        ("Combien de jours de congé est-ce que j'ai ?", "que l'anglais"),
        ("¿Qué hora es en Madrid?", "solo entiendo inglés"),
        ("Hoeveel dagen heb ik vrij dit jaar?", "alleen Engels"),
        ("Который час в Москве?", "English only"),
    ],
)
def test_another_language_is_named_as_the_reason(said: str, own: str) -> None:
    async def steps(talk: Session) -> None:
        answer = await talk.says(said)
        assert own in answer
        assert "I understand English only" in answer
        assert talk.calls == []

    _talk(steps)


@given(
    st.sampled_from(["Who is", "What do we know about", "Book a table at", "Search for", "Show me"]),
    st.lists(
        st.sampled_from(["Maria", "de", "la", "Cruz", "Café", "der", "Straße", "Madrid", "El", "Niño"]),
        min_size=1,
        max_size=2,
    ),
)
def test_a_foreign_name_in_an_english_request_makes_it_no_other_language(lead: str, name: list[str]) -> None:
    assert other_language(f"{lead} {' '.join(name)} please, and tell me when it is open") is None


@pytest.mark.parametrize(
    ("correction", "begins", "ends"),
    [
        ("no, at 11", "2026-11-20T11:00:00+01:00", "2026-11-20T11:30:00+01:00"),
        ("no, 11", "2026-11-20T11:00:00+01:00", "2026-11-20T11:30:00+01:00"),
        ("sorry, I meant 2 pm", "2026-11-20T14:00:00+01:00", "2026-11-20T14:30:00+01:00"),
        ("actually make it 4pm", "2026-11-20T16:00:00+01:00", "2026-11-20T16:30:00+01:00"),
        ("make it two hours", "2026-11-20T10:00:00+01:00", "2026-11-20T12:00:00+01:00"),
        ("Thursday instead", "2026-11-19T10:00:00+01:00", "2026-11-19T10:30:00+01:00"),
        ("from 3 to 5 pm instead", "2026-11-20T15:00:00+01:00", "2026-11-20T17:00:00+01:00"),
    ],
)
def test_a_correction_keeps_what_it_does_not_change(correction: str, begins: str, ends: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says("book a meeting called Review on Friday at 10 for half an hour with ann@example.org")
        await talk.gets(_EVENT)
        said = await talk.says(correction)
        assert "what was done before stays as it is" in said
        assert talk.args["title"] == "Review"
        assert talk.args["attendees"] == ["ann@example.org"]
        assert (talk.args["start_time"], talk.args["end_time"]) == (begins, ends)

    _talk(steps)


def test_a_correction_of_what_waits_for_approval_says_that_it_waits() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("book a meeting called Review on Friday at 10 for half an hour")
        await talk.gets(error={"type": "CONFIRMATION_REQUIRED", "message": "The user has to confirm."})
        assert "still waits for your word" in await talk.says("no, at 11")
        assert talk.calls[0].tool_id == "calendar_create_event"

    _talk(steps)


def test_a_correction_finds_the_call_of_its_message_that_has_a_place_for_it() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("book a slot called Yoga on Friday at 7 am for an hour and find the travel policy")
        await talk.gets(_EVENT)
        assert talk.calls[0].tool_id == "kb_search"
        await talk.gets({"results": []})
        await talk.says("no, 8 am")
        assert talk.calls[0].tool_id == "calendar_create_event"
        assert (talk.args["title"], talk.args["start_time"]) == ("Yoga", "2026-11-20T08:00:00+01:00")

    _talk(steps)


def test_an_hour_after_a_look_at_one_day_is_meant_for_that_day() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("when do I have time on Wednesday?")
        await talk.gets({"existing_events": [], "available_slots": [], "summary": "none"})
        await talk.says("put lunch with Tom in at 1pm for 45 minutes")
        assert talk.args["start_time"] == "2026-11-18T13:00:00+01:00"

    _talk(steps)


def test_thanks_are_no_text_that_was_asked_for() -> None:
    async def steps(talk: Session) -> None:
        assert "Paste it" in await talk.says("extract the contacts from this")
        await talk.says("ok great, thank you")
        assert talk.calls == []

    _talk(steps)


def test_somebody_who_is_added_joins_those_who_were_invited() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("book a meeting called Review on Friday at 10 for an hour with ann@example.org")
        await talk.gets(_EVENT)
        await talk.says("and invite bob@example.org too")
        assert talk.args["attendees"] == ["ann@example.org", "bob@example.org"]

    _talk(steps)


def test_an_hour_that_is_said_wins_over_the_slot_that_is_meant() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("am I free on Saturday?")
        slot = {"start": "2026-11-21T00:00:00+01:00", "end": "2026-11-21T23:59:59+01:00"}
        await talk.gets({"existing_events": [], "available_slots": [slot], "summary": "1 slot"})
        await talk.says("book an hour there at 3pm, call it Piano")
        assert talk.args["title"] == "Piano"
        assert talk.args["start_time"] == "2026-11-21T15:00:00+01:00"
        assert talk.args["end_time"] == "2026-11-21T16:00:00+01:00"

    _talk(steps)


def test_a_wish_that_does_not_answer_a_question_is_taken_for_itself() -> None:
    async def steps(talk: Session) -> None:
        assert "When" in await talk.says("create an event called Retro")
        assert "no tool here does it" in await talk.says("play some jazz for me")
        assert "When" in await talk.says("create an event called Retro")
        await talk.says("draw a sleepy cat on a windowsill")
        assert talk.calls[0].tool_id == "image_generate"

    _talk(steps)


def test_a_time_is_no_name() -> None:
    async def steps(talk: Session) -> None:
        assert "called" in await talk.says("add an event to my calendar tomorrow at 2 pm for an hour")
        assert "called" in await talk.says("make it 45 minutes")
        await talk.says("Budget")
        assert talk.args["title"] == "Budget"
        assert talk.args["end_time"] == "2026-11-17T14:45:00+01:00"

    _talk(steps)


def test_a_record_that_is_wanted_whole_is_shown_whole() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("show me the full holiday policy")
        await talk.gets({"results": [{**_RECORD, "snippet": "Ask two weeks ahead."}]})
        said = await talk.gets({"records": [_RECORD], "missing": []})
        assert "Ask two weeks ahead.\nTell your lead.\nEnter it.\nThen go.\nCome back." in said

    _talk(steps)


def test_a_line_that_broke_at_the_margin_is_no_sentence_of_its_own() -> None:
    text = (
        "Take over one small task of a running project, with its lead as your mentor. Book the photo\n"
        "room once, so that you know how it works.\n\n- One\n- Two"
    )
    assert sentences(text)[1:] == [
        "Book the photo room once, so that you know how it works.",
        "- One",
        "- Two",
    ]

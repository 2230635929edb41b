"""Conversations with the model-based agent: questions, cards, changes, refusals and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from agent_script import OPTIONS, Scripted, agent_session
from agent_tools import TOOLS, Tool
from jackfield.transport.protocol import TransportError
from jackfield_local.agent.agent import LocalAgent
from jackfield_local.agent.llama import LlamaModel
from local_requests import NOW
from local_session import Session, offered

EVENT: Tool = (
    "Create a calendar event.",
    {
        "type": "object",
        "required": ["title", "start_time", "end_time"],
        "properties": {
            "title": {"type": "string", "description": "What the event is called."},
            "start_time": {"type": "string", "format": "date-time", "description": "When it starts."},
            "end_time": {"type": "string", "format": "date-time", "description": "When it ends."},
            "attendees": {
                "type": "array",
                "items": {"type": "string", "format": "email"},
                "description": "E-mail addresses of those to invite.",
            },
        },
        "additionalProperties": False,
    },
    "# create_event\n\nCreates an event.\n\n## Examples\n\n"
    "Put lunch with Ann into my calendar on Monday at noon\n\n"
    '```json\n{"title": "Lunch with Ann", "start_time": "2026-03-02T12:00:00+01:00", '
    '"end_time": "2026-03-02T13:00:00+01:00"}\n```\n',
)
SEARCH: Tool = (
    "Search the team's documents.",
    {
        "type": "object",
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "description": "What to look for."},
            "document_id": {"type": "string", "description": "Look only into this document."},
        },
    },
    "# find_documents\n\nSearches.\n\n## Examples\n\nwhat are the opening hours of the museum\n\n"
    '```json\n{"query": "opening hours museum"}\n```\n',
)
WAITS = {"type": "CONFIRMATION_REQUIRED", "message": "The user has to confirm."}
BOOKED = {"create_event": {"title": "standup", "start_time": "tomorrow at 9"}}


def _talk(
    model: Scripted,
    steps: Callable[[Session], Awaitable[None]],
    writers: frozenset[str] = frozenset(),
    /,
    **tools: Tool,
) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), agent_session(tools, model, writers=writers) as talk:
            await steps(talk)

    asyncio.run(run())


def test_tool_and_arguments_come_in_one_answer() -> None:
    model = Scripted({"book_table": {"date": "tomorrow", "time": "7pm", "party_size": 4, "name": "Miller"}})

    async def steps(talk: Session) -> None:
        await talk.says("book a table for four tomorrow at 7pm under Miller")
        assert talk.args == {"date": "2026-11-17", "time": "19:00", "party_size": 4, "name": "Miller"}
        assert "Reserved" in await talk.gets({"status": "Reserved", "code": "R7"})

    _talk(model, steps, **TOOLS)
    assert len(model.asked) == 1
    branches = [next(iter(each["properties"])) for each in model.asked[0].schema["anyOf"]]
    assert branches == [*sorted(TOOLS), "cannot", "help", "say"]


def test_a_missing_value_is_asked_for_and_its_reply_needs_no_model() -> None:
    model = Scripted({"book_table": {"date": "thursday", "party_size": 4, "name": "Costa"}})

    async def steps(talk: Session) -> None:
        said = await talk.says("book a table for 4 on thursday, name Costa")
        assert said == "Please tell me when the guests arrive."
        assert not talk.calls
        await talk.says("at 20:30")
        assert talk.args == {"date": "2026-11-19", "time": "20:30", "party_size": 4, "name": "Costa"}

    _talk(model, steps, **TOOLS)
    assert len(model.asked) == 1


def test_a_number_is_asked_for_and_the_others_stay() -> None:
    async def steps(talk: Session) -> None:
        assert "how many share it" in await talk.says("split 100 euros with a 12% tip")
        await talk.says("five")
        assert talk.args == {"total": 100, "people": 5, "tip_percent": 12}

    _talk(Scripted({"split_bill": {"total": 100, "tip_percent": 12}}), steps, **TOOLS)


def test_a_new_request_does_not_take_what_is_missing_from_the_last_call() -> None:
    first = {"book_table": {"date": "tomorrow", "time": "7pm", "party_size": 4, "name": "Miller"}}
    second = {"book_table": {"date": "friday", "party_size": 2, "name": "Costa"}}

    async def steps(talk: Session) -> None:
        await talk.says("book a table for four tomorrow at 7pm under Miller")
        await talk.gets({"status": "reserved"})
        said = await talk.says("now book a table for two on friday under Costa")
        assert said == "Please tell me when the guests arrive."

    _talk(Scripted(first, second), steps, **TOOLS)


def test_a_question_that_no_tool_fits_goes_to_the_search() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("how do I order more cheques?")
        assert talk.args == {"query": "how do I order more cheques?"}
        await talk.gets({"results": []})
        assert await talk.says("order more cheques") == "I cannot order cheques: I have no tool for that."

    refused = {"cannot": "order cheques"}
    _talk(Scripted(refused, refused), steps, find_documents=SEARCH)


def test_a_text_is_asked_for_and_the_reply_is_the_text() -> None:
    model = Scripted({"set_reminder": {"at": "tomorrow at 9"}}, {"set_reminder": {}})

    async def steps(talk: Session) -> None:
        assert (await talk.says("set a reminder for tomorrow at 9")).startswith(
            "Please tell me what to remind"
        )
        await talk.says("water the flowers")
        assert talk.args == {"text": "water the flowers", "at": "2026-11-17T09:00:00+01:00"}

    _talk(model, steps, **TOOLS)
    assert "[You asked: Please tell me what to remind you of.]" in model.asked[1].messages[-1].content


def test_a_value_is_asked_for_at_most_twice() -> None:
    unclear = {"set_thermostat": {"room": "bedroom"}}
    model = Scripted(unclear, unclear, unclear)

    async def steps(talk: Session) -> None:
        first = await talk.says("make the bedroom warmer")
        assert "temperature" in first.lower()
        assert await talk.says("quite warm") == first
        assert (
            await talk.says("warmer than now")
            == "I cannot continue without the celsius. Ask again when you have it."
        )

    _talk(model, steps, **TOOLS)


def test_a_day_that_was_said_before_the_question_still_holds() -> None:
    model = Scripted(
        {"create_event": {"start_time": "tomorrow"}},
        {"create_event": {"start_time": "3 pm"}},
        {"create_event": {}},
    )

    async def steps(talk: Session) -> None:
        assert "what the event is called" in await talk.says("Put a meeting into my calendar tomorrow")
        await talk.says("at 3 pm")
        await talk.says("Budget review")
        assert talk.args["start_time"] == "2026-11-17T15:00:00+01:00"
        assert talk.args["title"] == "Budget review"

    _talk(model, steps, create_event=EVENT)


def test_a_clock_time_alone_belongs_to_the_day_of_the_last_call() -> None:
    model = Scripted(
        {"weather": {"city": "Oslo", "day": "tomorrow"}},
        {"set_reminder": {"text": "take gloves", "at": "8 am"}},
    )

    async def steps(talk: Session) -> None:
        await talk.says("how warm is it in Oslo tomorrow")
        await talk.gets({"summary": "Light snow and minus two degrees all day."})
        await talk.says("remind me at 8 am to take gloves")
        assert talk.args["at"] == "2026-11-17T08:00:00+01:00"

    _talk(model, steps, **TOOLS)


def test_a_new_request_replaces_the_pending_question() -> None:
    model = Scripted({"weather": {"day": "tomorrow"}}, {"track_parcel": {"tracking_id": "DE987654321"}})

    async def steps(talk: Session) -> None:
        assert "city" in await talk.says("will it rain tomorrow")
        await talk.says("actually, where is parcel DE987654321?")
        assert talk.calls[-1].tool_id == "track_parcel"

    _talk(model, steps, **TOOLS)


@pytest.mark.parametrize(
    ("says", "written", "changed"),
    [
        (
            "make it an hour later",
            {"create_event": {"start_time": "an hour later"}},
            {"start_time": "2026-11-17T10:00:00+01:00", "end_time": "2026-11-17T11:00:00+01:00"},
        ),
        (
            "push it back by 30 minutes",
            {"say": "I have moved it."},
            {"start_time": "2026-11-17T09:30:00+01:00", "end_time": "2026-11-17T10:30:00+01:00"},
        ),
        (
            "on friday instead",
            {"create_event": {"start_time": "friday"}},
            {"start_time": "2026-11-20T09:00:00+01:00", "end_time": "2026-11-20T10:00:00+01:00"},
        ),
        (
            "at 3pm please",
            {"create_event": {"start_time": "3pm"}},
            {"start_time": "2026-11-17T15:00:00+01:00", "end_time": "2026-11-17T16:00:00+01:00"},
        ),
        ("call it Morning round", {"create_event": {"title": "Morning round"}}, {"title": "Morning round"}),
        (
            "invite tobias@example.org",
            {"create_event": {"attendees": ["tobias@example.org"]}},
            {"attendees": ["tobias@example.org"]},
        ),
        (
            "make it two hours long",
            {"create_event": {}},
            {"end_time": "2026-11-17T11:00:00+01:00"},
        ),
        (
            "half an hour longer please",
            {"cannot": "extend meetings"},
            {"end_time": "2026-11-17T10:30:00+01:00"},
        ),
        (
            "wait, wednesday",
            {"weather": {"day": "wednesday"}},
            {"start_time": "2026-11-18T09:00:00+01:00", "end_time": "2026-11-18T10:00:00+01:00"},
        ),
    ],
)
def test_an_open_card_is_changed(says: str, written: Any, changed: dict[str, Any]) -> None:
    async def steps(talk: Session) -> None:
        await talk.says("put a standup into my calendar tomorrow at 9")
        before = talk.args
        assert before["end_time"] == "2026-11-17T10:00:00+01:00"
        assert "approval" in await talk.gets(error=WAITS)
        await talk.says(says)
        assert talk.args == {**before, **changed}
        assert (await talk.gets(error=WAITS)).endswith(
            "The previous card is still open; decline it if this one replaces it."
        )

    model = Scripted(BOOKED, written)
    _talk(model, steps, create_event=EVENT, weather=TOOLS["weather"])
    assert "[Waiting for approval: " in model.asked[1].messages[-1].content


def test_a_card_is_changed_after_another_question() -> None:
    invited = {"create_event": {"attendees": ["tobias@example.org"]}}

    async def steps(talk: Session) -> None:
        await talk.says("put a standup into my calendar tomorrow at 9")
        before = talk.args
        await talk.gets(error=WAITS)
        await talk.says("who looks after the printers?")
        await talk.gets({"results": []})
        await talk.says("invite tobias@example.org")
        assert talk.args == {**before, "attendees": ["tobias@example.org"]}

    asked = {"find_documents": {"query": "printers"}}
    _talk(Scripted(BOOKED, asked, invited), steps, create_event=EVENT, find_documents=SEARCH)


def test_a_card_is_changed_even_if_another_tool_is_closer_to_the_words() -> None:
    free: Tool = (
        "Show which hours of a day are free.",
        {
            "type": "object",
            "required": ["day"],
            "properties": {"day": {"type": "string", "format": "date", "description": "The day."}},
        },
        "# free_hours\n\nShows free hours.\n\n## Examples\n\nwait, on thursday, not on wednesday\n\n"
        '```json\n{"day": "2026-03-05"}\n```\n',
    )

    async def steps(talk: Session) -> None:
        await talk.says("put a standup into my calendar tomorrow at 9")
        await talk.gets(error=WAITS)
        await talk.says("wait, thursday not wednesday")
        assert talk.args["start_time"] == "2026-11-19T09:00:00+01:00"

    changed = {"create_event": {"start_time": "thursday"}}
    writers = frozenset(("create_event",))
    _talk(Scripted(BOOKED, changed), steps, writers, create_event=EVENT, free_hours=free)


def test_a_choice_that_the_model_overlooks_changes_the_card() -> None:
    model = Scripted({"set_reminder": {"text": "call the bank", "at": "friday at 10"}}, {"set_reminder": {}})

    async def steps(talk: Session) -> None:
        await talk.says("remind me to call the bank on friday at 10")
        await talk.gets(error=WAITS)
        await talk.says("make it weekly")
        assert talk.args["repeat"] == "weekly"

    _talk(model, steps, **TOOLS)


def test_the_same_card_is_not_shown_again() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("put a standup into my calendar tomorrow at 9")
        await talk.gets(error=WAITS)
        assert (await talk.says("the standup tomorrow at 9")).startswith("Nothing has changed")
        assert not talk.calls

    _talk(Scripted(BOOKED, BOOKED), steps, create_event=EVENT)


def test_a_card_does_not_take_up_what_has_nothing_to_do_with_it() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("put a standup into my calendar tomorrow at 9")
        await talk.gets(error=WAITS)
        assert await talk.says("play some rock music") == "I have no tool for that."

    _talk(Scripted(BOOKED, {"create_event": {"title": "standup"}}), steps, create_event=EVENT)


def test_a_name_without_an_address_is_asked_for_its_address() -> None:
    invited = {"create_event": {"attendees": ["Tobias"]}}

    async def steps(talk: Session) -> None:
        await talk.says("put a standup into my calendar tomorrow at 9")
        await talk.gets(error=WAITS)
        assert await talk.says("invite Tobias") == "What is the e-mail of Tobias?"
        await talk.says("tobias@example.org")
        assert talk.args["attendees"] == ["tobias@example.org"]
        assert talk.args["title"] == "standup"

    _talk(Scripted(BOOKED, invited), steps, create_event=EVENT)


def test_a_guest_without_an_address_does_not_hold_up_an_event() -> None:
    booked = {"create_event": {"title": "standup", "start_time": "tomorrow at 9", "attendees": ["Tobias"]}}

    async def steps(talk: Session) -> None:
        await talk.says("put a standup with Tobias into my calendar tomorrow at 9")
        assert talk.args["title"] == "standup"
        assert "attendees" not in talk.args

    _talk(Scripted(booked), steps, create_event=EVENT)


@pytest.mark.parametrize(
    ("says", "query"),
    [
        ("what is her number?", "what is her number (Mara Lind)?"),
        ("and on Fridays?", "and on Fridays (Mara Lind)?"),
        ("and Otto?", "and Otto?"),
    ],
)
def test_a_follow_up_question_is_searched_for_with_its_topic(says: str, query: str) -> None:
    record = {"id": "person:7", "title": "Mara Lind", "text": "Mara Lind looks after the printers."}

    async def steps(talk: Session) -> None:
        await talk.says("who looks after the printers?")
        await talk.gets({"results": [record]})
        await talk.says(says)
        assert talk.args == {"query": query}

    asked = {"find_documents": {"query": "who looks after the printers"}}
    _talk(Scripted(asked, asked), steps, find_documents=SEARCH)


def test_the_model_says_whom_a_pronoun_means_and_its_names_must_have_been_shown() -> None:
    text = "Mara Lind leads the project, Juno Berg takes the pictures."
    record = {"id": "project:1", "title": "Coffee", "text": text}

    async def steps(talk: Session) -> None:
        await talk.says("who takes the pictures for the coffee project?")
        await talk.gets({"results": [record]})
        await talk.says("what is her number?")
        assert talk.args == {"query": "what is her number (Juno Berg)?"}
        await talk.gets({"results": [record]})
        await talk.says("is she in on Mondays?")
        assert talk.args == {"query": "is she in on Mondays (Coffee)?"}

    model = Scripted(
        {"find_documents": {"query": "pictures coffee project"}},
        {"find_documents": {"query": "number of Juno Berg"}},
        {"find_documents": {"query": "Nobody Known Mondays"}},
    )
    _talk(model, steps, find_documents=SEARCH)
    assert f"[You answered: {text}" in model.asked[1].messages[-1].content


def test_a_question_about_an_earlier_result_repeats_it() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("send an invoice over 80 to Ferro")
        await talk.gets({"invoice": "2026-042"})
        await talk.says("how warm is it in Oslo")
        await talk.gets({"summary": "Light snow and minus two degrees all day."})
        assert await talk.says("what number did the invoice to Ferro get?") == "The invoice is 2026-042."
        assert await talk.says("who won the cup?") == "I cannot tell results: I have no tool for that."

    model = Scripted(
        {"send_invoice": {"customer": "Ferro", "amount": 80}},
        {"weather": {"city": "Oslo"}},
        {"cannot": "get invoice details"},
        {"cannot": "tell results"},
    )
    _talk(model, steps, **TOOLS)


def test_a_follow_up_takes_the_rest_from_the_last_call() -> None:
    model = Scripted({"weather": {"city": "Oslo"}}, {"weather": {"day": "tomorrow"}})

    async def steps(talk: Session) -> None:
        await talk.says("how warm is it in Oslo")
        await talk.gets({"summary": "Light snow and minus two degrees all day."})
        await talk.says("and tomorrow?")
        assert talk.args == {"city": "Oslo", "day": "2026-11-17"}

    _talk(model, steps, **TOOLS)


def test_what_no_tool_does_is_refused_in_one_sentence() -> None:
    async def steps(talk: Session) -> None:
        assert await talk.says("order a taxi") == "I cannot order taxis: I have no tool for that."

    _talk(Scripted({"cannot": "order taxis"}), steps, **TOOLS)


@pytest.mark.parametrize("claim", ["I have set the alarm.", "I'll do that.", "It is 22 degrees."])
def test_claims_of_the_model_are_not_passed_on(claim: str) -> None:
    async def steps(talk: Session) -> None:
        assert await talk.says("set an alarm") == "I have no tool for that."

    _talk(Scripted({"say": claim}), steps, **TOOLS)


def test_a_tool_that_the_words_say_nothing_about_is_not_asked_for() -> None:
    async def steps(talk: Session) -> None:
        assert await talk.says("it is true") == "I have no tool for that."

    _talk(Scripted({"create_event": {"title": "Dentist"}}), steps, create_event=EVENT)


def test_a_refusal_of_the_model_is_overruled_by_a_tool_with_that_verb() -> None:
    async def steps(talk: Session) -> None:
        assert await talk.says("i wanna reserve a table") == "Please tell me the day of the visit."
        said = await talk.says("cancel the invoice of Acme")
        assert said == "I cannot cancel invoices: I have no tool for that."

    _talk(Scripted({"cannot": "reserve a table"}, {"cannot": "cancel invoices"}), steps, **TOOLS)


def test_until_the_model_is_ready_the_router_answers() -> None:
    model = Scripted({"track_parcel": {"tracking_id": "DE987654321"}}, ready=False)

    async def steps(talk: Session) -> None:
        said = await talk.says("hello")
        assert said.startswith(
            "(The language model is getting ready: 0%. Until then I choose tools without it.)"
        )
        assert "getting ready" not in await talk.says("hello again")
        assert model.asked == []
        model.ready = True
        await talk.says("where's parcel DE987654321")
        assert talk.args == {"tracking_id": "DE987654321"}

    _talk(model, steps, **TOOLS)
    assert len(model.asked) == 1


def test_an_evicted_prompt_is_prepared_again_for_the_next_conversation() -> None:
    model = Scripted()

    async def main() -> None:
        agent = LocalAgent(OPTIONS, clock=lambda: NOW, model=cast("LlamaModel", model))
        for _ in range(2):
            async with offered(TOOLS, agent):
                await agent.ready()
                # llama.cpp has few slots: conversations with other tools evict this prompt.
                (evicted,) = model.prepared
                assert model.is_ready(evicted)
                model.prepared.clear()
        await agent.close()

    asyncio.run(main())


def test_the_router_answers_if_the_model_fails() -> None:
    async def steps(talk: Session) -> None:
        assert await talk.says("hello")

    _talk(Scripted(TransportError("server_error", "no room")), steps, **TOOLS)


def test_a_question_is_searched_for_as_it_was_asked_and_the_answer_names_its_source() -> None:
    found = [
        {
            "id": "doc:7",
            "title": "Office",
            "text": "The office has two floors. Mara Lind looks after the printers. Paper is in the cellar.",
        },
        {
            "id": "doc:9",
            "title": "Prices",
            "text": "A poster costs 12 euros. Frames are sold out now.",
        },
    ]

    async def steps(talk: Session) -> None:
        await talk.says("who looks after the printers?")
        assert talk.args == {"query": "who looks after the printers?"}
        said = await talk.gets({"results": found})
        assert said.startswith("Mara Lind looks after the printers.")
        assert "Source: Office [doc:7]" in said
        assert "- Prices [doc:9]" in said

    _talk(Scripted({"find_documents": {"query": "printers"}}), steps, find_documents=SEARCH)


def test_only_an_identifier_that_was_seen_is_passed_on() -> None:
    model = Scripted(
        {"find_documents": {"query": "poster prices", "document_id": "doc:99"}},
        {"find_documents": {"query": "frames", "document_id": "doc:9"}},
    )

    async def steps(talk: Session) -> None:
        await talk.says("look for poster prices")
        assert talk.args == {"query": "poster prices"}
        await talk.gets(
            {"results": [{"id": "doc:9", "title": "Prices", "text": "A poster costs 12 euros, large."}]}
        )
        await talk.says("look for frames in the first one")
        assert talk.args == {"query": "frames", "document_id": "doc:9"}

    _talk(model, steps, find_documents=SEARCH)
    assert "[Results: 1. Prices (doc:9)]" in model.asked[1].messages[-1].content


def test_a_failure_says_what_happened_and_what_to_do() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("where's parcel DE987654321")
        error = {"type": "NOT_FOUND", "message": "No such parcel", "suggestion": "Check the number."}
        assert await talk.gets(error=error) == "No such parcel. Check the number."

    _talk(Scripted({"track_parcel": {"tracking_id": "DE987654321"}}), steps, **TOOLS)


def test_an_approved_call_is_described_and_a_declined_one_forgotten() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("put a standup into my calendar tomorrow at 9")
        await talk.gets(error=WAITS)
        done = '{"ok": true, "data": {"status": "created", "title": "standup"}, "intents": []}'
        await talk.connection.send_context(
            f"The user approved the call to create_event. Its answer: {done}", respond=True
        )
        assert "standup" in await talk.answer()
        await talk.connection.send_context(
            "The user declined the call to create_event; it was not run.", respond=True
        )
        assert await talk.answer() == "All right, nothing was done."

    _talk(Scripted(BOOKED), steps, create_event=EVENT)

"""The agent without a model: it calls what is certain, and asks or shows a form where it is not."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agent_tools import TOOLS
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield.transport.protocol import ConnectionConfig
from jackfield_local import unchanged
from jackfield_local.agent.agent import embed_phrases
from jackfield_local.agent.grounding import ground
from jackfield_local.agent.message import UserMessage
from jackfield_local.agent.tools import tools_of
from local_requests import NOW
from local_session import Session, session, talk_over

WRITERS = frozenset(
    ("book_table", "create_ticket", "log_workout", "send_invoice", "set_reminder", "set_thermostat")
)
WAITS = {"type": "CONFIRMATION_REQUIRED", "message": "The user has to confirm."}
Steps = Callable[[Session], Awaitable[None]]


def _third(steps: Steps, **changes: Any) -> None:
    talk_over(TOOLS, steps, writers=WRITERS, **changes)


def _own(steps: Steps, mode: Any = "text", **changes: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), session(mode, **changes) as talk:
            await steps(talk)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("said", "tool", "args"),
    [
        ("50 euros in dollars", "convert_currency", {"amount": 50, "from": "EUR", "to": "USD"}),
        ("how many yen for 200 francs?", "convert_currency", {"amount": 200, "from": "CHF", "to": "JPY"}),
        ("where is parcel DE987654321", "track_parcel", {"tracking_id": "DE987654321"}),
        ("weather in Oslo tomorrow", "weather", {"city": "Oslo", "day": "2026-11-17"}),
    ],
)
def test_a_tool_of_a_third_party_is_called_with_the_values_that_were_said(
    said: str, tool: str, args: dict[str, Any]
) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(said)
        assert (talk.calls[0].tool_id, talk.args) == (tool, args)

    _third(steps)


def test_one_question_at_a_time_leads_to_the_call() -> None:
    async def steps(talk: Session) -> None:
        assert await talk.says("I'd like to reserve a table") == "Please tell me the day of the visit."
        assert await talk.says("tomorrow") == "Please tell me when the guests arrive."
        assert "how many guests come" in await talk.says("half past seven in the evening")
        assert await talk.says("we are four") == "Please tell me the name the table is reserved under."
        said = await talk.says("it's for Marsh")
        assert said.startswith("Do you mean this: Reserve a table at the restaurant (date: 2026-11-17, ")
        await talk.says("yes")
        assert talk.calls[0].tool_id == "book_table"
        assert talk.args == {"date": "2026-11-17", "time": "19:30", "party_size": 4, "name": "Marsh"}

    _third(steps)


def test_a_likely_value_is_confirmed_before_a_tool_that_writes_gets_it() -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says("reserve a table for two tomorrow at 8 pm for Kim")
        assert "name: Kim" in said
        assert said.endswith("Please say yes or no.")
        assert talk.calls == []
        await talk.says("yes please")
        assert talk.args == {"date": "2026-11-17", "time": "20:00", "party_size": 2, "name": "Kim"}

    _third(steps)


@pytest.mark.parametrize("answer", ["no", "n", "No.", "no thanks"])
def test_a_rejected_value_is_not_used(answer: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says("reserve a table for two tomorrow at 8 pm for Kim")
        said = await talk.says(answer)
        assert said.startswith("All right, nothing was done. Did you mean one of these? 1. ")
        assert talk.calls == []

    _third(steps)


def test_a_number_replaces_that_of_the_last_call() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("21 degrees in the kitchen")
        await talk.says("yes")
        await talk.gets({"ok": True})
        assert "celsius: 18, room: bedroom" in await talk.says("and 18 in the bedroom")

    _third(steps)


def test_a_client_with_forms_gets_one_with_all_values_that_were_found() -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says("reserve a table for two tomorrow for Kim")
        assert said == "Reserve a table at the restaurant: please check and complete this."
        assert talk.calls == []
        (form,) = talk.forms
        assert form.tool_id == "book_table"
        assert form.values == {"date": "2026-11-17", "party_size": 2, "name": "Kim"}
        await talk.submits(time="19:00")
        assert talk.args == {"date": "2026-11-17", "party_size": 2, "name": "Kim", "time": "19:00"}
        assert "reserved" in await talk.gets({"status": "reserved"})

    _third(steps, forms=True)


def test_words_complete_and_correct_the_form_that_was_just_shown() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("book a meeting on Friday at 4 pm")
        assert "title" not in talk.forms[-1].values
        await talk.says("Budget round")
        assert talk.forms[-1].values["title"] == "Budget round"
        await talk.says("no, make it half past four")
        assert talk.calls[-1].tool_id == "calendar_create_event"
        assert talk.args["title"] == "Budget round"
        assert talk.args["start_time"] == "2026-11-20T16:30:00+01:00"

    _own(steps, forms=True)


def test_courtesies_leave_the_form_as_it_is() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("book a meeting on Friday at 4 pm")
        assert await talk.says("thanks") == "You're welcome."
        assert len(talk.forms) == 1

    _own(steps, forms=True)


def test_another_request_leaves_the_form_as_it_is() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("book a meeting on Friday at 4 pm")
        await talk.says("who looks after the printers?")
        assert {each.tool_id for each in talk.calls} == {"kb_search"}
        assert len(talk.forms) == 1

    _own(steps, forms=True)


@pytest.mark.parametrize("forms", [True, False])
def test_what_the_user_does_not_want_is_not_done(*, forms: bool) -> None:
    async def steps(talk: Session) -> None:
        assert await talk.says("I don't want to create an event on Friday at 4 pm") == "All right."
        assert await talk.says("please do not create an event called Retro on Friday at 4 pm") == "All right."
        assert talk.calls == []
        assert talk.forms == []

    _own(steps, forms=forms)


@pytest.mark.parametrize("said", ["cancel the event on Friday at 4 pm", "please delete my calendar event"])
def test_a_tool_that_creates_is_not_used_to_remove(said: str) -> None:
    async def steps(talk: Session) -> None:
        assert (await talk.says(said)).startswith("I have no tool for that. ")
        assert talk.calls == []
        assert talk.forms == []

    _own(steps, forms=True)


def test_the_verb_of_a_request_is_not_the_title() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("schedule a wine tasting event on Friday at 4 pm")
        assert talk.forms[-1].values["title"] == "wine tasting"

    _own(steps, forms=True)


@pytest.mark.parametrize("said", ["???", "!"])
def test_a_message_without_words_gets_examples(said: str) -> None:
    async def steps(talk: Session) -> None:
        assert (await talk.says(said)).startswith("Say it in your own words.")

    _own(steps)


def test_nonsense_is_not_answered_with_unrelated_tools() -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says("peel the potatoes")
        assert said == 'I have no tool for that. Ask "What can you do?" for examples.'

    _own(steps)


def test_a_time_is_converted_from_the_first_place_to_the_second() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("convert 2026-12-01T09:30 Lisbon time to Denver time")
        assert (talk.args["from_timezone"], talk.args["timezone"]) == ("Europe/Lisbon", "America/Denver")

    _own(steps)


def test_a_whole_question_does_not_take_the_day_of_the_last_one() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("what day is it today?")
        assert talk.args["datetime"] == "2026-11-16"
        await talk.gets({"text": "Monday"})
        await talk.says("what time is it in Lisbon?")
        assert "datetime" not in talk.args

    _own(steps)


def test_a_form_has_the_members_of_an_object_in_their_place() -> None:
    schema = {
        "type": "object",
        "required": ["amount", "term"],
        "properties": {
            "amount": {"type": "number", "description": "How much is borrowed."},
            "term": {
                "type": "object",
                "required": ["length", "unit"],
                "properties": {
                    "length": {"type": "integer", "description": "How long."},
                    "unit": {"enum": ["months", "years"], "description": "Of what."},
                },
            },
        },
    }
    loan = (
        "Take up a loan.",
        schema,
        "# loan\n\nTakes up a loan.\n\n## Examples\n\nI want to take up a loan.\n",
    )

    async def steps(talk: Session) -> None:
        await talk.says("take up a loan over years")
        assert talk.forms[-1].values == {"term": {"unit": "years"}}
        await talk.submits(amount=5000, term={"unit": "years", "length": 3})
        assert talk.args == {"amount": 5000, "term": {"unit": "years", "length": 3}}

    talk_over({"loan": loan}, steps, writers=frozenset(("loan",)), forms=True)


@pytest.mark.parametrize("said", ["order me a pizza", "play some jazz", "book a flight to Rome"])
def test_what_no_tool_does_is_said_in_one_sentence(said: str) -> None:
    async def steps(talk: Session) -> None:
        assert (await talk.says(said)).startswith("I have no tool for that. ")
        assert talk.calls == []

    _own(steps)


def test_if_no_tool_is_close_enough_the_user_may_choose_one() -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says("the VPN drops every ten minutes")
        assert said.startswith("I have no tool for that. The closest I have: 1. ")
        while "Open a ticket for the support team" not in said:
            said = await talk.says("no")
        options = [each.partition(". ")[2] for each in re.findall(r"\d\. [^.]+", said)]
        place = options.index("Open a ticket for the support team") + 1
        assert "title: VPN drops every ten minutes" in await talk.says(f"number {place}")
        assert talk.calls == []
        await talk.says("yes")
        assert (talk.calls[0].tool_id, talk.args) == (
            "create_ticket",
            {"title": "VPN drops every ten minutes"},
        )

    _third(steps)


@pytest.mark.parametrize(
    "said",
    [
        "can I expense a taxi home",
        "who looks after the printers?",
        "what does a poster cost?",
        "which project is late?",
        "what does the holiday policy say about the days between the years?",
    ],
)
def test_a_question_that_matches_no_tool_is_searched_for_as_it_was_asked(said: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(said)
        assert {each.tool_id for each in talk.calls} == {"kb_search"}
        asked = [json.loads(each.arguments) for each in talk.calls]
        assert asked[0] == {"query": said}
        assert {each["query"] for each in asked} == {said}
        assert {each.get("namespace") for each in asked} == {None, "personal", "public"}

    _own(steps)


@pytest.mark.parametrize("said", ["quit", "let me talk to a human", "take the 8am meeting off my calendar"])
def test_no_tool_writes_without_a_request(said: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(said)
        assert talk.calls == []

    _own(steps)
    _own(steps, forms=True)


def test_an_event_gets_the_title_that_was_said() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("Please make a meeting called Kick-off on 30 November 2026 from 10:00 to 11:00.")
        assert talk.calls[0].tool_id == "calendar_create_event"
        assert talk.args["title"] == "Kick-off"
        assert talk.args["start_time"] == "2026-11-30T10:00:00+01:00"
        assert talk.args["end_time"] == "2026-11-30T11:00:00+01:00"

    _own(steps)


def test_a_room_that_is_booked_becomes_a_form_and_not_a_document() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("book photo room friday at 9am")
        assert talk.calls == []
        (form,) = talk.forms
        assert form.tool_id == "calendar_create_event"
        assert form.values["title"] == "photo room"
        assert form.values["start_time"] == "2026-11-20T09:00:00+01:00"

    _own(steps, forms=True)


def test_an_hour_later_changes_the_card_that_waits() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("create an event called Retro on Friday at 4 pm")
        assert talk.args["start_time"] == "2026-11-20T16:00:00+01:00"
        await talk.gets(error=WAITS)
        await talk.says("make it an hour later")
        assert talk.args["title"] == "Retro"
        assert talk.args["start_time"] == "2026-11-20T17:00:00+01:00"
        assert talk.args["end_time"] == "2026-11-20T18:00:00+01:00"

    _own(steps)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("yes", "I cannot decide for you: please approve or decline the card."),
        ("no", "All right. The card is still waiting for your decision."),
        ("never mind, forget it", "All right. The card is still waiting for your decision."),
    ],
)
@pytest.mark.parametrize("meanwhile", ["", "Who looks after the printers?"])
def test_words_do_not_decide_about_a_card_and_the_reply_says_so(said: str, told: str, meanwhile: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says("create an event called Retro on Friday at 4 pm")
        await talk.gets(error=WAITS)
        if meanwhile:
            await talk.says(meanwhile)
            await talk.gets({"results": []})
        assert await talk.says(said) == told

    _own(steps)


def test_a_completed_action_is_not_said_to_be_undone() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("create an event called Retro on Friday at 4 pm")
        await talk.gets({"event_id": "event-1"})
        assert await talk.says("undo that") == "All right. The last action was not undone."
        assert await talk.says("be quiet") == "All right."

    _own(steps)


def test_an_unknown_place_does_not_get_the_users_own_time() -> None:
    async def steps(talk: Session) -> None:
        assert await talk.says("what time is it in Orlando") == "What is the time zone of Orlando?"
        assert talk.calls == []

    _own(steps)


@pytest.mark.parametrize("said", ["stop", "Stop.", "stop talking please", "quit"])
def test_in_voice_stop_is_answered_with_silence(said: str) -> None:
    async def steps(talk: Session) -> None:
        assert await talk.says(said) == ""
        assert talk.calls == []

    _own(steps, "voice")


def test_in_voice_a_request_that_needs_text_is_declined_in_one_sentence() -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says("Put a meeting into my calendar tomorrow")
        assert said == "I can do that only in a text conversation."
        assert talk.calls == []

    _own(steps, "voice")


def test_a_farewell_ends_the_voice_session() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("Okay, bye!")
        assert (talk.calls[0].tool_id, talk.args) == ("end_voice_session", {"reason": "user_request"})

    _own(steps, "voice")


_DECLARED = {
    name: dict(unchanged(name, told, schema).declaration) for name, (told, schema, _) in TOOLS.items()
}
_GUIDES = {name: guide for name, (_, _, guide) in TOOLS.items()}
_TOOLS = tools_of(ConnectionConfig("text", "", _DECLARED, guides=_GUIDES, writers=WRITERS))
_WORD = st.sampled_from(
    sorted(
        {word for _, _, guide in TOOLS.values() for word in guide.replace('"', " ").split() if word.isalnum()}
    )
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_WORD, min_size=1, max_size=14).map(" ".join), st.sampled_from(_TOOLS))
def test_whatever_is_said_a_text_that_is_certain_was_quoted_or_named(said: str, tool: Any) -> None:
    """Without quotes and "called", a tool that writes never gets a text without the user's yes."""
    found = ground(tool, None, UserMessage(said, NOW, embed_phrases, zone="Europe/Berlin"))
    texts = {each.name for each in tool.parameters if each.type.value == "text" and not each.many}
    assert texts & found.args.keys() <= found.guessed

"""Conversations with the planner: asking back, going on from results, and what it says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from jackfield.transport.protocol import Opening, Utterance
from jackfield_local import as_it_is
from jackfield_local.planner.mind import Planner
from jackfield_local.text import TextConnection
from jackfield_local.transport import LocalTransport
from local_requests import NOW
from local_session import OPTIONS, Session, session

_RECORDS: list[dict[str, Any]] = [
    {
        "id": "doc:holidays",
        "title": "Holiday policy",
        "snippet": "The kitchen is upstairs. Everybody has 30 days of holiday a year. Lunch is at noon.",
        "score": 0.9,
        "url": "https://kb.example/holidays",
    },
    {"id": "doc:lunch", "title": "Lunch", "snippet": "Lunch is at noon.", "score": 0.5, "url": None},
]


def _talk(steps: Callable[[Session], Awaitable[None]], mode: Any = "text", **changes: Any) -> None:
    async def run() -> None:
        async with session(mode, **changes) as talk, asyncio.timeout(60):
            await steps(talk)

    asyncio.run(run())


def test_its_first_words_say_that_it_is_a_simple_planner_and_only_they() -> None:
    async def steps(talk: Session) -> None:
        assert (await talk.says("hello")).startswith("I am a simple planner, not a language model")
        assert "simple planner" not in await talk.says("thank you")

    _talk(steps)


def test_it_introduces_itself_once_in_a_conversation_that_goes_on_elsewhere() -> None:
    async def steps(talk: Session) -> None:
        assert "simple planner" not in await talk.says("hello")

    _talk(steps, history=(Utterance("user", "hi"), Utterance("assistant", "Hello.")))


def test_what_is_missing_is_asked_for_and_the_next_words_answer() -> None:
    async def steps(talk: Session) -> None:
        assert "When" in await talk.says("create an event called Retro")
        assert talk.calls == []
        assert "time" in await talk.says("on Friday")
        await talk.says("at 4 pm, for half an hour")
        assert talk.calls[0].tool_id == "calendar_create_event"
        assert talk.args["title"] == "Retro"
        assert talk.args["start_time"] == "2026-11-20T16:00:00+01:00"
        assert talk.args["end_time"] == "2026-11-20T16:30:00+01:00"

    _talk(steps)


@pytest.mark.parametrize(
    "said",
    [
        "what meetings do I have on Friday?",
        "which meetings are there on Friday",
        "show my meetings on Friday",
    ],
)
def test_who_asks_what_there_is_makes_nothing(said: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(said)
        assert talk.calls[0].tool_id == "calendar_get_availability"
        assert talk.args["start_date"] == "2026-11-20T00:00:00+01:00"

    _talk(steps)


@pytest.mark.parametrize(
    ("when", "begin"),
    [
        ("Monday from eight to nine", "2026-11-23T08:00:00+01:00"),
        ("from eight to nine", "2026-11-17T08:00:00+01:00"),
        ("from two to three", "2026-11-16T14:00:00+01:00"),
    ],
)
def test_an_event_is_not_proposed_for_a_time_that_is_over(when: str, begin: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(f"create an event called Dentist {when}")
        assert talk.args["start_time"] == begin

    _talk(steps)


def test_a_name_that_is_asked_for_is_taken_as_it_is_said() -> None:
    async def steps(talk: Session) -> None:
        assert "name" in await talk.says("I need a linkedin profile")
        await talk.says("Mara Example")
        assert (talk.calls[0].tool_id, talk.args) == ("linkedin_lookup", {"name": "Mara Example"})

    _talk(steps)


def test_a_question_can_be_dropped_or_passed_over() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("create an event called Retro")
        assert "leave it" in await talk.says("never mind")
        await talk.says("create an event called Retro")
        await talk.says("what time is it in Lisbon?")
        assert talk.calls[0].tool_id == "format_datetime"

    _talk(steps)


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ("what can you do?", "I can do this"),
        ("how are you?", "running well"),
        ("thanks", "You are welcome"),
        ("no thanks", "leave it"),
    ],
)
def test_small_talk_is_no_answer_to_a_question_and_ends_it(said: str, answered: str) -> None:
    async def steps(talk: Session) -> None:
        assert "name" in await talk.says("I need a linkedin profile")
        assert answered in await talk.says(said)
        await talk.says("Mara Example")
        assert not talk.calls or talk.calls[0].tool_id != "linkedin_lookup"
        talk.calls.clear()

    _talk(steps)


def test_a_question_of_the_users_own_is_no_answer_and_a_yes_is_none_either() -> None:
    async def steps(talk: Session) -> None:
        assert "name" in await talk.says("I need a linkedin profile")
        assert "name" in await talk.says("yes")
        await talk.says("what is our policy on dogs?")
        assert talk.calls[0].tool_id == "kb_search"

    _talk(steps)


def test_a_question_how_to_do_something_is_looked_up_rather_than_done() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("how do I book the photo room?")
        assert talk.calls[0].tool_id == "kb_search"

    _talk(steps)


def test_what_is_asked_and_what_can_be_done_is_said_to_people() -> None:
    async def steps(talk: Session) -> None:
        asked = await talk.says("suggest some prompts for a picture")
        assert "the user" not in asked
        told = await talk.says("what can you do?")
        assert "Shows when your calendars are busy" in told
        assert "the user" not in told.replace("For example", "")

    _talk(steps)


def test_an_answer_is_a_sentence_that_was_found_with_its_source() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("how many days of holiday do we get?")
        said = await talk.gets({"results": _RECORDS})
        assert "Everybody has 30 days of holiday a year." in said
        assert "Holiday policy [doc:holidays], https://kb.example/holidays" in said
        assert "2. Lunch [doc:lunch]" in said

    _talk(steps)


def test_by_voice_it_is_short_and_without_ids_addresses_or_marks() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("how many days of holiday do we get?")
        said = await talk.gets({"results": _RECORDS})
        assert "Everybody has 30 days of holiday a year." in said
        assert "That is from Holiday policy." in said
        assert not set("[]*#\n") & set(said)
        assert "http" not in said

    _talk(steps, "voice")


def test_nothing_found_and_hardly_related_are_said_and_not_made_up() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("what is our policy on dogs?")
        assert "Nothing was found" in await talk.gets({"results": []})
        await talk.says("what is our policy on cats?")
        said = await talk.gets({"results": [{**_RECORDS[1], "score": 0.1}]})
        assert "nothing certain" in said
        assert "Lunch is at noon" not in said

    _talk(steps)


def test_a_search_leads_to_the_whole_record_and_that_to_the_answer() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("show me the full holiday policy")
        assert talk.calls[0].tool_id == "kb_search"
        await talk.gets({"results": _RECORDS})
        assert (talk.calls[0].tool_id, talk.args) == ("kb_get", {"ids": ["doc:holidays"]})
        record = {**_RECORDS[0], "text": "Holiday is asked for two weeks ahead. Everybody has 30 days."}
        said = await talk.gets({"records": [record], "missing": []})
        assert "asked for two weeks ahead" in said
        assert "[doc:holidays]" in said

    _talk(steps)


def test_free_times_are_told_on_the_users_clock_and_can_be_taken_by_their_place() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("when am I free tomorrow?")
        slots = [
            {"start": "2026-11-17T08:00:00Z", "end": "2026-11-17T09:00:00Z", "duration_minutes": 60},
            {"start": "2026-11-17T12:00:00Z", "end": "2026-11-17T14:00:00Z", "duration_minutes": 120},
        ]
        said = await talk.gets({"existing_events": [], "available_slots": slots, "summary": "2 slots"})
        assert "1. Tue 17 Nov, 09:00 to 10:00" in said
        assert "2. Tue 17 Nov, 13:00 to 15:00" in said
        await talk.says("book the second one, call it Portraits")
        assert talk.calls[0].tool_id == "calendar_create_event"
        assert (talk.args["start_time"], talk.args["title"]) == (slots[1]["start"], "Portraits")

    _talk(steps)


def test_a_place_that_no_result_has_is_asked_about() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("how many days of holiday do we get?")
        await talk.gets({"results": _RECORDS})
        assert "only 2" in await talk.says("open the fifth one")
        assert talk.calls == []

    _talk(steps)


def test_a_call_that_waits_for_approval_is_not_said_to_be_done() -> None:
    async def steps(talk: Session) -> None:
        await talk.says('schedule "Dentist" tomorrow at 9 am for an hour')
        error = {
            "type": "CONFIRMATION_REQUIRED",
            "message": "The user has to confirm.",
            "confirmation_request": {"preview": "Create Dentist?\nStart: 9:00"},
        }
        said = await talk.gets(error=error)
        assert "waits for your approval; nothing has been done yet" in said
        envelope = '{"ok":true,"data":{"status":"created","title":"Dentist"}}'
        approved = f"The user approved the call of calendar_create_event; it ran once. {envelope}"
        await talk.connection.send_context(approved, respond=True)
        assert await talk.answer() == "Created: Dentist."
        declined = "The user declined the call of calendar_create_event; it was not run."
        await talk.connection.send_context(declined, respond=True)
        assert await talk.answer() == "All right, nothing was done."

    _talk(steps)


def test_a_failure_is_told_with_its_suggestion() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("what time is it in Lisbon?")
        error = {
            "type": "TRANSIENT",
            "message": "The clock is stuck.",
            "suggestion": "Try again in a minute.",
        }
        assert await talk.gets(error=error) == (
            "That did not work just now: The clock is stuck. Try again in a minute."
        )

    _talk(steps)


def test_what_would_have_to_be_thought_up_is_held_back_once() -> None:
    async def steps(talk: Session) -> None:
        abuse = "You are a stupid useless thing, shut up."
        warning = "If this goes on, I will use “ignore user”. Nothing has been done yet."
        assert (await talk.says(abuse)).endswith(warning)
        assert talk.calls == []
        await talk.says(abuse)
        assert talk.calls[0].tool_id == "ignore_user"
        assert talk.args["farewell_message"]

    _talk(steps)


def test_nothing_that_fits_is_said_so_and_what_can_be_done_is_told() -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says("flurble the quux wombat")
        assert talk.calls == []
        assert "Could you put it in other words?" in said
        assert "Searches the knowledge base" in said

    _talk(steps)


def test_results_that_came_while_the_user_spoke_can_be_referred_to() -> None:
    async def steps(talk: Session) -> None:
        await talk.connection.send_context(
            'The answer to the call of kb_search: {"ok":true,"data":{"results":['
            '{"id":"doc:a","title":"Ants"},{"id":"doc:b","title":"Bees"}]}}'
        )
        await talk.says("open the second one")
        assert talk.args == {"ids": ["doc:b"]}

    _talk(steps)


GUIDE = """# water_plants

Waters the plants of a room. Use it when somebody says that the plants are dry.

## Examples

Give the plants in the hall some water.

```json
{"room": "hall", "minutes": 5}
```

The fern in the kitchen looks thirsty.

```json
{"room": "kitchen"}
```
"""


def test_a_tool_of_somebody_else_is_usable_by_being_there() -> None:
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["room"],
        "properties": {
            "room": {"type": "string", "enum": ["hall", "kitchen", "office"], "description": "Which room."},
            "minutes": {"type": "integer", "minimum": 1, "maximum": 30, "default": 5},
        },
    }
    declared = dict(as_it_is("water_plants", "Water the plants of a room.", schema).declaration)

    async def run() -> tuple[Any, Any]:
        planner = Planner(OPTIONS, clock=lambda: NOW)
        transport = LocalTransport(OPTIONS, planner)
        connection = await transport.connect(
            Opening("text", "", {"water_plants": declared}, guides={"water_plants": GUIDE})
        )
        talk = Session(connection, connection.events())
        await talk.says("please water the flowers in the office for 10 minutes")
        made = talk.calls[0].tool_id, talk.args
        await connection.close()
        await transport.close()
        return made

    assert asyncio.run(run()) == ("water_plants", {"room": "office", "minutes": 10})


def test_it_does_not_pretend_to_summarise() -> None:
    from jackfield.transport.protocol import TransportError
    from jackfield_conversation.summary import by_model

    async def run() -> None:
        transport = LocalTransport(OPTIONS)
        with pytest.raises(TransportError, match="no summary came"):
            await by_model(transport)("", (Utterance("user", "Is the lamp lit?"),))
        await transport.close()

    asyncio.run(run())


def test_a_mind_that_fails_is_a_trouble_and_the_line_stands() -> None:
    from jackfield.transport.events import Trouble, TurnComplete

    class Failing:
        def __init__(self) -> None:
            self.fails = True

        async def answer(self, text: str) -> Any:
            if self.fails:
                self.fails = False
                raise RuntimeError("a secret of the machine")
            return
            yield

        def interrupted(self, heard: str) -> None: ...

    async def run() -> list[Any]:
        connection = TextConnection(Failing())  # type: ignore[arg-type]
        await connection.send_text("one")
        await connection.send_text("two")
        events = []
        async for event in connection.events():
            events.append(event)
            if isinstance(event, TurnComplete):
                await connection.close()
        return events

    first, second, _ = asyncio.run(run())
    assert isinstance(first, Trouble)
    assert first.code == "server_error"
    assert "secret" not in first.detail
    assert isinstance(second, TurnComplete)


@pytest.mark.parametrize("said", ["the a an my " * 3000, "at 9:00 to " * 3000, "and," * 9000, "a" * 40_000])
def test_a_flood_of_words_does_not_stop_it(said: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(said)
        talk.calls.clear()

    _talk(steps)

"""Grounding: what the model writes is checked against the user's words, for any tool's schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_tools import TOOLS
from jackfield.transport.protocol import ConnectionConfig
from jackfield_local.agent.agent import embed_phrases
from jackfield_local.agent.grounding import GroundedArguments, ground
from jackfield_local.agent.mentions import zone_of_place
from jackfield_local.agent.message import UserMessage
from jackfield_local.agent.prompt import BUDGET, static_prefix
from jackfield_local.agent.tools import Tool, ValueType, tools_of
from local_requests import NOW


def _tools(**more: dict[str, Any]) -> dict[str, Tool]:
    declared = {
        name: {"description": told, "parameters": schema} for name, (told, schema, _) in TOOLS.items()
    }
    guides = {name: guide for name, (_, _, guide) in TOOLS.items()}
    return {
        each.id: each for each in tools_of(ConnectionConfig("text", "", {**declared, **more}, guides=guides))
    }


def _ground(tool: str, said: str, **raw: Any) -> GroundedArguments:
    return ground(_tools()[tool], raw, UserMessage(said, NOW, embed_phrases, zone="Europe/Berlin"))


def test_times_are_computed_from_the_words_and_not_from_what_the_model_writes() -> None:
    raw = {"date": "2024-01-01", "time": "07:00", "party_size": 2, "name": "Kim"}
    found = _ground("book_table", "a table for two on friday at quarter past seven pm, Kim", **raw)
    assert found.args == {"date": "2026-11-20", "time": "19:15", "party_size": 2, "name": "Kim"}


def test_a_value_that_was_not_said_is_dropped_or_asked_for() -> None:
    found = _ground(
        "send_invoice", "bill Acme 40 euros", customer="Acme", amount=40, note="Thanks!", due_date="tomorrow"
    )
    assert found.args == {"customer": "Acme", "amount": 40}
    found = _ground("book_table", "a table tomorrow at 8 pm", party_size=2, name="Miller")
    assert found.args == {"date": "2026-11-17", "time": "20:00"}
    assert found.missing is not None
    assert found.missing.name == "party_size"


@pytest.mark.parametrize(
    ("said", "raw", "args"),
    [
        ("50 euros in dollars", {"amount": 50, "from": "EUR", "to": "EUR"}, {"from": "EUR", "to": "USD"}),
        (
            "30 Canadian dollars in yen",
            {"amount": 30, "from": "USD", "to": "JPY"},
            {"from": "CAD", "to": "JPY"},
        ),
        ("$20 to GBP", {"amount": 20, "from": "USD", "to": "GBP"}, {"from": "USD", "to": "GBP"}),
    ],
)
def test_currencies_are_those_that_the_words_name(
    said: str, raw: dict[str, Any], args: dict[str, str]
) -> None:
    found = _ground("convert_currency", said, **raw)
    assert {name: found.args[name] for name in args} == args


def test_a_length_of_time_is_in_the_unit_of_its_parameter() -> None:
    found = _ground("log_workout", "did an hour and a half on the bike", kind="ride", minutes=1)
    assert found.args == {"kind": "ride", "minutes": 90}


def test_a_choice_is_taken_from_the_words_of_its_description() -> None:
    assert (
        _ground("set_thermostat", "21 degrees in the study", room="kitchen", celsius=21).args["room"]
        == "office"
    )
    assert _ground("log_workout", "add a workout of 30 minutes", kind="run", minutes=30).missing is not None


def test_an_optional_choice_has_to_be_in_the_last_message() -> None:
    raw = {"text": "water the plants", "at": "friday at 8", "repeat": "weekly"}
    said = UserMessage(
        "remind me to water the plants on friday at 8", NOW, embed_phrases, ("the weekly bins at 7",)
    )
    assert "repeat" not in ground(_tools()["set_reminder"], raw, said).args


def test_numbers_keep_to_the_limits_of_the_schema() -> None:
    found = _ground("set_thermostat", "set the bedroom to 80 degrees", room="bedroom", celsius=80)
    assert found.missing is not None
    assert found.missing.name == "celsius"


def test_an_identifier_is_read_in_the_form_of_its_pattern() -> None:
    assert _ground("track_parcel", "can you check on cn 123 456 789").args == {"tracking_id": "CN123456789"}
    assert _ground("track_parcel", "where is it", tracking_id="AB123456789").args == {}


def test_one_place_is_not_used_for_both_origin_and_destination() -> None:
    raw = {"origin": "Ulm", "destination": "Ulm", "depart": "tomorrow at nine"}
    found = _ground("find_train", "I need a train to Ulm tomorrow at nine", **raw)
    assert found.args == {"destination": "Ulm", "depart": "2026-11-17T09:00:00+01:00"}


def test_texts_are_copied_as_the_user_wrote_them() -> None:
    found = _ground(
        "translate_text",
        "What's “Where is Anna\u2019s hat” in Danish?",
        text="where is anna's hat",
        language="da",
    )
    assert found.args == {"text": "Where is Anna\u2019s hat", "language": "da"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"}, ValueType.TIME),
        ({"type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\d$"}, ValueType.DATE),
        ({"type": "string", "pattern": "^[A-Z]{2}[0-9]{9}$"}, ValueType.IDENTIFIER),
        ({"type": "string", "pattern": "\\S"}, ValueType.TEXT),
        ({"type": "string", "description": "ISO 4217 code"}, ValueType.CURRENCY),
        ({"type": "array", "items": {"type": "string", "format": "email"}}, ValueType.EMAIL),
        ({"type": "integer", "description": "How long, in minutes."}, ValueType.DURATION),
        ({"type": "array", "items": {"type": "object"}}, ValueType.RECORDS),
    ],
)
def test_the_schema_determines_the_type_of_a_value(schema: dict[str, Any], expected: ValueType) -> None:
    parameters = {"type": "object", "properties": {"thing": schema}}
    (tool,) = tools_of(ConnectionConfig("text", "", {"t": {"description": "T.", "parameters": parameters}}))
    assert tool.parameters[0].type is expected


def test_the_static_prompt_is_the_same_for_all_sessions_and_keeps_to_its_budget() -> None:
    tools = tuple(_tools().values())
    prefix, named = static_prefix(tools)
    assert prefix == static_prefix(tuple(_tools().values()))[0]
    assert named == tools
    many = {
        f"tool_{n:03}": {"description": "Does one of many things. " * 8, "parameters": {}} for n in range(300)
    }
    prefix, named = static_prefix(tuple(_tools(**many).values()))
    assert 0 < len(named) < 312
    assert sum(len(json.dumps(each)) for each in prefix) / 3.4 < BUDGET * 1.1


def test_examples_show_times_as_said_and_leave_out_what_was_not() -> None:
    prefix, _ = static_prefix(tuple(_tools().values()))
    shown = [each.content for each in prefix]
    assert (
        '{"book_table": {"date": "4 March", "time": "at half past seven", "party_size": 2, "name": "Keller"}}'
        in shown
    )


@pytest.mark.parametrize(
    ("said", "zone"),
    [
        ("what time is it in New York", "America/New_York"),
        ("the time in tokyo", "Asia/Tokyo"),
        ("what time is it in Germany now", "Europe/Berlin"),
        ("in the United States", None),
        ("let us wake up after christmas", None),
        ("9:30 Lisbon time", "Europe/Lisbon"),
    ],
)
def test_a_city_or_a_country_with_one_time_has_a_time_zone(said: str, zone: str | None) -> None:
    assert zone_of_place(said) == zone


@pytest.mark.parametrize(
    ("said", "source", "target"),
    [
        ("from Lisbon to Denver", "Europe/Lisbon", "America/Denver"),
        ("9:30 Lisbon time in Denver", "Europe/Lisbon", "America/Denver"),
        ("9:30 in Lisbon to Denver time", "Europe/Lisbon", "America/Denver"),
        ("when it is 9:30 in Lisbon, what time is it in Denver", "Europe/Lisbon", "America/Denver"),
        ("what time is it in Denver at half past 9 p.m. in Lisbon", "Europe/Lisbon", "America/Denver"),
        ("noon in Lisbon", "Europe/Lisbon", "Europe/Lisbon"),
        ("9:30 to Denver time", None, "America/Denver"),
    ],
)
def test_of_two_places_one_is_the_source(said: str, source: str | None, target: str) -> None:
    assert zone_of_place(said, source=True) == source
    assert zone_of_place(said) == target

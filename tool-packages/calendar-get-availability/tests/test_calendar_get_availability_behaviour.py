"""Slots, zones and limits of ranges, and the answer for a calendar that cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield import ErrorType, ToolError
from jackfield.offers import Services
from jackfield.settings import parse_offer
from jackfield.store import MemoryStore
from jackfield_calendar import jackfield_capabilities
from jackfield_testkit import ToolTestContext
from jackfield_testkit.calendar import calendar, component, event
from jackfield_tool_calendar_get_availability.handler import execute
from jackfield_tool_calendar_get_availability.slots import Slot, free_slots

DEFAULTS = {"calendars": ["primary"], "include_details": False, "min_duration_minutes": 30}


def ask(folder: Path, **args: Any) -> tuple[Any, ToolTestContext]:
    (offer,) = jackfield_capabilities()
    settings = {
        "zone": "Europe/Berlin",
        "calendars": {"primary": {"path": str(folder / "primary")}, "team": {"path": str(folder / "team")}},
    }
    made = offer.create(parse_offer("capabilities", offer, settings), Services(MemoryStore()))
    context = ToolTestContext(calendar=made.for_session(ToolTestContext().session))
    return asyncio.run(execute({**DEFAULTS, **args}, context)).data, context


def put(folder: Path, *objects: str) -> None:
    folder.mkdir()
    for number, text in enumerate(objects):
        (folder / f"{number}.ics").write_bytes(text.encode())


def test_a_slot_is_free_when_every_calendar_is(tmp_path: Path) -> None:
    put(tmp_path / "primary", calendar(event("20270302T090000", "20270302T110000", uid="a", title="Mine")))
    put(
        tmp_path / "team",
        calendar(event("20270302T100000", "20270302T120000", uid="b", title="Ours")),
        calendar(component("DTSTART;VALUE=DATE:20270303", uid="c", title="Away")),
    )
    span = {"start_date": "2027-03-02T08:00:00+01:00", "end_date": "2027-03-03T12:00:00+01:00"}
    data, context = ask(tmp_path, **span, calendars=["primary", "team"], include_details=True)
    assert [(each["calendar"], each["title"], each["all_day"]) for each in data["existing_events"]] == [
        ("primary", "Mine", False),
        ("team", "Ours", False),
        ("team", "Away", True),
    ]
    assert [(each["start"], each["duration_minutes"]) for each in data["available_slots"]] == [
        ("2027-03-02T08:00:00+01:00", 60),
        ("2027-03-02T12:00:00+01:00", 720),
    ]
    assert data["summary"] == "3 busy periods, 2 available slots (780 minutes in all)"
    assert data["zone"] == "Europe/Berlin"
    ((name, fields),) = context.audited
    assert (name, fields["details"], fields["complete"]) == ("availability_read", True, True)


def test_a_month_in_which_the_clocks_go_back_is_not_too_long(tmp_path: Path) -> None:
    october = {"start_date": "2027-10-01T00:00:00+02:00", "end_date": "2027-11-01T00:00:00+01:00"}
    data, _ = ask(tmp_path, **october)
    assert data["available_slots"][0]["duration_minutes"] == (31 * 24 + 1) * 60
    with pytest.raises(ToolError, match="longer than 31 days"):
        ask(tmp_path, **{**october, "end_date": "2027-11-01T00:01:00+01:00"})


def test_a_range_to_the_last_second_is_a_whole_day(tmp_path: Path) -> None:
    day = {"start_date": "2027-03-02T00:00:00+01:00", "end_date": "2027-03-02T23:59:59+01:00"}
    data, _ = ask(tmp_path, **day)
    assert data["available_slots"][0]["duration_minutes"] == 24 * 60
    assert data["summary"] == "0 busy periods, 1 available slot (1440 minutes in all)"


def test_times_are_returned_in_the_requested_zone(tmp_path: Path) -> None:
    span = {"start_date": "2027-03-13T12:00:00z", "end_date": "2027-03-14T12:00:00.5Z"}
    data, _ = ask(tmp_path, **span, time_zone="America/New_York")
    # The clocks of New York go forward that night.
    assert data["date_range"] == {"start": "2027-03-13T07:00:00-05:00", "end": "2027-03-14T08:00:00-04:00"}
    assert data["zone"] == "America/New_York"


def test_a_partly_unreadable_calendar_is_not_free(tmp_path: Path) -> None:
    put(tmp_path / "primary", "nonsense")
    data, context = ask(tmp_path, start_date="2027-03-02T08:00:00Z", end_date="2027-03-02T12:00:00Z")
    assert data["complete"] is False
    assert data["notices"] == [
        "1 entry of the primary calendar could not be read, so a time that looks free may be taken."
    ]
    assert "may be incomplete: 1 entry" in data["summary"]
    assert context.audited[0].fields["complete"] is False


@pytest.mark.parametrize(
    "args",
    [
        {"start_date": "0001-01-01T00:00:00+14:00", "end_date": "2027-03-02T12:00:00Z"},
        {"start_date": "2027-03-02T08:00:60Z", "end_date": "2027-03-02T12:00:00Z"},
        {"start_date": "9999-12-31T00:00:00Z", "end_date": "9999-12-31T23:59:59-12:00"},
    ],
)
def test_datetimes_out_of_range_are_explained(args: Any, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="not a date and time") as caught:
        ask(tmp_path, **args)
    assert caught.value.type is ErrorType.PERMANENT
    assert caught.value.suggestion


def test_an_unknown_zone_gets_a_suggestion(tmp_path: Path) -> None:
    span = {"start_date": "2027-03-02T08:00:00Z", "end_date": "2027-03-02T12:00:00Z"}
    with pytest.raises(ToolError) as caught:
        ask(tmp_path, **span, time_zone="Europe/Berln")
    assert caught.value.suggestion == "Use Europe/Berlin."


MINUTES = st.integers(0, 300)
EPOCH = datetime(2027, 3, 2, tzinfo=UTC)


def at(minute: int) -> datetime:
    return EPOCH + timedelta(minutes=minute)


@given(
    busy=st.lists(st.tuples(MINUTES, MINUTES).map(sorted), max_size=8),
    shortest=st.integers(1, 120),
)
def test_slots_are_exactly_the_free_minutes(busy: Sequence[Sequence[int]], shortest: int) -> None:
    span = Slot(at(0), at(300))
    found = list(free_slots(span, [Slot(at(a), at(b)) for a, b in busy], timedelta(minutes=shortest)))
    taken = {minute for a, b in busy for minute in range(a, b)}
    free = {
        minute
        for slot in found
        for minute in range(
            (slot.start - EPOCH) // timedelta(minutes=1), (slot.end - EPOCH) // timedelta(minutes=1)
        )
    }
    assert not free & taken
    assert all(slot.minutes >= shortest for slot in found)
    runs = "".join("x" if minute in taken else "." for minute in range(300)).split("x")
    assert sum(len(run) for run in runs if len(run) >= shortest) >= len(free)
    assert found == sorted(found)
    # With the smallest slots no free time may be missing.
    if shortest == 1:
        assert free == set(range(300)) - taken

"""Times, durations and numbers as people write them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield_language.datetimes import read_time
from jackfield_language.numbers import TimeChange, amounts, duration, time_change

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 16, 10, 0, tzinfo=ZONE)
"""A Monday."""

TIMES = [
    ("tomorrow afternoon", "2026-11-17T12:00", "2026-11-17T17:00"),
    ("next Tuesday between 2 and 4", "2026-11-24T14:00", "2026-11-24T16:00"),
    ("thursday 8 to 9 am", "2026-11-19T08:00", "2026-11-19T09:00"),
    ("on 24 November at 9:30", "2026-11-24T09:30", None),
    ("Monday from eight to nine in the morning", "2026-11-23T08:00", "2026-11-23T09:00"),
    ("Monday from eleven to twelve", "2026-11-16T11:00", "2026-11-16T12:00"),
    ("monday morning", "2026-11-16T08:00", "2026-11-16T12:00"),
    ("today from eight to nine", "2026-11-16T08:00", "2026-11-16T09:00"),
    ("last Monday at 8:00", "2026-11-09T08:00", None),
    ("tomorrow from 11:30 to 1pm", "2026-11-17T11:30", "2026-11-17T13:00"),
    ("friday 11 to 1", "2026-11-20T11:00", "2026-11-20T13:00"),
    ("next week", "2026-11-23T00:00", "2026-11-29T23:59"),
    ("this week", "2026-11-16T00:00", "2026-11-22T23:59"),
    ("March 3rd 10:00-11:30", "2027-03-03T10:00", "2027-03-03T11:30"),
    ("on Friday, 27 November at 12:30", "2026-11-27T12:30", None),
    ("Friday the 27th of November 2026 at noon", "2026-11-27T12:00", None),
    ("Wednesday, March 3rd 10:00-11:30", "2027-03-03T10:00", "2027-03-03T11:30"),
    ("on Friday 2026-11-27 at noon", "2026-11-27T12:00", None),
    ("on 24.11.2026 at 9.30", "2026-11-24T09:30", None),
    ("Friday, 11/27/2026, 9am", "2026-11-27T09:00", None),
    ("Friday the 27th at 9", "2026-11-27T09:00", None),
    ("the 24th at noon", "2026-11-24T12:00", None),
    ("in two weeks", "2026-11-30T00:00", "2026-11-30T23:59"),
    ("in 3 hours", "2026-11-16T13:00", None),
    ("tonight at 8", "2026-11-16T20:00", None),
    ("at half past two", "2026-11-16T14:30", None),
    ("this evening at half seven", "2026-11-16T19:30", None),
    ("14 December, 11:00: buy flowers", "2026-12-14T11:00", None),
    ("the day after tomorrow", "2026-11-18T00:00", "2026-11-18T23:59"),
    ("2026-12-01", "2026-12-01T00:00", "2026-12-01T23:59"),
]


@pytest.mark.parametrize(("said", "begin", "end"), TIMES)
def test_times_are_understood(said: str, begin: str, end: str | None) -> None:
    when = read_time(said, NOW)
    assert when is not None
    assert f"{when.starts(NOW.date(), ZONE):%Y-%m-%dT%H:%M}" == begin
    found = when.ends(NOW.date(), ZONE)
    assert (f"{found:%Y-%m-%dT%H:%M}" if found else None) == end


@pytest.mark.parametrize("said", ["give me five links", "the second one", "page 12 of 30", "version 2.1.0"])
def test_other_numbers_are_no_times(said: str) -> None:
    assert read_time(said, NOW) is None


@pytest.mark.parametrize("day", ["Monday, 27 November", "Monday November 27", "Monday the 27th"])
def test_a_date_on_another_weekday_is_not_read(day: str) -> None:
    assert read_time(f"{day} at 9", NOW) is None


@given(st.dates(date(1950, 1, 1), date(2150, 12, 31)), st.integers(0, 23), st.integers(0, 59))
def test_a_time_stamp_is_read_as_it_stands(day: date, hour: int, minute: int) -> None:
    stamp = f"{day.isoformat()}T{hour:02}:{minute:02}"
    when = read_time(f"what is {stamp} here?", NOW)
    assert when is not None
    assert when.starts(NOW.date(), ZONE) == datetime.fromisoformat(stamp).replace(tzinfo=ZONE)


@given(st.text(max_size=200))
def test_whatever_is_said_can_be_read(text: str) -> None:
    when = read_time(text, NOW)
    spans = [*(when.spans if when else ()), *(each.span for each in amounts(text))]
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    duration(text)


@pytest.mark.parametrize(
    ("said", "minutes"),
    [
        ("for half an hour", 30),
        ("an hour and a half", 90),
        ("a 45 minute gap", 45),
        ("two hours", 120),
        ("an hour and ten", 70),
        ("1 hour 58 minutes", 118),
        ("in two hours", None),
        ("three days ago", None),
    ],
)
def test_lengths(said: str, minutes: int | None) -> None:
    found = duration(said)
    assert (found.length if found else None) == (timedelta(minutes=minutes) if minutes else None)


@pytest.mark.parametrize(
    ("said", "begin"),
    [
        ("tomorrow at 15:00 UTC", "2026-11-17T16:00"),
        ("tomorrow from 9 to 10 am America/New_York", "2026-11-17T15:00"),
        ("tomorrow at 15:00 KIM", "2026-11-17T15:00"),
    ],
)
def test_a_time_zone_after_the_hours_is_honoured(said: str, begin: str) -> None:
    when = read_time(said, NOW)
    assert when is not None
    assert f"{when.starts(NOW.date(), ZONE):%Y-%m-%dT%H:%M}" == begin


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("the end of the month", "2026-11-30"),
        ("end of February", "2027-02-28"),
        ("end of next week", "2026-11-29"),
        ("3/14/2027", "2027-03-14"),
        ("twenty five days ago", "2026-10-22"),
        ("30 February at 10:00", None),
        ("the 45th birthday party tomorrow", "2026-11-17"),
        ("in 99999 years", None),
        ("9999-12-31 at 23:30", None),
    ],
)
def test_days(said: str, day: str | None) -> None:
    when = read_time(said, NOW)
    assert (f"{when.starts(NOW.date(), ZONE):%Y-%m-%d}" if when else None) == day


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("make it an hour later", 1),
        ("half an hour earlier please", -0.5),
        ("push it back by two hours", 2),
        ("bring it forward by 30 minutes", -0.5),
        ("a day later", 24),
        ("two and a half hours later", 2.5),
    ],
)
def test_relative_changes(text: str, hours: float) -> None:
    assert time_change(text) == TimeChange(timedelta(hours=hours), ends_only=False)


def test_nothing_is_shifted_without_a_length_and_a_direction() -> None:
    assert time_change("see you later") is None
    assert time_change("it takes an hour") is None


@pytest.mark.parametrize("said", ["in 99999999999 hours", "9999999999 weeks later", "for 9999999999 weeks"])
def test_lengths_beyond_the_calendar_cause_no_error(said: str) -> None:
    read_time(said, NOW)
    time_change(said)
    duration(said)

"""Recurrence rules with known results: correct cases stay correct, and the README lists the rest."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from jackfield_calendar.backend import TimeRange
from jackfield_calendar.ical.occurrences import Occurrences
from jackfield_calendar.ical.parser import read

CASES = Path(__file__).parents[3] / "../shared/data/calendar/rrule_cases.jsonl"
README = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8")
UTC_ZONE = ZoneInfo("UTC")

needs_cases = pytest.mark.skipif(not CASES.exists(), reason="the recurrence cases are not at hand")


def cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CASES.read_text("utf-8").splitlines()] if CASES.exists() else []


def starts(case: dict[str, Any]) -> list[str] | str:
    """Return the expanded starts of an event with the case's rule, or the reason for its rejection."""
    all_day = len(case["dtstart"]) == 8
    start = f"DTSTART;VALUE=DATE:{case['dtstart']}" if all_day else f"DTSTART:{case['dtstart']}"
    length = "P1D" if all_day else "PT1S"
    event = f"UID:a\r\nDTSTAMP:20200101T000000Z\r\n{start}\r\nDURATION:{length}\r\nRRULE:{case['rrule']}"
    sheet = read(f"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n{event}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")
    last = max([*(case["expected"] or ()), case["dtstart"]])
    quick = re.search("SECONDLY|MINUTELY|HOURLY", case["rrule"])
    span = TimeRange(day(case["dtstart"]), day(last) + timedelta(days=3 if quick else 800))
    found = Occurrences(sheet, (UTC_ZONE, UTC_ZONE)).within(span)
    if found.faults:
        return found.faults[0]
    form = "%Y%m%d" if all_day else "%Y%m%dT%H%M%SZ" if case["dtstart"].endswith("Z") else "%Y%m%dT%H%M%S"
    return sorted(f"{each.start:{form}}" for each in found.taken)


def day(text: str) -> datetime:
    return datetime.strptime(text[:8], "%Y%m%d").replace(tzinfo=UTC)


def is_right(case: dict[str, Any]) -> bool:
    # Even if a case names a start of the query, its results are those of the whole rule.
    found = starts(case)
    endless = "COUNT" not in case["rrule"] and "UNTIL" not in case["rrule"]
    if case["expect_error"] or isinstance(found, str):
        return False
    return bool((found[: len(case["expected"])] if endless else found) == case["expected"])


def listed() -> dict[str, str]:
    """Return the known differences listed in the README: each number with its rule."""
    return dict(re.findall(r"^\| (\d+) \| `(FREQ=[^`]+)`", README, re.MULTILINE))


@needs_cases
def test_every_failing_case_is_listed_as_a_known_difference() -> None:
    wrong = {case["id"].removeprefix("libical_"): case["rrule"] for case in cases() if not is_right(case)}
    assert wrong == listed()
    assert f"{len(cases()) - len(wrong)} of {len(cases())}" in README


@pytest.mark.parametrize(
    ("start", "rule", "expected"),
    [
        # One weekday in the named weeks, not all seven.
        ("20130101T000000", "FREQ=YEARLY;BYWEEKNO=1,2;COUNT=3", ["20130101", "20130108", "20131231"]),
        # The month of the start, not every month.
        ("20240229T000000", "FREQ=YEARLY;BYMONTHDAY=29;COUNT=3", ["20240229", "20280229", "20320229"]),
        # A date has no minutes to select.
        ("20241018", "FREQ=DAILY;BYMINUTE=1,2,3;INTERVAL=2;COUNT=3", ["20241018", "20241020", "20241022"]),
    ],
)
def test_missing_parts_of_a_rule_come_from_the_start(start: str, rule: str, expected: list[str]) -> None:
    found = starts({"dtstart": start, "rrule": rule, "expected": expected})
    assert [each[:8] for each in found] == expected


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SECONDLY",
        "FREQ=MINUTELY;INTERVAL=2",
        "FREQ=DAILY;BYHOUR=" + ",".join(map(str, range(24))) + ";BYMINUTE=" + ",".join(map(str, range(60))),
    ],
)
def test_a_rule_with_too_many_occurrences_is_rejected(rule: str) -> None:
    found = starts({"dtstart": "20240101T000000", "rrule": rule, "expected": ["20270101T000000"]})
    assert isinstance(found, str)
    assert "too often" in found


def test_a_frequent_rule_that_ends_soon_is_expanded() -> None:
    rule = "FREQ=SECONDLY;COUNT=3"
    found = starts({"dtstart": "20240101T000000", "rrule": rule, "expected": ["20270101T000000"]})
    assert found == ["20240101T000000", "20240101T000001", "20240101T000002"]

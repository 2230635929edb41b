"""Recurrence rules: completed from DTSTART, and checked for the work they cause.

RFC 5545 (3.3.10) takes parts that a rule omits from DTSTART. dateutil, which expands the rules, does not
always do so: it uses every weekday or every month instead, or applies hours to all-day events. So these
parts are written into the rule. Anyone can send an invitation, so a rule that expands to too many
occurrences is rejected before it is expanded.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from math import prod
from typing import Any

from icalendar import Event
from icalendar.prop import vRecur

from jackfield_calendar.backend import TimeRange

_TIME_PARTS = ("BYHOUR", "BYMINUTE", "BYSECOND")
_WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_PICKS_DAYS = ("BYDAY", "BYMONTHDAY", "BYYEARDAY")


def rules_of(event: Event) -> list[vRecur]:
    """Return an event's recurrence rules; RFC 5545 discourages more than one, but allows it."""
    said = event.get("RRULE", [])
    return list(said) if isinstance(said, list) else [said]


def spell_out(event: Event) -> None:
    """Add to an event's rules, in place, the parts that they take from its start."""
    start = event.start
    for rule in rules_of(event):
        if not isinstance(start, datetime):
            for part in _TIME_PARTS:
                rule.pop(part, None)
        if rule.get("FREQ") != ["YEARLY"]:
            continue
        if "BYWEEKNO" in rule and not any(part in rule for part in _PICKS_DAYS):
            rule["BYDAY"] = [_WEEKDAYS[start.isoweekday() % 7]]
        if "BYMONTHDAY" in rule and not any(part in rule for part in ("BYMONTH", "BYWEEKNO", "BYYEARDAY")):
            rule["BYMONTH"] = [start.month]


def spelt(rule: vRecur) -> str:
    """Serialize a rule."""
    return bytes(rule.to_ical()).decode()  # type: ignore[no-untyped-call]


MOST_STEPS = 500_000
"""The maximum number of candidates from the start of a series: every hour for 57 years."""

MOST_OCCURRENCES = 20_000
"""The maximum number of occurrences in a range: one every two minutes for a month."""

_SECONDS = {
    "SECONDLY": 1,
    "MINUTELY": 60,
    "HOURLY": 3600,
    "DAILY": 86_400,
    "WEEKLY": 7 * 86_400,
    "MONTHLY": 28 * 86_400,
    "YEARLY": 365 * 86_400,
}
_CLOCK = {"BYHOUR": 24, "BYMINUTE": 60, "BYSECOND": 60}
_DAYS: Mapping[str, Mapping[str, int]] = {
    "WEEKLY": {"BYDAY": 1},
    "MONTHLY": {"BYDAY": 5, "BYMONTHDAY": 1},
    "YEARLY": {"BYDAY": 53, "BYMONTHDAY": 12, "BYYEARDAY": 1, "BYWEEKNO": 7},
}


def is_too_much(event: Event, span: TimeRange) -> bool:
    """Return whether expanding an event over a range takes too much work."""
    start = _utc(event.start)
    return any(_is_too_much(rule, start, span) for rule in rules_of(event))


def _is_too_much(rule: Mapping[str, Any], start: datetime, span: TimeRange) -> bool:
    until = _first(rule, "UNTIL")
    end = span.end if until is None else min(span.end, _utc(until))
    frequency = str(_first(rule, "FREQ"))
    unit = _SECONDS.get(frequency, 1) * max(int(_first(rule, "INTERVAL") or 1), 1)
    count = _first(rule, "COUNT")
    periods = max((end - start).total_seconds(), 0) / unit + 1
    in_span = min(max((end - span.start).total_seconds(), 0) / unit + 1, periods)
    if frequency in ("SECONDLY", "MINUTELY", "HOURLY"):
        # Shorter than a day: every period is a candidate, and BY parts filter them.
        picked = prod(len(rule[part]) / most for part, most in _CLOCK.items() if part in rule)
        thinned = any(part.startswith("BY") for part in rule)
        steps = periods if count is None or thinned else min(periods, int(count))
        found = in_span * picked
    else:
        # A day or longer: BY parts multiply every period, which has at least one occurrence.
        each = _days(rule, frequency) * prod(len(rule.get(part, [0])) for part in _CLOCK)
        steps = (periods if count is None else min(periods, int(count))) * each
        found = in_span * (len(rule["BYSETPOS"]) if "BYSETPOS" in rule else each)
    return steps > MOST_STEPS or (found if count is None else min(found, int(count))) > MOST_OCCURRENCES


def _days(rule: Mapping[str, Any], frequency: str) -> int:
    return max(
        [len(rule[part]) * most for part, most in _DAYS.get(frequency, {}).items() if part in rule], default=1
    )


def _first(rule: Mapping[str, Any], part: str) -> Any:
    values = rule.get(part)
    return values[0] if isinstance(values, list) and values else values


def _utc(value: date | datetime) -> datetime:
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

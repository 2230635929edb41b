"""Expands the events of an iCalendar object into occurrences within a time range."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import recurring_ical_events  # type: ignore[import-untyped]
from icalendar import Calendar, Event

from jackfield_calendar.backend import Occurrence, TimeRange
from jackfield_calendar.ical.parser import ParsedCalendar, events_of
from jackfield_calendar.ical.recurrence import is_too_much, rules_of, spelt
from jackfield_calendar.zones import moment

Zones = tuple[ZoneInfo, ZoneInfo]
"""The zone of all-day events, and the zone of floating times."""

_MARGIN = timedelta(days=2)
"""All-day events and floating times shift by up to a day between zones; the surplus is cut later."""

_LONGEST_TITLE = 200


class ExpandedEvents(NamedTuple):
    """The occurrences in a range, and the errors of events that could not be expanded."""

    taken: list[Occurrence]
    faults: list[str]


class Occurrences:
    """The occurrences of one iCalendar object, in the zones of its calendar."""

    def __init__(self, sheet: ParsedCalendar, zones: Zones) -> None:
        self._zones = zones
        self._series = sheet.series
        self._faults = list(sheet.faults)
        self._single: list[Occurrence] = []
        for event in sheet.single:
            try:
                one = _taken(event, zones)
            except (ValueError, OverflowError) as error:
                self._faults.append(f"the times of an event: {error}")
            else:
                self._single += [one] if one else []

    def within(self, span: TimeRange) -> ExpandedEvents:
        """Return the occurrences that overlap a range."""
        taken = list(self._single)
        faults = list(self._faults)
        for series in self._series:
            try:
                taken += _unroll(series, span, self._zones)
            except Exception as error:  # noqa: BLE001 - the library fails in many ways on untrusted input
                faults.append(f"{_rules(series)} cannot be expanded: {' '.join(str(error).split())[:160]}")
        return ExpandedEvents([one for one in taken if span.overlaps(one.start, one.end)], faults)


def _rules(series: Calendar) -> str:
    rules = (spelt(rule) for each in events_of(series) for rule in rules_of(each))
    return ", ".join(rules)[:160] or "a recurring event"


def _unroll(series: Calendar, span: TimeRange, zones: Zones) -> list[Occurrence]:
    wider = TimeRange(span.start - _MARGIN, span.end + _MARGIN)
    if any(is_too_much(each, wider) for each in events_of(series)):
        raise ValueError("it repeats too often")
    # A new query each time, because a query keeps every occurrence it has returned.
    occurrences = recurring_ical_events.of(series).between(wider.start, wider.end)
    found = (_taken(each, zones) for each in occurrences if isinstance(each, Event))
    return [one for one in found if one]


def _taken(event: Event, zones: Zones) -> Occurrence | None:
    if str(event.get("STATUS", "")).upper() == "CANCELLED":
        return None
    if str(event.get("TRANSP", "")).upper() == "TRANSPARENT":
        return None
    days_in, floating_in = zones
    start, end = event.start, event.end
    first = moment(start, days_in=days_in, floating_in=floating_in)
    last = moment(end, days_in=days_in, floating_in=floating_in)
    if first >= last:
        return None
    uid = event.get("UID")
    return Occurrence(
        first,
        last,
        uid=None if uid is None else str(uid),
        all_day=not isinstance(start, datetime),
        private=str(event.get("CLASS", "PUBLIC")).upper() != "PUBLIC",
        title=str(event.get("SUMMARY", ""))[:_LONGEST_TITLE] or None,
        attendees=_count(event.get("ATTENDEE")),
    )


def _count(said: object) -> int:
    return len(said) if isinstance(said, list) else int(said is not None)

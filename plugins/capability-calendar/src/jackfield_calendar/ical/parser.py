"""Parses iCalendar objects; events with errors are reported and skipped."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from threading import Lock
from typing import Any

from icalendar import Calendar, Event
from icalendar.timezone import tzp

from jackfield_calendar.ical.recurrence import spell_out

MOST_BYTES = 5 << 20
"""The size limit of an iCalendar object."""

_TIMES = ("DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID")

_parsing = Lock()
"""The library keeps time zones in global state, so one object is parsed at a time."""


@dataclass(frozen=True, slots=True)
class ParsedCalendar:
    """One iCalendar object: single events, recurring series, and the errors of the rest."""

    single: tuple[Event, ...] = ()
    series: tuple[Calendar, ...] = ()
    """Each series with its exceptions, which share its UID."""

    faults: tuple[str, ...] = ()

    def find(self, uid: str) -> Event | None:
        """Return the single event with a UID."""
        return next((each for each in self.single if each.get("UID") == uid), None)


def read(text: bytes | str) -> ParsedCalendar:
    """Parse an iCalendar object; never raises, because one bad file must not hide the others."""
    if len(text) > MOST_BYTES:
        return ParsedCalendar(faults=(f"it is longer than {MOST_BYTES >> 20} MiB",))
    try:
        calendar = _parse(text)
    except Exception as error:  # noqa: BLE001 - the library fails in many ways on untrusted input
        return ParsedCalendar(faults=(f"it is not iCalendar: {_short(error)}",))
    faults: list[str] = []
    single: list[Event] = []
    series: dict[str, Calendar] = {}
    for event in events_of(calendar):
        _keep_one_end(event)
        fault = _fault(event)
        if fault:
            faults.append(fault)
        elif any(name in event for name in ("RRULE", "RDATE", "RECURRENCE-ID")):
            spell_out(event)
            uid = str(event.get("UID", id(event)))
            series.setdefault(uid, _empty_like(calendar)).add_component(event)
        else:
            single.append(event)
    return ParsedCalendar(tuple(single), tuple(series.values()), tuple(faults))


def events_of(calendar: Calendar) -> list[Event]:
    """Return the events of an iCalendar object, including the exceptions of series."""
    return [each for each in calendar.walk("VEVENT") if isinstance(each, Event)]


def _empty_like(calendar: Calendar) -> Calendar:
    # Some programs name a zone for the whole calendar, which sets daylight saving for a series in UTC.
    return Calendar({key: value for key, value in calendar.items() if key == "X-WR-TIMEZONE"})


def _parse(text: bytes | str) -> Calendar:
    with _parsing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Otherwise a zone of the same name from another file would be used.
        tzp.use_default()
        calendar = Calendar.from_ical(text)
    if not isinstance(calendar, Calendar):
        raise ValueError("it contains no VCALENDAR")  # noqa: TRY004 - the fault is in the text
    return calendar


def _keep_one_end(event: Event) -> None:
    """Drop DTEND or DURATION from an event that has both, which RFC 5545 forbids and some programs write.

    The later end wins: a slot wrongly shown as busy does less harm than one wrongly shown as free.
    """
    if "DTEND" not in event or "DURATION" not in event:
        return
    try:
        lasts: timedelta = event.DURATION
        duration_wins = lasts > timedelta() and event.DTSTART + lasts > event.DTEND
    except Exception:  # noqa: BLE001 - malformed values fail in many ways; `_fault` reports the rest
        duration_wins = False
    del event["DTEND" if duration_wins else "DURATION"]


def _fault(event: Event) -> str | None:
    for name, problem in event.errors:
        if name in _TIMES:
            return f"{name}: {_short(problem)}"
    if "DTSTART" not in event:
        return "an event has no DTSTART"
    for name in _TIMES:
        for value in _values(event.get(name)):
            zone = getattr(value, "params", {}).get("TZID")
            if zone and any(_floats(each) for each in _dates(value)):
                return f"{name}: the time zone {zone!r} is unknown, and no VTIMEZONE in the file defines it"
    try:
        start, end = event.start, event.end
        if start > end:
            return "an event ends before it starts"
    except Exception as error:  # noqa: BLE001 - see above
        return _short(error)
    return None


def _values(said: Any) -> list[Any]:
    return said if isinstance(said, list) else [] if said is None else [said]


def _dates(value: Any) -> Iterator[date]:
    for each in getattr(value, "dts", [value]):
        found = getattr(each, "dt", None)
        # A period of an RDATE is a pair.
        yield from (one for one in (found if isinstance(found, tuple) else (found,)) if isinstance(one, date))


def _floats(value: date) -> bool:
    return isinstance(value, datetime) and value.tzinfo is None


def _short(error: object) -> str:
    return " ".join(str(error).split())[:160]

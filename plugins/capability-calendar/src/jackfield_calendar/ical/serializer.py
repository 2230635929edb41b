"""Serializes an event as an iCalendar object, and reads back its state."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from icalendar import Calendar, Event, Timezone
from icalendar.prop import vCalAddress, vUri

from jackfield_calendar.backend import BookedEvent, NewEvent
from jackfield_calendar.ical.occurrences import Zones
from jackfield_calendar.zones import moment


def write(event: NewEvent, *, sequence: int = 0) -> bytes:
    """Serialize an event with its time zone and attendees."""
    calendar = Calendar()
    calendar.add("VERSION", "2.0")
    calendar.add("PRODID", "-//Jackfield//calendar//EN")
    start, end = _plain_utc(event.start), _plain_utc(event.end)
    if isinstance(start.tzinfo, ZoneInfo):
        last = date(end.year + 1, 12, 31)
        calendar.add_component(
            Timezone.from_tzid(start.tzinfo.key, first_date=date(start.year, 1, 1), last_date=last)
        )
    entry = Event()
    entry.add("UID", event.uid)
    now = datetime.now(UTC).replace(microsecond=0)
    entry.add("DTSTAMP", now)
    entry.add("CREATED", now)
    entry.add("SEQUENCE", sequence)
    entry.add("DTSTART", start)
    entry.add("DTEND", end)
    entry.add("SUMMARY", event.title)
    entry.add("STATUS", "CONFIRMED")
    entry.add("TRANSP", "OPAQUE")
    _add_words(entry, event)
    _add_people(entry, event)
    calendar.add_component(entry)
    return bytes(calendar.to_ical())


def _add_words(entry: Event, event: NewEvent) -> None:
    if event.meeting_url:
        # CONFERENCE is the standard property, but programs show LOCATION.
        entry.add("CONFERENCE", vUri(event.meeting_url), parameters={"VALUE": "URI", "FEATURE": "VIDEO"})
        entry.add("LOCATION", event.meeting_url)
    if event.description:
        entry.add("DESCRIPTION", event.description)


def _add_people(entry: Event, event: NewEvent) -> None:
    if event.organizer:
        entry.add("ORGANIZER", vCalAddress(f"mailto:{event.organizer}"))
    for address in event.attendees:
        entry.add(
            "ATTENDEE",
            vCalAddress(f"mailto:{address}"),
            parameters={"ROLE": "REQ-PARTICIPANT", "PARTSTAT": "NEEDS-ACTION", "RSVP": "TRUE"},
        )


def booked_event(entry: Event, zones: Zones) -> BookedEvent:
    """Return the current state of an existing event, which its owner may have moved."""
    days_in, floating_in = zones
    start = moment(entry.start, days_in=days_in, floating_in=floating_in)
    end = moment(entry.end, days_in=days_in, floating_in=floating_in)
    link = entry.get("CONFERENCE")
    link = link[0] if isinstance(link, list) else link
    return BookedEvent(
        uid=str(entry["UID"]),
        start=start,
        end=end,
        meeting_url=None if link is None else str(link),
        existed=True,
    )


def cancelled(entry: Event) -> bool:
    """Return whether an event is cancelled."""
    return str(entry.get("STATUS", "")).upper() == "CANCELLED"


def next_sequence(entry: Event) -> int:
    """Return the SEQUENCE for an event's next version."""
    return int(entry.get("SEQUENCE", 0)) + 1


def _plain_utc(value: datetime) -> datetime:
    # UTC times have their own notation and need no VTIMEZONE.
    named = isinstance(value.tzinfo, ZoneInfo) and value.tzinfo.key not in (
        "UTC",
        "Etc/UTC",
        "Zulu",
        "Etc/Zulu",
    )
    return value if named else value.astimezone(UTC)

"""The harness of the calendar tests: calendars with given events, and iCalendar text for these."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from jackfield_capability_types.calendar import Busy, Calendar, CalendarView, EventDraft

from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.suite import async_test_for, expect, expect_equal

async_test = async_test_for("the calendar", 60)

ZONE = "Europe/Berlin"
"""The zone of every test calendar. Daylight saving time starts on 2027-03-28 and ends on 2027-10-31."""

_BERLIN = """\
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:DAYLIGHT
DTSTART:19810329T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
TZNAME:CEST
END:DAYLIGHT
BEGIN:STANDARD
DTSTART:19961027T030000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
TZNAME:CET
END:STANDARD
END:VTIMEZONE
"""


@dataclass(frozen=True, slots=True)
class CalendarHarness:
    """Creates calendars for one test."""

    create: Callable[[Path, Sequence[str]], Awaitable[Calendar]]
    folder: Path

    @asynccontextmanager
    async def open(self, *objects: str, user: str | None = "ada") -> AsyncIterator[CalendarView]:
        """Open a calendar with these objects, and yield the view of one user."""
        async with self.open_shared(*objects) as view_of:
            yield view_of(user)

    @asynccontextmanager
    async def open_shared(self, *objects: str) -> AsyncIterator[Callable[[str | None], CalendarView]]:
        """Open a calendar with these objects, and yield a function that returns the view of a user."""
        calendar = await self.create(self.folder, objects)
        try:
            yield lambda user: calendar.for_session(ToolTestContext("text", user=user).session)
        finally:
            await calendar.close()


def local_time(text: str) -> datetime:
    """Parse a local time in the calendar zone, such as `2027-03-01 10:00`."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(ZONE))


def format_busy(busy: Sequence[Busy]) -> list[str]:
    """Format busy times in the calendar zone, for comparison and messages."""
    for each in busy:
        expect(each.start.tzinfo and each.end.tzinfo, f"a busy time has no zone: {each}")
    return [f"{_local(each.start)} - {_local(each.end)}" for each in busy]


def _local(time: datetime) -> str:
    return f"{time.astimezone(ZoneInfo(ZONE)):%Y-%m-%d %H:%M}"


async def busy_times(view: CalendarView, start: str, end: str, *, details: bool = False) -> list[str]:
    """Return the formatted busy times of the primary calendar between two local times."""
    agenda = await view.busy(["primary"], local_time(start), local_time(end), details=details)
    expect_equal(list(agenda.notices), [], "notices about a readable calendar")
    return format_busy(agenda.busy)


def draft(start: str, end: str, **fields: Any) -> EventDraft:
    """Return the draft of an event."""
    times = {"start": local_time(start), "end": local_time(end)}
    return EventDraft(**{"title": "Fitting", **times, **fields})


def event(start: str, end: str, *lines: str, uid: str, title: str = "Fitting") -> str:
    """Return an event between two local times such as `20270301T100000`, with further property lines."""
    return component(f"DTSTART;TZID={ZONE}:{start}", f"DTEND;TZID={ZONE}:{end}", *lines, uid=uid, title=title)


def component(*lines: str, uid: str, title: str = "Fitting") -> str:
    """Return an event whose times are among its property lines."""
    head = ["BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20270101T000000Z", f"SUMMARY:{title}"]
    return "\n".join([*head, *lines, "END:VEVENT", ""])


def calendar(*components: str) -> str:
    """Return one iCalendar object with these components."""
    head = "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Jackfield//testkit//EN\n"
    text = f"{head}{_BERLIN}{''.join(components)}END:VCALENDAR\n"
    return text.replace("\n", "\r\n")

"""iCalendar objects as calendar programs write them, for a calendar to be filled with."""

from __future__ import annotations

ZONE = "Europe/Berlin"
"""The zone of every calendar in these tests. Its clocks go back on 2027-10-31 and forward on 2027-03-28."""

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


def event(start: str, end: str, *lines: str, uid: str, title: str = "Fitting") -> str:
    """An event from `20270301T100000` to another local time, with more properties as they are written."""
    return component(f"DTSTART;TZID={ZONE}:{start}", f"DTEND;TZID={ZONE}:{end}", *lines, uid=uid, title=title)


def component(*lines: str, uid: str, title: str = "Fitting") -> str:
    """An event whose times stand among its lines."""
    begun = ["BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20270101T000000Z", f"SUMMARY:{title}"]
    return "\n".join([*begun, *lines, "END:VEVENT", ""])


def calendar(*components: str) -> str:
    """One iCalendar object of components that belong together."""
    head = "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Jackfield//testkit//EN\n"
    text = f"{head}{_BERLIN}{''.join(components)}END:VCALENDAR\n"
    return text.replace("\n", "\r\n")

"""What a recurrence rule leaves to the start of its event, said outright.

RFC 5545 (3.3.10) takes what a rule does not say from DTSTART. So does dateutil, which unrolls the rules, save
here: it takes every day of the week or every month instead, or counts the hours of a day that has none.
"""

from __future__ import annotations

from datetime import datetime

from icalendar import Event
from icalendar.prop import vRecur

_CLOCK = ("BYHOUR", "BYMINUTE", "BYSECOND")
_DAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_PICKS_DAYS = ("BYDAY", "BYMONTHDAY", "BYYEARDAY")


def rules_of(event: Event) -> list[vRecur]:
    """The recurrence rules of an event; more than one is allowed, if not wise."""
    said = event.get("RRULE", [])
    return list(said) if isinstance(said, list) else [said]


def spell_out(event: Event) -> None:
    """Complete the rules of an event, in place, with what they take from its start."""
    start = event.start
    for rule in rules_of(event):
        if not isinstance(start, datetime):
            for part in _CLOCK:
                rule.pop(part, None)
        if rule.get("FREQ") != ["YEARLY"]:
            continue
        if "BYWEEKNO" in rule and not any(part in rule for part in _PICKS_DAYS):
            rule["BYDAY"] = [_DAYS[start.isoweekday() % 7]]
        if "BYMONTHDAY" in rule and not any(part in rule for part in ("BYMONTH", "BYWEEKNO", "BYYEARDAY")):
            rule["BYMONTH"] = [start.month]


def spelt(rule: vRecur) -> str:
    """A rule as iCalendar writes it."""
    return bytes(rule.to_ical()).decode()  # type: ignore[no-untyped-call]

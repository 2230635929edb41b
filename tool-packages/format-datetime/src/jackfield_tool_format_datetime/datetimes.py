"""Parses ISO 8601 and resolves local times, including skipped and repeated hours."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple

from jackfield_tool_format_datetime.errors import ArgumentError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

# Narrower than datetime.fromisoformat, which accepts more with each Python version.
_ISO = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"([T ](?P<time>\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?)\s?(?P<offset>Z|[+-]\d{2}(:?\d{2})?)?)?",
    re.ASCII,
)
_ADVICE = "Write it in ISO 8601, such as 2026-03-08T14:30, 2026-03-08T14:30:00+01:00 or 2026-03-08"


class ResolvedTime(NamedTuple):
    """A local time resolved to one instant, with a note about the choice made."""

    moment: datetime
    note: str | None = None


def parse(text: str, parameter: str) -> date | datetime:
    """Return a date, a local date-time, or one with its offset."""
    match = _ISO.fullmatch(text.strip().upper())
    if not match:
        raise ArgumentError(
            parameter,
            f"{text!r} is not a date or date-time.",
            f"{_ADVICE}, or leave it out to mean the current time.",
        )
    day, time, offset = match["day"], match["time"], match["offset"]
    try:
        return datetime.fromisoformat(f"{day}T{time}{offset or ''}") if time else date.fromisoformat(day)
    except ValueError:
        message = f"{text!r} contains a day, time or offset that does not exist."
        raise ArgumentError(parameter, message, f"{_ADVICE}.") from None


def resolve(local: datetime, zone: ZoneInfo) -> ResolvedTime:
    """Return the instant at which the clocks of a zone show a local time.

    A skipped time is moved forward by the length of the gap, and the first of a repeated time is used, as in
    calendars (RFC 5545).
    """
    first, second = local.replace(tzinfo=zone, fold=0), local.replace(tzinfo=zone, fold=1)
    if first.utcoffset() == second.utcoffset():
        return ResolvedTime(first)
    shown = in_zone(first, zone)
    clock = f"{local:%H:%M} on {local.date()}"
    if shown.replace(tzinfo=None) != local:
        moved = f"{shown:%H:%M}" if shown.date() == local.date() else f"{shown:%H:%M} on {shown.date()}"
        note = f"{clock} does not exist in {zone.key}: the clocks skip it. It was moved forward to {moved}."
    else:
        note = (
            f"{clock} occurs twice in {zone.key}: the clocks go back. The first occurrence was used, at UTC"
            f"{offset_of(first)}; for the second, write the datetime with the offset {offset_of(second)}."
        )
    return ResolvedTime(shown, note)


def in_zone(moment: datetime, zone: ZoneInfo) -> datetime:
    """Return the same instant in a zone."""
    # Converted through UTC: a date-time already in the zone would be returned unchanged, even within a
    # skipped hour.
    return moment.astimezone(UTC).astimezone(zone)


def repeated_note(moment: datetime, zone: ZoneInfo) -> str | None:
    """Return a note that tells which of two hours is meant, if the target zone shows this time twice."""
    if moment.replace(fold=0).utcoffset() == moment.replace(fold=1).utcoffset():
        return None
    which = "second" if moment.fold else "first"
    return f"{moment:%H:%M} occurs twice that day in {zone.key}; this is the {which}, UTC{offset_of(moment)}."


def offset_of(moment: datetime) -> str:
    """Return the offset from UTC in ISO 8601."""
    return moment.isoformat(timespec="seconds")[len("2026-03-08T14:30:00") :]

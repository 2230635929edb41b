"""IANA time zones by name, and conversion to UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones


def find_zone(name: str) -> ZoneInfo:
    """Find a zone by name; raises `LookupError` with a suggestion."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        # Names are paths: a directory such as "America" is not a zone.
        close = get_close_matches(name, available_timezones(), 1)
        hint = (
            f"did you mean {close[0]}?" if close else "give one in the form Area/City, such as Europe/London"
        )
        raise LookupError(f"there is no time zone {name!r}; {hint}") from None


def moment(value: date | datetime, *, days_in: ZoneInfo, floating_in: ZoneInfo) -> datetime:
    """Convert a date (its start), a floating time or a time with a zone to UTC."""
    if not isinstance(value, datetime):
        return datetime.combine(value, time(), days_in).astimezone(UTC)
    return (value if value.tzinfo else value.replace(tzinfo=floating_in)).astimezone(UTC)

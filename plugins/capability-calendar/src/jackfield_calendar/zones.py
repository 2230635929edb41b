"""IANA time zones by name, and moments in them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones


def find_zone(name: str) -> ZoneInfo:
    """The zone of that name; `LookupError` with a sentence when there is none."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        # Names are paths: a folder such as "America" or a way out of the data are no zones either.
        close = get_close_matches(name, available_timezones(), 1)
        hint = (
            f"did you mean {close[0]}?" if close else "give one in the form Area/City, such as Europe/London"
        )
        raise LookupError(f"there is no time zone {name!r}; {hint}") from None


def moment(value: date | datetime, *, days_in: ZoneInfo, floating_in: ZoneInfo) -> datetime:
    """The one moment that a day's beginning, a floating time or a time with a zone stands for, in UTC."""
    if not isinstance(value, datetime):
        return datetime.combine(value, time(), days_in).astimezone(UTC)
    return (value if value.tzinfo else value.replace(tzinfo=floating_in)).astimezone(UTC)

"""Parses dates, times and time zones, in settings and in arguments that a model writes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from jackfield.contract.tool import ErrorType, ToolError

_YEARS = range(1900, 2200)
"""Accepted years; outside this range a time cannot be converted to every zone."""


def parse_datetime(name: str, text: str) -> datetime:
    """Return an ISO 8601 argument as a datetime in UTC; raises `ToolError` if it is invalid."""
    try:
        found = datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        found = None
    if found is None or found.year not in _YEARS:
        raise ToolError(
            ErrorType.PERMANENT,
            f"{name} is {text!r}, which is not a date and time from {_YEARS.start} to {_YEARS.stop - 1}.",
            suggestion="Write it as 2026-03-02T09:00:00+01:00.",
        )
    return found


def is_zone(name: str) -> bool:
    """Return whether there is an IANA time zone with this name."""
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        # Zone names are paths, so a folder such as "America" is not a zone either.
        return False
    return True


def find_zone(name: str) -> ZoneInfo:
    """Return an IANA time zone; raises `ValueError` with the nearest name if it does not exist."""
    if is_zone(name):
        return ZoneInfo(name)
    close = nearest_zone(name)
    fix = f"did you mean {close!r}?" if close else "write it as Area/City, such as Europe/London"
    raise ValueError(f"there is no time zone {name!r}; {fix}")


async def parse_zone(name: str) -> ZoneInfo:
    """Return an IANA time zone; raises `ToolError` with the nearest name if it does not exist."""
    if is_zone(name):
        return ZoneInfo(name)
    close = await asyncio.to_thread(nearest_zone, name)
    raise ToolError(
        ErrorType.PERMANENT,
        f"There is no time zone {name!r}.",
        suggestion=f"Use {close}." if close else "Write it as Area/City, such as Europe/London.",
    )


def nearest_zone(name: str) -> str:
    """Return the IANA time zone with the most similar name; empty if none is similar."""
    return next(iter(get_close_matches(name, _zones(), 1)), "")


@cache
def _zones() -> tuple[str, ...]:
    # Reading the folders of the zone data is slow.
    return tuple(sorted(available_timezones()))

"""Parses dates, times and time zones that a model writes as tool arguments."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from difflib import get_close_matches
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


async def parse_zone(name: str) -> ZoneInfo:
    """Return an IANA time zone; raises `ToolError` with the nearest name if it does not exist."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        # Zone names are paths, so a folder such as "America" is not a zone either.
        close = await asyncio.to_thread(_similar, name)
        raise ToolError(
            ErrorType.PERMANENT,
            f"There is no time zone {name!r}.",
            suggestion=f"Use {close[0]}." if close else "Write it as Area/City, such as Europe/London.",
        ) from None


def _similar(name: str) -> list[str]:
    # Reading the folders of the zone data is slow.
    return get_close_matches(name, available_timezones(), 1)

"""For authors of tools that are told times: from what a model writes to moments and zones."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from jackfield.contract.tool import ErrorType, ToolError

_YEARS = range(1900, 2200)
"""What a person can mean; beyond it times can no longer be told in every zone."""


def parse_datetime(name: str, text: str) -> datetime:
    """The moment that an argument names, in UTC; `ToolError` with a sentence when it names none."""
    try:
        found = datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        found = None
    if found is None or found.year not in _YEARS:
        raise ToolError(
            ErrorType.PERMANENT,
            f"{name} is {text!r}, which is no moment that anybody can mean.",
            suggestion="Write it as 2026-03-02T09:00:00+01:00.",
        )
    return found


async def parse_zone(name: str) -> ZoneInfo:
    """An IANA zone; `ToolError` with the nearest name when there is none of this."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        # Names are paths: a folder such as "America" is no zone either.
        close = await asyncio.to_thread(_similar, name)
        raise ToolError(
            ErrorType.PERMANENT,
            f"There is no time zone {name!r}.",
            suggestion=f"Use {close[0]}." if close else "Write it as Area/City, such as Europe/London.",
        ) from None


def _similar(name: str) -> list[str]:
    # Looks through the folders of the zone data, which takes a while.
    return get_close_matches(name, available_timezones(), 1)

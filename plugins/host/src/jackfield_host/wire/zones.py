"""A user's time zone, as a client names it."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AfterValidator, Field

UNKNOWN = "Etc/Unknown"
"""What a browser says that does not know where it is."""


def check_time_zone(name: str) -> str:
    """The name of a time zone, if it exists; else a `ValueError` that suggests one."""
    if name == UNKNOWN:
        return name
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        close = get_close_matches(name, _known(), 1)
        hint = f"did you mean {close[0]!r}?" if close else "one looks like Europe/Berlin"
        raise ValueError(f"there is no such time zone; {hint}") from None
    return name


@cache
def _known() -> tuple[str, ...]:
    return tuple(sorted(available_timezones()))


TimeZone = Annotated[str, Field(max_length=64), AfterValidator(check_time_zone)]
"""The name of a time zone that exists."""

"""Times in a result, told as people tell them."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo

_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?")


def readable(text: str, zone: tzinfo) -> str:
    """A text with its time stamps in words; those with an offset on the user's clock."""

    def in_words(match: re.Match[str]) -> str:
        moment = _read(match.group(), zone)
        return match.group() if moment is None else _told(moment)

    return _STAMP.sub(in_words, text)


def span(start: str, end: str, zone: tzinfo) -> str:
    """From one moment to another, the day said once where it is one."""
    begin, close = _read(start, zone), _read(end, zone)
    if begin is None or close is None:
        return f"{start} to {end}"
    if begin.date() == close.date():
        return f"{begin:%a} {begin.day} {begin:%b}, {begin:%H:%M} to {close:%H:%M}"
    return f"{_told(begin)} to {_told(close)}"


def _told(moment: datetime) -> str:
    return f"{moment:%a} {moment.day} {moment:%b %Y}, {moment:%H:%M}"


def _read(text: str, zone: tzinfo) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.upper())
        return found.astimezone(zone) if found.tzinfo is not None else found
    except (ValueError, OverflowError):  # No time stamp, or the first or last day that there is.
        return None

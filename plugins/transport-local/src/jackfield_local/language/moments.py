"""Times in a result, told as people tell them."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo

_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?")


def readable(text: str, zone: tzinfo) -> str:
    """A text with its time stamps worded; those with an offset on the user's clock."""
    return _STAMP.sub(lambda match: _worded(match.group(), zone), text)


def span(start: str, end: str, zone: tzinfo) -> str:
    """From one moment to another, the day said once where it is one."""
    begin, close = _read(start, zone), _read(end, zone)
    if begin is None or close is None:
        return f"{start} to {end}"
    if begin.date() == close.date():
        return f"{begin:%a} {begin.day} {begin:%b}, {begin:%H:%M} to {close:%H:%M}"
    return f"{_told(begin)} to {_told(close)}"


def _worded(text: str, zone: tzinfo) -> str:
    found = _read(text, zone)
    return text if found is None else _told(found)


def _told(moment: datetime) -> str:
    return f"{moment:%a} {moment.day} {moment:%b %Y}, {moment:%H:%M}"


def _read(text: str, zone: tzinfo) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    try:
        return found.astimezone(zone) if found.tzinfo is not None else found
    except OverflowError:  # The first or the last day that there is.
        return found

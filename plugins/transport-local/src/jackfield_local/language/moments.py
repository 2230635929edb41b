"""Times in a result, told as people tell them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any

_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?")

_CLOCK = re.compile(r"\d{1,2}(?:[:.]\d{2}){1,2}(?:\s*[ap]\.?m\.?)?", re.IGNORECASE)


def readable(text: str, zone: tzinfo) -> str:
    """A text with its time stamps worded; those with an offset on the user's clock."""
    return _STAMP.sub(lambda match: _worded(match.group(), zone), text)


def placed(data: Mapping[str, Any]) -> str | None:
    """A time with the day and the place of its clock, for a result that has them besides its text."""
    text, zone, day = (data.get(key) for key in ("text", "timezone", "weekday"))
    if not (isinstance(text, str) and isinstance(zone, str)) or zone.startswith("Etc/"):
        return None
    clock, place = _CLOCK.search(text), zone.rpartition("/")[2].replace("_", " ")
    if clock is None or "/" not in zone or not str(data.get("locale", "en")).startswith("en"):
        return None
    told = text.rstrip(".")
    if isinstance(day, str) and day and day not in told:
        told = f"{told} on {day}" if clock.group() == told else f"{day}, {told}"
    return f"It is {told}." if place in told else f"It is {told} in {place}."


def span(start: str, end: str, zone: tzinfo, *, brief: bool = True) -> str:
    """From one moment to another, the day said once where it is one."""
    begin, close = _read(start, zone), _read(end, zone)
    if begin is None or close is None:
        return f"{start} to {end}"
    if begin.date() == close.date() and not brief:
        day = f"{begin:%A} {begin.day} {begin:%B}"
        return f"{day}, {begin.hour}:{begin:%M} to {close.hour}:{close:%M}"
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
    return found.astimezone(zone) if found.tzinfo is not None else found

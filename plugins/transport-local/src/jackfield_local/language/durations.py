"""How long something is."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import NamedTuple

from jackfield_local.language.numbers import NUMBER, number
from jackfield_local.language.spans import Span

UNITS = {
    "second": 1,
    "sec": 1,
    "minute": 60,
    "min": 60,
    "hour": 3600,
    "hr": 3600,
    "h": 3600,
    "day": 86_400,
    "week": 604_800,
}
_UNIT = r"(seconds?|secs?|minutes?|mins?|hours?|hrs?|h|days?|weeks?)\b"
_COUNTED = re.compile(
    rf"\b(?:a\s+)?({NUMBER})(\s+and\s+a\s+half)?[\s-]?{_UNIT}(\s+and\s+a\s+half)?", re.IGNORECASE
)
_WORDED = [
    (re.compile(r"\b(?:an?\s+)?hour and a half\b", re.IGNORECASE), 5400),
    (re.compile(r"\b(?:three[\s-]quarters? of an hour)\b", re.IGNORECASE), 2700),
    (re.compile(r"\b(?:an?\s+)?half[\s-](?:an?\s+)?hour\b", re.IGNORECASE), 1800),
    (re.compile(r"\b(?:an?\s+)?quarter of an hour\b", re.IGNORECASE), 900),
    (re.compile(r"\b(?:an?|one|full|free)[\s-]hour\b", re.IGNORECASE), 3600),
    (re.compile(r"\b(?:an?|one) (?:minute)\b", re.IGNORECASE), 60),
]


_AND_MINUTES = re.compile(rf"\s+(?:and\s+)?({NUMBER})(?:\s+min(?:ute)?s?)?\b(?!\s*[\w%:])", re.IGNORECASE)
"""What goes on after hours: an hour and ten, 1 hour 58 minutes."""


_LONGEST = 100 * 366 * 86_400
"""A hundred years, in seconds: an upper limit that keeps dates within the calendar."""


class Duration(NamedTuple):
    """A length of time, and where it stands."""

    length: timedelta
    span: Span


def duration(text: str) -> Duration | None:
    """The first length of time in a text; "in two hours" is a moment, not a length."""
    for pattern, seconds in _WORDED:
        if match := pattern.search(text):
            return _with_minutes(text, seconds, Span(*match.span()))
    for match in _COUNTED.finditer(text):
        if re.search(r"\b(?:in|within|next|last|past|the)\s+$", text[: match.start()], re.IGNORECASE):
            continue
        if re.match(r"\s+(?:ago|from now|later|earlier)\b", text[match.end() :], re.IGNORECASE):
            continue
        amount = number(match.group(1)) + (0.5 if match.group(2) or match.group(4) else 0)
        unit = match.group(3).lower()
        seconds = UNITS[unit] if unit in UNITS else UNITS[unit.removesuffix("s")]
        return _with_minutes(text, amount * seconds, Span(*match.span()))
    return None


def _with_minutes(text: str, seconds: float, span: Span) -> Duration:
    more = _AND_MINUTES.match(text, span.end) if seconds and seconds % UNITS["hour"] == 0 else None
    if more is not None:
        seconds, span = seconds + number(more.group(1)) * UNITS["minute"], Span(span.start, more.end())
    return Duration(timedelta(seconds=min(seconds, _LONGEST)), span)

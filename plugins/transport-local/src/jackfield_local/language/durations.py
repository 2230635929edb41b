"""Lengths of time: how long something is, by how much it moves, and in how long it will be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from jackfield_local.language.numbers import NUMBER, number
from jackfield_local.language.spans import Span

_UNITS = {
    "second": 1,
    "sec": 1,
    "minute": 60,
    "min": 60,
    "hour": 3_600,
    "hr": 3_600,
    "h": 3_600,
    "day": 86_400,
    "week": 604_800,
}
_MINUTE, _HOUR, _DAY = _UNITS["minute"], _UNITS["hour"], _UNITS["day"]
_LONGEST = 100 * 366 * _DAY
"""A hundred years, in seconds: an upper limit that keeps dates within the calendar."""

_FRACTIONS = {"half": 0.5, "quarter": 0.25, "three": 0.75}
_HALF = r"\s+and\s+a\s+half"
_LENGTH = re.compile(
    rf"\b(?:(?:an?\s+)?(?P<fraction>half|quarter\s+of|three[\s-]quarters?\s+of)[\s-](?:an?\s+)?"
    rf"|(?:an?\s+)?(?P<number>{NUMBER})(?P<half>{_HALF})?[\s-]?"
    rf"|(?:an?|(?:next\s+)?(?:full|free))[\s-])(?P<unit>{'|'.join(_UNITS)})s?\b(?P<more>{_HALF})?",
    re.IGNORECASE,
)
_AND_MINUTES = re.compile(rf"\s+(?:and\s+)?({NUMBER})(?:\s+min(?:ute)?s?)?\b(?!\s*[\w%:])", re.IGNORECASE)
"""The minutes after hours: an hour and ten, 1 hour 58 minutes."""

_BEFORE_DISTANCE = re.compile(r"\b(?:in|within|next|last|past|the)\s+$", re.IGNORECASE)
_AFTER_DISTANCE = re.compile(r"\s+(?:ago|from now|later|earlier)\b", re.IGNORECASE)
_SOON = re.compile(r"\b(?:in|within)(?:\s+the\s+next)?\s+$", re.IGNORECASE)
_DIRECTION = r"\b(later|earlier|sooner|forwards?|back)\b"
_MOVED = re.compile(rf"\s+{_DIRECTION}", re.IGNORECASE)
_MOVED_BY = re.compile(rf"{_DIRECTION}.*\bby\s+$", re.IGNORECASE)
_BACKWARDS = ("earlier", "sooner", "forward", "forwards")
"""A meeting that is brought forward is earlier, one that is pushed back is later."""


class Duration(NamedTuple):
    """A length of time, and where it stands."""

    length: timedelta
    span: Span


def duration(text: str) -> Duration | None:
    """The first length of time in a text; "in two hours" is a moment, "twice a week" a rate."""
    for found, match in _lengths(text):
        (start, end) = found.span
        distant = _BEFORE_DISTANCE.search(text[:start]) or _AFTER_DISTANCE.match(text, end)
        if not distant and (match["number"] or _seconds(match) in (_MINUTE, _HOUR)):
            return found
    return None


def shift(text: str) -> timedelta | None:
    """By how much a text moves a time, such as "an hour later"; nothing when it moves none."""
    for (length, span), _ in _lengths(text):
        if moved := _MOVED.match(text, span.end) or _MOVED_BY.search(text[: span.start]):
            return -length if moved[1].lower() in _BACKWARDS else length
    return None


def distance(text: str) -> Duration | None:
    """The minutes or hours from now at which something is to be, with the preposition before them."""
    for (length, span), match in _lengths(text):
        if _seconds(match) in (_MINUTE, _HOUR) and (soon := _SOON.search(text[: span.start])):
            return Duration(length, Span(soon.start(), span.end))
    return None


def _lengths(text: str) -> Iterator[tuple[Duration, re.Match[str]]]:
    for match in _LENGTH.finditer(text):
        amount = 1.0
        if match["number"]:
            amount = number(match["number"])
        elif match["fraction"]:
            amount = _FRACTIONS[re.split(r"\W", match["fraction"].lower())[0]]
        amount += 0.5 if match["half"] or match["more"] else 0.0
        seconds, end = amount * _seconds(match), match.end()
        if seconds and seconds % _HOUR == 0 and (minutes := _AND_MINUTES.match(text, end)):
            seconds, end = seconds + number(minutes[1]) * _MINUTE, minutes.end()
        yield Duration(timedelta(seconds=min(seconds, _LONGEST)), Span(match.start(), end)), match


def _seconds(match: re.Match[str]) -> int:
    """The seconds in the unit of a length."""
    return _UNITS[match["unit"].lower()]

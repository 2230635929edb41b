"""Relative changes of a time: an hour later, two days earlier, half an hour back."""

from __future__ import annotations

import re
from datetime import timedelta

from jackfield_local.language.durations import UNITS
from jackfield_local.language.numbers import NUMBER, number

_LENGTH = (
    rf"(half\s+an?|quarter\s+of\s+an|an?|{NUMBER})(\s+and\s+a\s+half)?"
    r"\s*-?(minutes?|mins?|hours?|hrs?|h|days?|weeks?)(\s+and\s+a\s+half)?"
)
_AFTER = re.compile(rf"\b{_LENGTH}\s+(later|earlier|sooner|forwards?|back)\b", re.IGNORECASE)
_BY = re.compile(rf"\b(later|earlier|sooner|forwards?|back)\b.*?\bby\s+{_LENGTH}", re.IGNORECASE)
_BACKWARDS = ("earlier", "sooner", "forward", "forwards")
"""A meeting that is brought forward is earlier, one that is pushed back is later."""

_WORDED = {"half": 0.5, "quarter": 0.25, "a": 1.0, "an": 1.0}


_LONGEST = 100 * 366 * 86_400


def shift(text: str) -> timedelta | None:
    """By how much a text moves a time; nothing when it says nothing of the kind."""
    if match := _AFTER.search(text):
        amount, plus, unit, more, direction = match.groups()
    elif match := _BY.search(text):
        direction, amount, plus, unit, more = match.groups()
    else:
        return None
    first = amount.split()[0].lower()
    count = _WORDED[first] if first in _WORDED else number(first)
    name = unit.lower()
    seconds = UNITS[name] if name in UNITS else UNITS[name.removesuffix("s")]
    length = timedelta(seconds=min((count + (0.5 if plus or more else 0)) * seconds, _LONGEST))
    return -length if direction.lower() in _BACKWARDS else length

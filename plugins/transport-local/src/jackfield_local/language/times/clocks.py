"""Times of day: hours that are named, and parts of a day."""

from __future__ import annotations

import re
from datetime import time
from typing import NamedTuple

from jackfield_local.language.numbers import number
from jackfield_local.language.spans import Span
from jackfield_local.language.times.when import Clock

_HOURS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_HALF = r"(?:\s*(a\.?m\.?|p\.?m\.?)(?![a-z]))"
_TIME = (
    rf"(?:(noon|midday|midnight)|(half past |quarter past "
    rf"|quarter to |half (?=[a-z]))?(?:(\d{{1,2}})(?:[:.](\d{{2}}))?|({_HOURS}))"
    rf"(?:\s*o['\u2019]?clock)?{_HALF}?(\s+in the (?:morning|afternoon|evening)|\s+at night)?)"
)
_RANGE = re.compile(
    rf"(?:\b(?:from|between)\s+)?(?<![\w/.:-]){_TIME}\s*(?:to|and|until|till|-|\u2013)\s*{_TIME}(?![\w/%-]|:\d)",
    re.IGNORECASE,
)
_POINT = re.compile(
    rf"(\b(?:at|around|by|from|before|after|@)\s+)?(?<![\w/.:+-]){_TIME}(?![\w/%-]|:\d)", re.IGNORECASE
)
_PARTS = {
    "morning": (time(8), time(12)),
    "lunchtime": (time(12), time(14)),
    "afternoon": (time(12), time(17)),
    "evening": (time(17), time(21)),
    "tonight": (time(18), time(23)),
    "night": (time(18), time(23)),
}
PART = re.compile(rf"\b(?:in the |this )?(?:(?:early|late) )?({'|'.join(_PARTS)})\b", re.IGNORECASE)
_SHIFTS = {"half past": 30, "half": 30, "quarter past": 15, "quarter to": -15}


class Found(NamedTuple):
    """A time of day, and where it stands."""

    clock: Clock
    span: Span


class _Hour(NamedTuple):
    named: str | None
    shift: str | None
    digits: str | None
    minutes: str | None
    word: str | None
    half: str | None
    part: str | None

    @property
    def plain(self) -> bool:
        """Whether nothing but a small number says that it is an hour."""
        return not (self.named or self.shift or self.minutes or self.half or self.part)

    def afternoon(self) -> bool | None:
        """Whether it was said to be past noon; nothing when it was not said."""
        if self.half:
            return self.half.lower().startswith("p")
        if self.part:
            return "morning" not in self.part.lower()
        return None

    def time(self, afternoon: bool | None) -> time | None:
        if self.named:
            return time(0) if self.named.lower() == "midnight" else time(12)
        hour = int(self.digits) if self.digits else int(number(self.word or "0"))
        minute = int(self.minutes or 0)
        if hour > 23 or minute > 59:
            return None
        if afternoon is None:
            # Nobody who says "at two" without more means the night.
            afternoon = hour < 7 and not (self.digits and len(self.digits) == 2)
        hour = (
            hour + 12
            if afternoon and hour < 12
            else 0
            if not afternoon and hour == 12 and self.half
            else hour
        )
        total = hour * 60 + minute + _SHIFTS.get((self.shift or "").strip().lower(), 0)
        return time(total // 60 % 24, total % 60)


def clock(text: str, *, on_a_day: bool = False) -> Found | None:
    """The first time of day in a text: from one hour to another, one hour, or a part of a day.

    Where a day is named, "11 to 1" needs nothing more to be hours.
    """
    return _range(text, on_a_day=on_a_day) or _point(text) or _part(text)


def _range(text: str, *, on_a_day: bool) -> Found | None:
    for match in _RANGE.finditer(text):
        first, second = _Hour(*match.groups()[:7]), _Hour(*match.groups()[7:])
        led = on_a_day or match.group().lower().startswith(("from", "between"))
        if first.plain and second.plain and not led and not (first.word or second.word):
            continue
        late = second.afternoon()
        begin, end = first.time(first.afternoon()), second.time(late)
        if first.afternoon() is None and late and begin is not None and end is not None and not first.named:
            begin = first.time(afternoon=True)
            begin = begin if begin is None or begin < end else first.time(afternoon=False)
        elif first.afternoon() is None and late is False:
            begin = first.time(afternoon=False)
        if begin is None or end is None:
            continue
        if late is None and end <= begin and end.hour < 12:
            end = end.replace(hour=end.hour + 12)
        return Found(Clock(begin, end), Span(*match.span()))
    return None


def _point(text: str) -> Found | None:
    for match in _POINT.finditer(text):
        hour = _Hour(*match.groups()[1:])
        led = (match.group(1) or "").strip().lower() in ("at", "around", "@", "by")
        if hour.plain and not (led or "clock" in match.group().lower()):
            continue
        if re.match(
            r"\s*(?:minutes?|hours?|days?|weeks?|%|euros?|people)\b", text[match.end() :], re.IGNORECASE
        ):
            continue
        half = hour.afternoon()
        found = hour.time(half if half is not None else _told(text))
        if found is not None:
            return Found(Clock(found), Span(*match.span()))
    return None


def _told(text: str) -> bool | None:
    """What another word of the text says about the half of the day."""
    part = PART.search(text)
    return None if part is None else part.group(1).lower() != "morning"


def _part(text: str) -> Found | None:
    match = PART.search(text)
    if match is None or re.match(r"\s+(?:people|bus|market|shift)\b", text[match.end() :], re.IGNORECASE):
        return None
    start, end = _PARTS[match.group(1).lower()]
    return Found(Clock(start, end, part=True), Span(*match.span()))

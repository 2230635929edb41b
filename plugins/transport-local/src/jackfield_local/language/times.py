"""When something is: the days, the clock times and the moments that a text names, put together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from jackfield_local.language.days import Days, Mention, find_days
from jackfield_local.language.durations import distance
from jackfield_local.language.numbers import WORDS
from jackfield_local.language.spans import Span, blanked
from jackfield_local.zone import is_zone

_LAST = time(23, 59, 59)
_STAMP = re.compile(
    r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?", re.IGNORECASE
)
_STEP = re.compile(
    r"\b(?:the )?(?:(?:day after|(?:next|following) day)|(?P<back>day before|previous day))\b", re.IGNORECASE
)
"""A day that is counted from the one that was last talked about."""

_OFFSETS = {"half past": 30, "half": 30, "quarter past": 15, "quarter to": -15}
_PARTS = {
    "morning": (time(8), time(12)),
    "lunchtime": (time(12), time(14)),
    "afternoon": (time(12), time(17)),
    "evening": (time(17), time(21)),
    "tonight": (time(18), time(23)),
    "night": (time(18), time(23)),
}
_PART = re.compile(rf"\b(?:in the |this )?(?:(?:early|late) )?({'|'.join(_PARTS)})\b", re.IGNORECASE)
_HOUR = (
    r"(?P<named>noon|midday|midnight)|(?P<offset>half past |quarter past |quarter to |half (?=[a-z]))?"
    rf"(?:(?P<digits>\d{{1,2}})(?:[:.](?P<minute>\d{{2}}))?|(?P<word>{'|'.join([*WORDS][1:13])})\b)"
    r"(?P<oclock>\s*o['\u2019]?clock)?(?:\s*(?P<half>[ap])\.?m\.?(?![a-z]))?"
    r"(?P<part>\s+in the (?:morning|afternoon|evening)|\s+at night)?"
)
_LAST_HOUR = _HOUR.replace("?P<", "?P<to_")
_HOURS = re.compile(
    r"(?P<lead>\b(?:at|around|by|from|between|before|after|@)\s+)?(?<![\w/.:+-])"
    rf"(?P<first>{_HOUR})(?:\s*(?:to|and|until|till|-|\u2013)\s*(?P<last>{_LAST_HOUR}))?"
    r"(?![\w/%-]|:\d)",
    re.IGNORECASE,
)
_ZONE = re.compile(r"\s*([A-Z]{3,4}|[A-Z][a-z]+/[A-Z]\w+)\b")
_COUNTED = re.compile(r"\s*(?:minutes?|hours?|days?|weeks?|%|euros?|people)\b", re.IGNORECASE)


class Clock(NamedTuple):
    """A time of day, or from one to another."""

    start: time
    end: time | None = None
    part: bool = False
    """Whether it is a part of the day, such as the afternoon, rather than hours that were named."""
    zone: tzinfo | None = None
    """The time zone that was said with the hours."""


@dataclass(frozen=True, slots=True)
class When:
    """What was said about time; at least one of the three is there."""

    days: Days | None
    clock: Clock | None
    moment: datetime | None
    """A moment that was given whole, such as a time stamp or "in two hours"."""

    spans: tuple[Span, ...]
    clock_span: Span | None = None
    zoned: bool = False
    """Whether a time zone or an offset was said."""

    @property
    def exact(self) -> bool:
        """Whether an hour was named, rather than a day or a part of it."""
        return self.moment is not None or (self.clock is not None and not self.clock.part)

    def starts(self, today: date, zone: tzinfo) -> datetime:
        """The moment at which it begins, on the user's clock unless it was given with an offset."""
        if self.moment is not None:
            return self.moment
        first = self.days.first if self.days else today
        return self._moment(first, self.clock.start if self.clock else time(), zone)

    def ends(self, today: date, zone: tzinfo) -> datetime | None:
        """The moment at which it ends, when it says so."""
        last = self.days.last if self.days else today
        if self.moment is not None or (self.clock is not None and self.clock.end is None):
            return None
        if self.clock is None or self.clock.end is None:
            return datetime.combine(last, _LAST, zone)
        overnight = timedelta(days=int(self.clock.end <= self.clock.start))
        return self._moment(last + overnight, self.clock.end, zone)

    def _moment(self, day: date, clock: time, zone: tzinfo) -> datetime:
        said = self.clock.zone if self.clock else None
        return datetime.combine(day, clock, said or zone).astimezone(zone)


def read_when(text: str, now: datetime, spoken_of: date | None = None) -> When | None:
    """What the text says about time.

    `spoken_of` is the day that was last talked about: an hour without a day is meant for that day.
    """
    if (moment := _moment(text, now)) is not None:
        return moment
    try:
        named = find_days(text, now.date())
    except (ValueError, OverflowError):
        return None  # There is no such day: its hour must not be taken for one of today.
    spans = [each.span for each in named]
    # A date has numbers that are no hours.
    dates = [span for span in spans if any(letter.isdigit() for letter in text[span.start : span.end])]
    rest = blanked(text, dates)
    clock, place = _clock(rest, on_a_day=bool(named)) or (None, None)
    days = _coming(named[0], clock, now) if named else None
    if days is None and spoken_of is not None:
        step = _STEP.search(text)
        spans += [Span(*step.span())] if step else []
        if step or clock is not None:
            day = spoken_of + timedelta(days=(-1 if step["back"] else 1) if step else 0)
            days = Days(day, day)
    if clock is not None and place is not None:
        spans.append(place)
        if not clock.part and (part := _PART.search(rest)):
            spans.append(Span(*part.span()))
    if days is None and clock is None:
        return None
    return When(days, clock, None, tuple(spans), place, zoned=clock is not None and clock.zone is not None)


def _moment(text: str, now: datetime) -> When | None:
    if match := _STAMP.search(text):
        try:
            moment = datetime.fromisoformat(match.group().upper().replace(" ", "T"))
        except ValueError:
            return None
        span, zoned = Span(*match.span()), moment.tzinfo is not None
        return When(None, None, moment if zoned else moment.replace(tzinfo=now.tzinfo), (span,), span, zoned)
    if (soon := distance(text)) is not None:
        return When(None, None, now + soon.length, (soon.span,), soon.span)
    return None


def _coming(named: Mention, clock: Clock | None, now: datetime) -> Days:
    """The days; a weekday is that of next week where it is today and its time is over."""
    if clock is None or not named.weekly or named.days.first != now.date():
        return named.days
    over = clock.end if clock.part and clock.end else clock.start
    later = timedelta(days=7 if over < now.time() else 0)
    return Days(named.days.first + later, named.days.last + later)


def _clock(text: str, *, on_a_day: bool) -> tuple[Clock, Span] | None:
    """The first time of day in a text: from one hour to another, one hour, or a part of a day."""
    found = [*_hours(text, on_a_day=on_a_day)]
    ranges = [each for each in found if each[0].end is not None]
    if found:
        return (ranges or found)[0]
    if (match := _PART.search(text)) is None:
        return None
    return Clock(*_PARTS[match[1].lower()], part=True), Span(*match.span())


def _hours(text: str, *, on_a_day: bool) -> Iterator[tuple[Clock, Span]]:
    """All hours of a text; a number by itself is one only after a preposition, or in a range on a day."""
    part = _PART.search(text)
    half = None if part is None else part[1].lower() != "morning"
    for match in _HOURS.finditer(text):
        lead = (match["lead"] or "").strip().lower()
        hour = _Hour(match)
        clock, end = None, match.end()
        if match["last"]:
            until = _Hour(match, "to_")
            bare = hour.plain and until.plain and lead not in ("from", "between")
            clock = _range(hour, until) if on_a_day or not bare else None
        if clock is None:
            end = match.end("first")
            bare = hour.plain and lead not in ("at", "around", "@", "by") and not match["oclock"]
            point = hour.time(half if hour.afternoon is None else hour.afternoon)
            if point is None or bare or _COUNTED.match(text, end):
                continue
            clock = Clock(point)
        if (zone := _ZONE.match(text, end)) and is_zone(zone[1]):
            clock, end = clock._replace(zone=ZoneInfo(zone[1])), zone.end()
        yield clock, Span(match.start(), end)


def _range(first: _Hour, last: _Hour) -> Clock | None:
    """From one hour to another; where only the last says its half of the day, the first follows it."""
    begin, end = first.time(first.afternoon), last.time(last.afternoon)
    if first.afternoon is None and last.afternoon is not None and not first.named:
        same = first.time(last.afternoon)
        begin = same if same and end and (same < end or not last.afternoon) else first.time(afternoon=False)
    if begin is None or end is None:
        return None
    if last.afternoon is None and end <= begin and end.hour < 12:
        end = end.replace(hour=end.hour + 12)
    return Clock(begin, end)


class _Hour:
    """One hour as it was said."""

    def __init__(self, match: re.Match[str], prefix: str = "") -> None:
        names = ("named", "offset", "digits", "minute", "word", "half", "part")
        said = {name: (match[f"{prefix}{name}"] or "").strip().lower() for name in names}
        self._said = said
        self.named = bool(said["named"])
        self.plain = not any(said[each] for each in ("named", "offset", "minute", "half", "part"))
        """Whether nothing but a small number says that it is an hour."""
        self.afternoon = None
        """Whether it was said to be past noon; nothing when it was not said."""
        if said["half"] or said["part"]:
            self.afternoon = said["half"] == "p" if said["half"] else "morning" not in said["part"]

    def time(self, afternoon: bool | None) -> time | None:
        """The time of day, if it is in this half of the day; nothing where there is no such time."""
        said = self._said
        if self.named:
            return time(0 if said["named"] == "midnight" else 12)
        hour, minute = int(said["digits"] or WORDS[said["word"]]), int(said["minute"] or 0)
        if hour > 23 or minute > 59:
            return None
        if afternoon is None:
            # Nobody who says "at two" without more means the night.
            afternoon = hour < 7 and len(said["digits"]) < 2
        if afternoon and hour < 12:
            hour += 12
        elif not afternoon and hour == 12 and said["half"]:
            hour = 0
        total = hour * 60 + minute + _OFFSETS.get(said["offset"], 0)
        return time(total // 60 % 24, total % 60)

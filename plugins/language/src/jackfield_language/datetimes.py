"""Days, clock times and points in time: parsed from text, and formatted for people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from dateutil.relativedelta import relativedelta  # type: ignore[import-untyped]
from jackfield.datetimes import is_zone

from jackfield_language.numbers import NUMBER, WORDS, distance, number
from jackfield_language.text import Span, blanked

# Days.

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = "|".join(_WEEKDAYS)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_TH = r"(?:st|nd|rd|th)"
_YEAR = r"(?:,? (?P<year>\d{4}))?"
_ON = rf"(?:(?P<on>{_WEEKDAY}),? )?"
_NEAR = {"the day after tomorrow": 2, "tomorrow": 1, "tmrw": 1, "yesterday": -1}
_NEAR |= dict.fromkeys(("today", "tonight", "this"), 0)
_STEPS = {"next": 1, "coming": 1, "last": -1}
_UNIT = r"(?P<unit>day|week|month|year)s?"
_COUNT = rf"(?P<number>an?|{NUMBER})"
_PATTERNS = [
    re.compile(rf"\b{pattern}\b", re.IGNORECASE)
    for pattern in (
        rf"{_ON}(?P<year>\d{{4}})-(?P<month>\d{{2}})-(?P<day>\d{{2}})(?![T\d])",
        rf"{_ON}{_DAY}\.(?P<month>0?[1-9]|1[0-2])\.(?P<year>\d{{4}})",
        rf"{_ON}(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})/(?P<year>\d{{4}}|\d{{2}})",
        r"(?P<near>the day after tomorrow|tomorrow|tmrw|yesterday|today|tonight)(?:'s)?",
        r"(?P<near>this)(?= (?:morning|afternoon|evening))",
        rf"{_ON}(?:the )?{_DAY}{_TH}?(?: of)? {_MONTH}\.?{_YEAR}",
        rf"{_ON}{_MONTH}\.? (?:the )?{_DAY}{_TH}?{_YEAR}(?!:|\d)",
        rf"(?P<on>{_WEEKDAY}),? (?:the )?{_DAY}{_TH}",
        rf"(?:from |between )?(?P<which>(?:next|this|coming|last) )?(?P<weekday>{_WEEKDAY})s?"
        rf"(?:\s*(?:to|until|till|through|and|-|\u2013)\s*(?P<until>{_WEEKDAY})s?)?",
        r"(?P<end>(?:the )?end of )?(?P<which>this|next|coming|last) (?P<period>week|weekend|month)",
        r"(?:the )?(?:(?P<end>end)|rest) of the (?P<period>week|month)",
        r"(?:the )?(?P<period>weekend)",
        rf"(?:the )?end of {_MONTH}",
        rf"in {_COUNT} {_UNIT}(?: time)?",
        rf"{_COUNT} {_UNIT} (?P<direction>ago|from now)",
        rf"the {_DAY}{_TH}",
    )
]
"""Earlier patterns take precedence."""


class DayRange(NamedTuple):
    """The first and the last day."""

    first: date
    last: date
    weekly: bool = False  # Whether it is a weekday by itself, which recurs every week.


def find_days(text: str, today: date) -> list[tuple[Span, DayRange]]:
    """Return the days that a text names, in order.

    Raises ValueError or OverflowError for a day that does not exist, such as 30 February, or a date that is
    not on the weekday named with it.
    """
    found: list[tuple[Span, DayRange]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            span = Span(*match.span())
            if any(span.overlaps(other) for other, _ in found):
                continue
            groups = {name: (value or "").strip().lower() for name, value in match.groupdict().items()}
            days = _read_days(groups, today)
            if days.last.year == date.max.year:
                raise OverflowError("the day is too close to the end of the calendar")
            if (weekday := groups.get("on")) and days.first.weekday() != _WEEKDAYS.index(weekday):
                raise ValueError(f"{days.first} is not a {weekday}")
            weekly = "weekday" in groups and not groups["until"] and groups["which"] not in ("next", "last")
            found.append((span, days._replace(weekly=weekly)))
    return sorted(found)


def _read_days(said: dict[str, str], today: date) -> DayRange:
    """Return the days of a match from its groups; a group that did not match is empty."""
    which, step = said.get("which"), _STEPS.get(said.get("which", ""), 0)
    monday = today - timedelta(days=today.weekday())
    if "near" in said:
        first = last = today + timedelta(days=_NEAR[said["near"]])
    elif "weekday" in said:
        index, until = (_WEEKDAYS.index(said[each] or said["weekday"]) for each in ("weekday", "until"))
        first = today + timedelta(days=(index - today.weekday()) % 7)
        if which == "next":
            first = monday + timedelta(days=7 + index)
        elif which == "last":
            first = today - timedelta(days=(today.weekday() - index) % 7 or 7)
        last = first + timedelta(days=(until - index) % 7)
    elif "period" in said:
        first = monday + timedelta(days=7 * step)
        last = first + timedelta(days=6)
        if said["period"] == "month":
            first, last = (today + relativedelta(months=step, day=day) for day in (1, 31))
        # Only the rest of the current week or month.
        first = first if step else today
        if said["period"] == "weekend":
            first = last - timedelta(days=1)
        elif said.get("end"):
            first = last
    elif "unit" in said:
        amount = int(1 if said["number"] in ("a", "an") else number(said["number"]))
        past = said.get("direction") == "ago"
        first = last = today + relativedelta(**{f"{said['unit']}s": -amount if past else amount})
    else:
        first = last = _read_date(said, today)
    return DayRange(first, last)


def _read_date(said: dict[str, str], today: date) -> date:
    """Return a date; without a year, the next one from today on."""
    if "month" not in said:
        day = int(said["day"])
        month_begin: date = today + relativedelta(months=int(day < today.day), day=1)
        return month_begin.replace(day=day)
    month = int(said["month"]) if said["month"].isdigit() else _MONTHS.index(said["month"][:3]) + 1
    if "day" not in said:
        last: date = today + relativedelta(month=month, day=31)
        return last if last >= today else last + relativedelta(years=1, day=31)
    day = int(said["day"])
    if said.get("year"):
        return date(int(said["year"]) + (2000 if len(said["year"]) == 2 else 0), month, day)
    this_year = date(today.year, month, day)
    return this_year if this_year >= today else date(today.year + 1, month, day)


# Clock times, and days with them.

_LAST = time(23, 59, 59)
_STAMP = re.compile(
    r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?", re.IGNORECASE
)
_STEP = re.compile(
    r"\b(?:the )?(?:(?:day after|(?:next|following) day)|(?P<back>day before|previous day))\b", re.IGNORECASE
)
"""A day relative to the day last mentioned."""

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


class ClockTime(NamedTuple):
    """A time of day, or a range of times."""

    start: time
    end: time | None = None
    part: bool = False  # Whether it is a part of the day, such as the afternoon, not a named hour.
    zone: tzinfo | None = None  # The time zone that was said with the hours.


@dataclass(frozen=True, slots=True)
class TimeExpression:
    """The time that a text names: at least one of days, clock and instant."""

    days: DayRange | None
    clock: ClockTime | None
    instant: datetime | None  # A point in time given as a whole: a timestamp, or "in two hours".
    spans: tuple[Span, ...]
    clock_span: Span | None = None
    zoned: bool = False  # Whether a time zone or an offset was said.

    @property
    def exact(self) -> bool:
        """True if an hour was named, rather than a day or a part of it."""
        return self.instant is not None or (self.clock is not None and not self.clock.part)

    def starts(self, today: date, zone: tzinfo) -> datetime:
        """Return the start, in the user's zone unless the text gives an offset."""
        if self.instant is not None:
            return self.instant
        first = self.days.first if self.days else today
        return self._at(first, self.clock.start if self.clock else time(), zone)

    def ends(self, today: date, zone: tzinfo) -> datetime | None:
        """Return the end, if the text gives one."""
        last = self.days.last if self.days else today
        if self.instant is not None or (self.clock is not None and self.clock.end is None):
            return None
        if self.clock is None or self.clock.end is None:
            return datetime.combine(last, _LAST, zone)
        overnight = timedelta(days=int(self.clock.end <= self.clock.start))
        return self._at(last + overnight, self.clock.end, zone)

    def _at(self, day: date, clock: time, zone: tzinfo) -> datetime:
        said = self.clock.zone if self.clock else None
        return datetime.combine(day, clock, said or zone).astimezone(zone)


def read_time(text: str, now: datetime, last_day: date | None = None) -> TimeExpression | None:
    """Return the time expression in a text; None if there is none.

    `last_day` is the day last mentioned: an hour without a day belongs to it.
    """
    if (instant := _instant(text, now)) is not None:
        return instant
    try:
        named = find_days(text, now.date())
    except (ValueError, OverflowError):
        return None  # There is no such day, so its hour must not count as today's.
    spans = [span for span, _ in named]
    # A date has numbers that are not hours.
    dates = [span for span in spans if any(letter.isdigit() for letter in text[span.start : span.end])]
    rest = blanked(text, dates)
    clock, place = _clock(rest, on_a_day=bool(named)) or (None, None)
    days = _coming(named[0][1], clock, now) if named else None
    if days is None and last_day is not None:
        step = _STEP.search(text)
        spans += [Span(*step.span())] if step else []
        if step or clock is not None:
            day = last_day + timedelta(days=(-1 if step["back"] else 1) if step else 0)
            days = DayRange(day, day)
    if clock is not None and place is not None:
        spans.append(place)
        if not clock.part and (part := _PART.search(rest)):
            spans.append(Span(*part.span()))
    if days is None and clock is None:
        return None
    return TimeExpression(
        days, clock, None, tuple(spans), place, zoned=clock is not None and clock.zone is not None
    )


def _instant(text: str, now: datetime) -> TimeExpression | None:
    if match := _STAMP.search(text):
        try:
            instant = datetime.fromisoformat(match.group().upper().replace(" ", "T"))
        except ValueError:
            return None
        span, zoned = Span(*match.span()), instant.tzinfo is not None
        return TimeExpression(
            None, None, instant if zoned else instant.replace(tzinfo=now.tzinfo), (span,), span, zoned
        )
    if (soon := distance(text)) is not None:
        return TimeExpression(None, None, now + soon.length, (soon.span,), soon.span)
    return None


def _coming(days: DayRange, clock: ClockTime | None, now: datetime) -> DayRange:
    """Return the days; a weekday is next week's if it is today and its time has passed."""
    if clock is None or not days.weekly or days.first != now.date():
        return days
    over = clock.end if clock.part and clock.end else clock.start
    later = timedelta(days=7 if over < now.time() else 0)
    return DayRange(days.first + later, days.last + later)


def _clock(text: str, *, on_a_day: bool) -> tuple[ClockTime, Span] | None:
    """Return the first time of day in a text: a range of hours, one hour, or a part of the day."""
    found = [*_hours(text, on_a_day=on_a_day)]
    ranges = [each for each in found if each[0].end is not None]
    if found:
        return (ranges or found)[0]
    if (match := _PART.search(text)) is None:
        return None
    return ClockTime(*_PARTS[match[1].lower()], part=True), Span(*match.span())


def _hours(text: str, *, on_a_day: bool) -> Iterator[tuple[ClockTime, Span]]:
    """Yield all hours of a text; a bare number counts only after a preposition, or in a range on a day."""
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
            clock = ClockTime(point)
        if (zone := _ZONE.match(text, end)) and is_zone(zone[1]):
            clock, end = clock._replace(zone=ZoneInfo(zone[1])), zone.end()
        yield clock, Span(match.start(), end)


def _range(first: _Hour, last: _Hour) -> ClockTime | None:
    """Return a range of hours; if only the last says a.m. or p.m., the first follows it."""
    begin, end = first.time(first.afternoon), last.time(last.afternoon)
    if first.afternoon is None and last.afternoon is not None and not first.named:
        same = first.time(last.afternoon)
        begin = same if same and end and (same < end or not last.afternoon) else first.time(afternoon=False)
    if begin is None or end is None:
        return None
    if last.afternoon is None and end <= begin and end.hour < 12:
        end = end.replace(hour=end.hour + 12)
    return ClockTime(begin, end)


class _Hour:
    """One hour as it was said."""

    def __init__(self, match: re.Match[str], prefix: str = "") -> None:
        names = ("named", "offset", "digits", "minute", "word", "half", "part")
        said = {name: (match[f"{prefix}{name}"] or "").strip().lower() for name in names}
        self._said = said
        self.named = bool(said["named"])
        self.plain = not any(said[each] for each in ("named", "offset", "minute", "half", "part"))
        """True if only a number indicates the hour."""
        self.afternoon = None
        """Whether the hour is past noon; None if the text does not say."""
        if said["half"] or said["part"]:
            self.afternoon = said["half"] == "p" if said["half"] else "morning" not in said["part"]

    def time(self, afternoon: bool | None) -> time | None:
        """Return the time in this half of the day; None if there is no such time."""
        said = self._said
        if self.named:
            return time(0 if said["named"] == "midnight" else 12)
        hour, minute = int(said["digits"] or WORDS[said["word"]]), int(said["minute"] or 0)
        if hour > 23 or minute > 59:
            return None
        if afternoon is None:
            # "At two" by itself does not mean 2 a.m.
            afternoon = hour < 7 and len(said["digits"]) < 2
        if afternoon and hour < 12:
            hour += 12
        elif not afternoon and hour == 12 and said["half"]:
            hour = 0
        total = hour * 60 + minute + _OFFSETS.get(said["offset"], 0)
        return time(total // 60 % 24, total % 60)


# Times in a result, formatted for people.

_ISO_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?")


def readable(text: str, zone: tzinfo) -> str:
    """Return a text with its timestamps in words; timestamps with an offset are in the user's zone."""

    def in_words(match: re.Match[str]) -> str:
        point = _parsed(match.group(), zone)
        return match.group() if point is None else _formatted(point)

    return _ISO_TIME.sub(in_words, text)


def span(start: str, end: str, zone: tzinfo) -> str:
    """Return a range in words, with the day only once if it is the same."""
    begin, close = _parsed(start, zone), _parsed(end, zone)
    if begin is None or close is None:
        return f"{start} to {end}"
    if begin.date() == close.date():
        return f"{begin:%a} {begin.day} {begin:%b}, {begin:%H:%M} to {close:%H:%M}"
    return f"{_formatted(begin)} to {_formatted(close)}"


def _formatted(point: datetime) -> str:
    return f"{point:%a} {point.day} {point:%b %Y}, {point:%H:%M}"


def _parsed(text: str, zone: tzinfo) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.upper())
        return found.astimezone(zone) if found.tzinfo is not None else found
    except (ValueError, OverflowError):  # Not a timestamp, or at the limits of the calendar.
        return None

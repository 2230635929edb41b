"""Days and spans of days in a text: by name, by date, by distance from today."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import NamedTuple

from dateutil.relativedelta import relativedelta  # type: ignore[import-untyped]

from jackfield_local.language.numbers import NUMBER, number
from jackfield_local.language.spans import Span

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
_NEAR = {
    "the day after tomorrow": 2,
    "tomorrow": 1,
    "tmrw": 1,
    "yesterday": -1,
    "today": 0,
    "tonight": 0,
    "this": 0,
}
_STEPS = {"next": 1, "coming": 1, "last": -1}
_HOLIDAYS = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "christmas": (12, 25),
    "new years eve": (12, 31),
    "new years day": (1, 1),
    "new year": (1, 1),
    "valentines day": (2, 14),
    "halloween": (10, 31),
}
_HOLIDAY = "|".join(name.replace("s ", "['\u2019]?s ") for name in _HOLIDAYS)


class Days(NamedTuple):
    """The first and the last day."""

    first: date
    last: date


class Mention(NamedTuple):
    """The days that a part of a text names."""

    days: Days
    span: Span
    weekly: bool
    """Whether it is a weekday without more, which comes again every week."""


_Groups = dict[str, str]
"""The named groups of a match in lower case; empty where a group did not match."""


def find_days(text: str, today: date) -> list[Mention]:
    """The days that a text names, in the order in which they stand.

    ValueError and OverflowError mean that it names a day that does not exist, such as 30 February.
    """
    found: list[Mention] = []
    for pattern, read in _RULES:
        for match in pattern.finditer(text):
            span = Span(*match.span())
            if any(span.overlaps(each.span) for each in found):
                continue
            groups = {name: (value or "").strip().lower() for name, value in match.groupdict().items()}
            first, last = read(groups, today)
            if last.year == date.max.year:
                raise OverflowError("an hour after this day could not be written")
            weekly = "weekday" in groups and not groups["until"] and groups["which"] not in ("next", "last")
            found.append(Mention(Days(first, last), span, weekly))
    return sorted(found, key=lambda each: each.span)


def _one(day: date) -> Days:
    return Days(day, day)


def _monday(today: date, weeks: int = 0) -> date:
    return today + timedelta(days=7 * weeks - today.weekday())


def _near(said: _Groups, today: date) -> Days:
    return _one(today + timedelta(days=_NEAR[said["near"]]))


def _weekday(said: _Groups, today: date) -> Days:
    index = _WEEKDAYS.index(said["weekday"])
    day = today + timedelta(days=(index - today.weekday()) % 7)
    if said["which"] == "next":
        day = _monday(today, 1) + timedelta(days=index)
    elif said["which"] == "last":
        day = today - timedelta(days=(today.weekday() - index) % 7 or 7)
    until = _WEEKDAYS.index(said["until"] or said["weekday"])
    return Days(day, day + timedelta(days=(until - index) % 7))


def _period(said: _Groups, today: date) -> Days:
    """A week, a weekend or a month; of the current one, what is left of it."""
    step = _STEPS.get(said.get("which", ""), 0)
    monday = _monday(today, step)
    first, last = monday, monday + timedelta(days=6)
    if said["period"] == "month":
        first, last = (today + relativedelta(months=step, day=day) for day in (1, 31))
    if said["period"] == "weekend":
        return Days(last - timedelta(days=1), last)
    return _one(last) if said.get("end") else Days(first if step else today, last)


def _end_of_month(said: _Groups, today: date) -> Days:
    last = today + relativedelta(month=_MONTHS.index(said["month"][:3]) + 1, day=31)
    return _one(last if last >= today else last + relativedelta(years=1, day=31))


def _holiday(said: _Groups, today: date) -> Days:
    return _one(_ahead(today, *_HOLIDAYS[re.sub("['\u2019]", "", said["holiday"])]))


def _date(said: _Groups, today: date) -> Days:
    month, day = _MONTHS.index(said["month"][:3]) + 1, int(said["day"])
    return _one(date(int(said["year"]), month, day) if said["year"] else _ahead(today, month, day))


def _ahead(today: date, month: int, day: int) -> date:
    """A day of this year, or of the next where it is over."""
    this_year = date(today.year, month, day)
    return this_year if this_year >= today else date(today.year + 1, month, day)


def _numeric(said: _Groups, _: date) -> Days:
    year = int(said["year"]) + (2000 if len(said["year"]) == 2 else 0)
    return _one(date(year, int(said["month"]), int(said["day"])))


def _day_of_month(said: _Groups, today: date) -> Days:
    day = int(said["day"])
    return _one((today + relativedelta(months=int(day < today.day), day=1)).replace(day=day))


def _distance(said: _Groups, today: date) -> Days:
    amount = int(1 if said["number"] in ("a", "an") else number(said["number"]))
    past = said.get("direction") == "ago"
    return _one(today + relativedelta(**{f"{said['unit']}s": -amount if past else amount}))


_UNIT = r"(?P<unit>day|week|month|year)s?"
_COUNT = rf"(?P<number>an?|{NUMBER})"
_PATTERNS: tuple[tuple[str, Callable[[_Groups, date], Days]], ...] = (
    (r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?![T\d])", _numeric),
    (r"(?P<near>the day after tomorrow|tomorrow|tmrw|yesterday|today|tonight)(?:'s)?", _near),
    (r"(?P<near>this)(?= (?:morning|afternoon|evening))", _near),
    (rf"(?:{_WEEKDAY}),? (?:the )?{_DAY}{_TH}", _day_of_month),
    (
        rf"(?:from |between )?(?P<which>(?:next|this|coming|last) )?(?P<weekday>{_WEEKDAY})s?"
        rf"(?:\s*(?:to|until|till|through|and|-|\u2013)\s*(?P<until>{_WEEKDAY})s?)?",
        _weekday,
    ),
    (r"(?P<end>(?:the )?end of )?(?P<which>this|next|coming|last) (?P<period>week|weekend|month)", _period),
    (r"(?:the )?(?:(?P<end>end)|rest) of the (?P<period>week|month)", _period),
    (r"(?:the )?(?P<period>weekend)", _period),
    (rf"(?:the )?end of {_MONTH}", _end_of_month),
    (rf"(?P<holiday>{_HOLIDAY})", _holiday),
    (rf"(?:the )?{_DAY}{_TH}?(?: of)? {_MONTH}\.?{_YEAR}", _date),
    (rf"{_MONTH}\.? (?:the )?{_DAY}{_TH}?{_YEAR}(?!:|\d)", _date),
    (rf"in {_COUNT} {_UNIT}(?: time)?", _distance),
    (rf"{_COUNT} {_UNIT} (?P<direction>ago|from now)", _distance),
    (r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4}|\d{2})", _numeric),
    (rf"the {_DAY}{_TH}", _day_of_month),
)
_RULES = [(re.compile(rf"\b{pattern}\b", re.IGNORECASE), read) for pattern, read in _PATTERNS]

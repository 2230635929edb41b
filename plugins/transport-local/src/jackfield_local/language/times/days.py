"""Days: by name, by date, by distance; dates in words are read by parsedatetime."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from jackfield_local.language.numbers import NUMBER
from jackfield_local.language.spans import Span
from jackfield_local.language.times.when import Days

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = r"(mon|tues|wednes|thurs|fri|satur|sun)days?"
A_WEEKDAY = re.compile(rf"(?:this |coming )?{_WEEKDAY}", re.IGNORECASE)
"""A day that comes again every week."""

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
_FEASTS = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "christmas": (12, 25),
    "new years eve": (12, 31),
    "new years day": (1, 1),
    "new year": (1, 1),
    "valentines day": (2, 14),
    "halloween": (10, 31),
}


_A_RATE = re.compile(r"\bhow (?:many|much|often)\b.* in an? \w+$", re.IGNORECASE | re.DOTALL)
"""How many there are in a year says nothing about when."""


class Found(NamedTuple):
    """Some days, and where they stand."""

    days: Days
    span: Span


_Rule = tuple[re.Pattern[str], Callable[[re.Match[str], date], Days | None]]


def _one(day: date) -> Days:
    return Days(day, day)


def _iso(match: re.Match[str], _: date) -> Days | None:
    try:
        return _one(date.fromisoformat(match.group()))
    except ValueError:
        return None


def _weekday(match: re.Match[str], today: date) -> Days:
    ahead = (_index(match.group(2)) - today.weekday()) % 7
    said = (match.group(1) or "").strip().lower()
    if said == "last":
        return _one(today - timedelta(days=(today.weekday() - _index(match.group(2))) % 7 or 7))
    if said == "next" and ahead + today.weekday() < 7:
        ahead += 7  # Of the week after this one.
    return _one(today + timedelta(days=ahead or 7 if said == "next" else ahead))


def _weekdays(match: re.Match[str], today: date) -> Days:
    first = today + timedelta(days=(_index(match.group(2)) - today.weekday()) % 7)
    if (match.group(1) or "").strip().lower() == "next" and first.isocalendar()[1] == today.isocalendar()[1]:
        first += timedelta(days=7)
    return Days(first, first + timedelta(days=(_index(match.group(3)) - first.weekday()) % 7))


def _index(prefix: str) -> int:
    return next(n for n, name in enumerate(_WEEKDAYS) if name.startswith(prefix.lower()))


def _week(match: re.Match[str], today: date) -> Days:
    monday = today - timedelta(days=today.weekday())
    said = match.group(1).lower()
    shift = {"next": 7, "last": -7, "coming": 7}.get(said, 0)
    first, last = monday + timedelta(days=shift), monday + timedelta(days=shift + 6)
    return Days(today if said in ("this", "rest of the", "rest of this") else first, last)


def _weekend(match: re.Match[str], today: date) -> Days:
    saturday = today - timedelta(days=today.weekday()) + timedelta(days=5)
    saturday += timedelta(days={"next": 7, "last": -7}.get((match.group(1) or "").strip().lower(), 0))
    return Days(saturday, saturday + timedelta(days=1))


def _month(match: re.Match[str], today: date) -> Days:
    shift = {"next": 1, "last": -1}.get(match.group(1).lower(), 0)
    first = _shifted(today.replace(day=1), shift)
    return Days(today if shift == 0 else first, _shifted(first.replace(day=1), 1) - timedelta(days=1))


def _end_of_month(match: re.Match[str], today: date) -> Days:
    """The last day of a month that is named, or of this or the next one."""
    said = match.group(1).lower()
    if (named := _MONTHS.find(said[:3])) >= 0:
        month = named // 3 + 1
        first = date(today.year + (month < today.month), month, 1)
    else:
        first = _shifted(today.replace(day=1), 1 if said.startswith("next") else 0)
    return _one(_shifted(first, 1) - timedelta(days=1))


def _shifted(first: date, months: int) -> date:
    index = first.year * 12 + first.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


def _feast(match: re.Match[str], today: date) -> Days:
    month, day = _FEASTS[re.sub("['\u2019]", "", match.group().lower())]
    this_year = date(today.year, month, day)
    return _one(this_year if this_year >= today else date(today.year + 1, month, day))


def _nth(match: re.Match[str], today: date) -> Days | None:
    number = int(match.groups()[-1])
    first = today.replace(day=1) if number >= today.day else _shifted(today.replace(day=1), 1)
    try:
        return _one(first.replace(day=number))
    except ValueError:
        return None


def _in_words(match: re.Match[str], today: date) -> Days | None:
    """A date or a distance as parsedatetime reads it; a date without a year lies ahead."""
    if _A_RATE.search(f"{match.string[: match.start()]} {match.group()}"):
        return None
    text = re.sub(r"(?<=\d)(?:st|nd|rd|th)|\bof\b|\bthe\b", " ", match.group(), flags=re.IGNORECASE)
    found, status = _calendar().parseDT(" ".join(text.split()), datetime.combine(today, datetime.min.time()))
    return _one(found.date()) if status else None


@cache
def _calendar() -> Any:
    import parsedatetime  # type: ignore[import-untyped]

    return parsedatetime.Calendar(parsedatetime.Constants(usePyICU=False))


def _near(days: int) -> Callable[[re.Match[str], date], Days]:
    return lambda _, today: _one(today + timedelta(days=days))


def _rule(pattern: str, read: Callable[[re.Match[str], date], Days | None]) -> _Rule:
    return re.compile(rf"\b{pattern}\b", re.IGNORECASE), read


_RULES: tuple[_Rule, ...] = (
    _rule(r"\d{4}-\d{2}-\d{2}(?![T\d])", _iso),
    _rule(r"the day after tomorrow", _near(2)),
    _rule(r"(?:tomorrow|tmrw)(?:'s)?", _near(1)),
    _rule(r"yesterday(?:'s)?", _near(-1)),
    _rule(r"(?:today(?:'s)?|tonight|this (?=morning|afternoon|evening))", _near(0)),
    _rule(
        rf"(?:from |between )?(next |this )?{_WEEKDAY}\s*(?:to|until|till|through|and|-|\u2013)\s*{_WEEKDAY}",
        _weekdays,
    ),
    _rule(rf"(?:{_WEEKDAY},? )(?:the )?(\d{{1,2}})(?:st|nd|rd|th)", _nth),
    _rule(rf"(next |this |coming |last )?{_WEEKDAY}", _weekday),
    _rule(r"(this|next|last|coming|rest of the|rest of this) week(?!end|day)", _week),
    _rule(r"(this |next |last |the )?weekend", _weekend),
    _rule(rf"(?:the )?end of ({_MONTH}|(?:the|this|next) month)", _end_of_month),
    _rule(r"(this|next|last) month", _month),
    _rule("(?:" + "|".join(name.replace("s ", "['\u2019]?s ") for name in _FEASTS) + ")", _feast),
    _rule(rf"(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\.?(?:,? \d{{4}})?", _in_words),
    _rule(rf"{_MONTH}\.? (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?(?!:|\d)", _in_words),
    _rule(rf"in (?:a|{NUMBER}) (?:days?|weeks?|months?|years?)(?: time)?", _in_words),
    _rule(rf"(?:a|{NUMBER}) (?:days?|weeks?|months?|years?) (?:ago|from now)", _in_words),
    _rule(r"\d{1,2}/\d{1,2}/\d{2,4}", _in_words),
    _rule(r"the (\d{1,2})(?:st|nd|rd|th)", _nth),
)


def days(text: str, today: date) -> Iterator[Found]:
    """The days that a text names, in the order in which they stand."""
    taken: list[Found] = []
    for pattern, read in _RULES:
        for match in pattern.finditer(text):
            span = Span(*match.span())
            if any(span.overlaps(each.span) for each in taken):
                continue
            if (found := read(match, today)) is not None:
                taken.append(Found(found, span))
    yield from sorted(taken, key=lambda each: each.span)

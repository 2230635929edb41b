"""Numbers and durations as people write and say them: 5,000, $20, two hundred, half an hour."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from jackfield_language.text import Span
from jackfield_language.words import words

_ONES = "zero one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
WORDS = {word: number for number, word in enumerate(f"{_ONES} {_TEENS}".split())}
WORDS |= {word: 10 * number for number, word in enumerate(_TENS.split(), 2)} | {"dozen": 12, "couple": 2}
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9}

_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
ORDINALS = {word: number for number, word in enumerate(_ORDINALS.split(), 1)}
ORDINALS |= {"1st": 1, "2nd": 2, "3rd": 3} | {f"{number}th": number for number in range(4, 32)}

_LONGEST = 1_000  # Maximum characters that are searched for amounts; longer input is a text, not a request.
_ONE = _ONES.replace(" ", "|")
_BELOW_HUNDRED = rf"(?a:(?:(?:{_TENS.replace(' ', '|')})(?:[\s-]+(?:{_ONE}))?|{'|'.join(WORDS)})\b)"
_SCALE = "|".join(_SCALES)
NUMBER = rf"(?:\d+(?:[.,]\d+)?|{_BELOW_HUNDRED})"
"""The pattern of a plain number, for patterns of dates and durations; `number` parses it."""

_AMOUNT = re.compile(
    rf"""
    (?<![\w.,@/\#:+-]) (?P<sign>-|minus\s+)? (?:[$€£¥]\s?)?
    (?: (?P<digits> \d{{1,3}}(?:\.\d{{3}}){{1,4}},\d{{1,15}}
                  | \d{{1,3}}(?:[,'\u2019\u00a0\u202f]\d{{3}}){{1,4}}(?:\.\d{{1,15}})?
                  | \d{{1,15}}(?:[.,]\d{{1,15}})?
        ) (?P<kilo>k\b)?
      | (?P<words>{_BELOW_HUNDRED}) (?:\s+point(?P<decimals>(?:[\s-]+(?:{_ONE})\b){{1,9}}))?
      | an?(?=\s+(?:{_SCALE})\b)
    )
    (?P<scales>(?:[\s-]+(?:{_SCALE})\b(?:[\s-]+(?:and\s+)?{_BELOW_HUNDRED})?){{0,4}})
    (?![\w@/]|[:.,]\d|-\d)
    (?P<half>\s+and\s+a\s+half\b)?
    (?:\s*(?:(?P<percent>%|(?:percent|per\ cent|pct)\b)|[$€£¥]|(?:dollars?|euros?|pounds?|francs?|yen)\b))?
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
_DECIMAL_COMMA = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d+,\d{1,2}|\d+,\d{4,}")
"""A comma that is not a thousands separator."""

_BEFORE_PRONOUN = re.compile(
    r"\b(?:the|this|that|which|any|another|each|every|no|last|next|\w+(?:st|nd|rd|th))\s+$", re.IGNORECASE
)


class Amount(NamedTuple):
    """An amount, its place, and whether it is a percentage."""

    value: float
    span: Span
    percent: bool = False


def number(text: str) -> float:
    """Return the value of a plain number, in digits or in words."""
    return float(text.replace(",", ".")) if text[0].isdigit() else float(_sum(text))


def amounts(text: str) -> list[Amount]:
    """Return all amounts of a text in order, except a "one" that is a pronoun."""
    return [
        Amount(_value(match), Span(*match.span()), match["percent"] is not None)
        for match in _AMOUNT.finditer(text[:_LONGEST])
        if match.group().lower() != "one" or not _BEFORE_PRONOUN.search(text[: match.start()])
    ]


def forms(amount: Amount) -> list[float]:
    """Return the numbers that an amount can mean: a percentage is also a fraction."""
    return [amount.value, round(amount.value / 100, 10)] if amount.percent else [amount.value]


def _value(match: re.Match[str]) -> float:
    value, total = 1.0, 0.0
    if digits := match["digits"]:
        value = _digits(digits) * (1_000 if match["kilo"] else 1)
    elif match["words"]:
        decimals = "".join(str(WORDS[each]) for each in (match["decimals"] or "").lower().split())
        value = float(f"{_sum(match['words'])}.{decimals}")
    for word in re.findall("[a-z]+", match["scales"].lower()):
        if word in _SCALES:
            value *= _SCALES[word]
            if _SCALES[word] > 100:
                total, value = total + value, 0.0
        elif word != "and":
            value += WORDS[word]
    value += total + (0.5 if match["half"] else 0.0)
    return -value if match["sign"] else value


def _sum(text: str) -> int:
    return sum(WORDS[word] for word in re.findall("[a-z]+", text.lower()))


def _digits(text: str) -> float:
    if _DECIMAL_COMMA.fullmatch(text):
        return float(text.replace(".", "").replace(",", "."))
    return float(re.sub("[^0-9.]", "", text))


# Durations: how long something takes, by how much it moves, and how far ahead it is.

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
UNITS = {"second": 1, "sec": 1, "minute": _MINUTE, "min": _MINUTE, "hour": _HOUR, "hr": _HOUR, "h": _HOUR}
UNITS |= {"day": _DAY, "week": 7 * _DAY}
"""Seconds in each unit of time."""

_LONGEST_SECONDS = 100 * 366 * _DAY
"""A hundred years, in seconds: an upper limit that keeps dates within the calendar."""

_FRACTIONS = {"half": 0.5, "quarter": 0.25, "three": 0.75}
_HALF = r"\s+and\s+a\s+half"
_LENGTH = re.compile(
    rf"\b(?:(?:an?\s+)?(?P<fraction>half|quarter\s+of|three[\s-]quarters?\s+of)[\s-](?:an?\s+)?"
    rf"|(?:an?\s+)?(?P<number>{NUMBER})(?P<half>{_HALF})?[\s-]?"
    rf"|(?:an?|(?:next\s+)?(?:full|free))[\s-])(?P<unit>{'|'.join(UNITS)})s?\b(?P<more>{_HALF})?",
    re.IGNORECASE,
)
_AND_MINUTES = re.compile(rf"\s+(?:and\s+)?({NUMBER})(?:\s+min(?:ute)?s?)?\b(?!\s*[\w%:])", re.IGNORECASE)
"""The minutes after hours: an hour and ten, 1 hour 58 minutes."""

_BEFORE_DISTANCE = re.compile(r"\b(?:in|within|next|last|past|the)\s+$", re.IGNORECASE)
_AFTER_DISTANCE = re.compile(r"\s+(?:ago|from now|later|earlier|longer|shorter)\b", re.IGNORECASE)
_SOON = re.compile(r"\b(?:in|within)(?:\s+the\s+next)?\s+$", re.IGNORECASE)
_CHANGE = r"\b(later|earlier|sooner|forwards?|back|longer|shorter)\b"
_CHANGED = re.compile(rf"\s+{_CHANGE}", re.IGNORECASE)
_CHANGED_BY = re.compile(rf"{_CHANGE}.*\bby\s+$", re.IGNORECASE)
_BACKWARDS = ("earlier", "sooner", "forward", "forwards", "shorter")
"""A meeting that is brought forward is earlier, one that is pushed back is later."""


class Duration(NamedTuple):
    """A duration, and its place."""

    length: timedelta
    span: Span


def duration(text: str) -> Duration | None:
    """Return the first duration in a text; "in two hours" is a point in time, "twice a week" a rate."""
    for found, match in _lengths(text):
        (start, end) = found.span
        distant = _BEFORE_DISTANCE.search(text[:start]) or _AFTER_DISTANCE.match(text, end)
        if not distant and (match["number"] or _seconds(match) in (_MINUTE, _HOUR)):
            return found
    return None


class TimeChange(NamedTuple):
    """How far a time, or only its end, is moved."""

    length: timedelta
    ends_only: bool


def time_change(text: str) -> TimeChange | None:
    """Return by how much a text moves or lengthens something: "an hour later", "half an hour longer"."""
    for (length, span), _ in _lengths(text):
        if changed := _CHANGED.match(text, span.end) or _CHANGED_BY.search(text[: span.start]):
            word = changed[1].lower()
            return TimeChange(-length if word in _BACKWARDS else length, word in ("longer", "shorter"))
    return None


def distance(text: str) -> Duration | None:
    """Return the minutes or hours from now, as in "in two hours", with the preposition before them."""
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
        yield Duration(timedelta(seconds=min(seconds, _LONGEST_SECONDS)), Span(match.start(), end)), match


def _seconds(match: re.Match[str]) -> int:
    """Return the seconds in the unit of a duration."""
    return UNITS[match["unit"].lower()]


def chosen_place(text: str, count: int) -> int:
    """Return the place from 1 to `count` that words such as "number two, please" choose, or else 0."""
    heard = words(text)
    counted = [
        ORDINALS.get(each) or WORDS.get(each) or (int(each) if each.isdecimal() else 0) for each in heard
    ]
    rest = {word for word, number in zip(heard, counted, strict=True) if not number}
    places = [number for number in counted if number]
    alone = len(places) == 1 and rest <= {"number", "option", "the", "one", "please"}
    return places[0] if alone and places[0] <= count else 0

"""Everything that an utterance says about time, put together."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from jackfield_local.language.numbers import NUMBER, number
from jackfield_local.language.spans import Span, blanked
from jackfield_local.language.times import clocks
from jackfield_local.language.times.days import A_WEEKDAY, days
from jackfield_local.language.times.when import Clock, Days, When

_STAMP = re.compile(
    r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?", re.IGNORECASE
)
_LONGEST = 100 * 366 * 86_400
_SOON = re.compile(rf"\b(?:in|within) (?:the next )?(an?|{NUMBER}) (minutes?|hours?)\b", re.IGNORECASE)
_NEXT_DAY = re.compile(r"\b(?:the )?(?:day after|next day|following day)\b", re.IGNORECASE)
_DAY_BEFORE = re.compile(r"\b(?:the )?(?:day before|previous day)\b", re.IGNORECASE)
_THAT_DAY = re.compile(r"\b(?:there|that day|the same day)\b", re.IGNORECASE)
_JUST_NOW = re.compile(r"\b(?:right now|just now|at the moment|currently)\b", re.IGNORECASE)


def read_when(
    text: str, now: datetime, spoken_of: date | None = None, *, same_day: bool = False
) -> When | None:
    """What the text says about time.

    `spoken_of` is the day that was last talked about, `same_day` that an hour alone is meant for that day.
    """
    if (whole := _whole(text, now)) is not None:
        return whole
    text = _JUST_NOW.sub(lambda match: " " * len(match.group()), text)
    named = [*days(text, now.date())]
    spans = [each.span for each in named]
    # A date has numbers that are no hours.
    dates = [span for span in spans if any(letter.isdigit() for letter in text[span.start : span.end])]
    rest = blanked(text, dates)
    hour = clocks.clock(rest, on_a_day=bool(named))
    covered = Days(named[0].days.first, named[0].days.last) if named else None
    if covered is None and spoken_of is not None:
        covered, spans = _counted_on(text, spoken_of)
        if covered is None and hour is not None and (same_day or _THAT_DAY.search(text)):
            covered = Days(spoken_of, spoken_of)
    if hour is not None:
        spans.append(hour.span)
        if not hour.clock.part and (part := clocks.PART.search(rest)):
            spans.append(Span(*part.span()))
    if covered is None and hour is None:
        return None
    if named and hour is not None and A_WEEKDAY.fullmatch(text[spans[0].start : spans[0].end]):
        covered = _ahead(named[0].days, hour.clock, now)
    return When(covered, hour.clock if hour else None, None, tuple(spans), hour.span if hour else None)


def _ahead(named: Days, clock: Clock, now: datetime) -> Days:
    """The weekday of next week, where it is today and its time is over."""
    over = clock.end if clock.part and clock.end else clock.start
    if named.first != now.date() or over >= now.time():
        return named
    return Days(*(day + timedelta(days=7) for day in named))


def _whole(text: str, now: datetime) -> When | None:
    if match := _STAMP.search(text):
        try:
            moment = datetime.fromisoformat(match.group().upper().replace(" ", "T"))
        except ValueError:
            return None
        zoned = moment.tzinfo is not None
        moment = moment if zoned else moment.replace(tzinfo=now.tzinfo)
        span = Span(*match.span())
        return When(None, None, moment, (span,), span, zoned=zoned)
    if match := _SOON.search(text):
        amount = 1.0 if match.group(1).lower() in ("a", "an") else number(match.group(1))
        unit = 60 if match.group(2).lower().startswith("minute") else 3600
        span = Span(*match.span())
        soon = timedelta(seconds=min(amount * unit, _LONGEST))
        return When(None, None, now + soon, (span,), span)
    return None


def _counted_on(text: str, spoken_of: date) -> tuple[Days | None, list[Span]]:
    for pattern, step in ((_NEXT_DAY, 1), (_DAY_BEFORE, -1)):
        if match := pattern.search(text):
            day = spoken_of + timedelta(days=step)
            return Days(day, day), [Span(*match.span())]
    return None, []

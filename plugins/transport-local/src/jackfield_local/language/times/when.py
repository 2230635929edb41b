"""A time as it was said: some days, a clock, or a moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from jackfield_local.language.spans import Span

_LAST = time(23, 59, 59)


class Days(NamedTuple):
    """The first and the last day."""

    first: date
    last: date


class Clock(NamedTuple):
    """A time of day, or from one to another."""

    start: time
    end: time | None = None
    part: bool = False
    """Whether it is a part of the day, such as the afternoon, rather than hours that were named."""


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
    """Whether the moment carries its own offset."""

    @property
    def exact(self) -> bool:
        """Whether an hour was named, rather than a day or a part of it."""
        return self.moment is not None or (self.clock is not None and not self.clock.part)

    def starts(self, today: date, zone: tzinfo) -> datetime:
        """The moment at which it begins."""
        if self.moment is not None:
            return self.moment
        first = self.days.first if self.days else today
        return datetime.combine(first, self.clock.start if self.clock else time(), zone)

    def ends(self, today: date, zone: tzinfo) -> datetime | None:
        """The moment at which it ends, when it says so."""
        if self.moment is not None:
            return None
        last = self.days.last if self.days else today
        if self.clock is None:
            return datetime.combine(last, _LAST, zone)
        if self.clock.end is None:
            return None
        end = datetime.combine(last, self.clock.end, zone)
        return end + timedelta(days=1) if self.clock.end <= self.clock.start else end

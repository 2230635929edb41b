"""Occurrences as an answer: cut to what was asked, and without details no more than busy or free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC

from jackfield_capability_types.calendar import Busy

from jackfield_calendar.backend import Span, Taken


def times(calendar: str, taken: Iterable[Taken], span: Span, *, details: bool) -> list[Busy]:
    """What is taken within a span, by start."""
    inside = sorted(_cut(calendar, taken, span, details=details), key=lambda busy: (busy.start, busy.end))
    return inside if details else list(_merged(inside))


def _cut(calendar: str, taken: Iterable[Taken], span: Span, *, details: bool) -> Iterator[Busy]:
    first, last = span.start.astimezone(UTC), span.end.astimezone(UTC)
    for each in taken:
        start, end = max(each.start, first), min(each.end, last)
        if start < end:
            shown = details and not each.private
            yield Busy(
                start,
                end,
                calendar,
                all_day=each.all_day,
                title=each.title if shown else None,
                attendees=each.attendees if shown else None,
            )


def _merged(busy: Iterable[Busy]) -> Iterator[Busy]:
    """What overlaps or touches as one: how many events there are is nobody's business either."""
    open_one: Busy | None = None
    for each in busy:
        if open_one is None or each.start > open_one.end:
            if open_one is not None:
                yield open_one
            open_one = each
        else:
            end = max(open_one.end, each.end)
            open_one = replace(open_one, end=end, all_day=open_one.all_day and each.all_day)
    if open_one is not None:
        yield open_one

"""The free time between busy times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple


class Slot(NamedTuple):
    """A time range."""

    start: datetime
    end: datetime

    @property
    def minutes(self) -> int:
        """Its length in minutes; a day up to its last second counts as a whole day."""
        return round((self.end - self.start) / timedelta(minutes=1))


def free_slots(span: Slot, busy: Iterable[Slot], shortest: timedelta) -> Iterator[Slot]:
    """Yield the free ranges of at least the given length, in order; busy times may come in any order."""
    free_from = span.start
    for each in sorted(busy):
        if each.start - free_from >= shortest:
            yield Slot(free_from, each.start)
        free_from = max(free_from, each.end)
    if span.end - free_from >= shortest:
        yield Slot(free_from, span.end)

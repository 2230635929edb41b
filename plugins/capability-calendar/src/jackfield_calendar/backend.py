"""The interface of a calendar backend, with the events it reads and writes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A range between two times with zones; the end is excluded."""

    start: datetime
    end: datetime

    def overlaps(self, start: datetime, end: datetime) -> bool:
        """Return whether another range overlaps this one; ranges that only touch do not."""
        return start < self.end and self.start < end


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence of an event that blocks time, in UTC."""

    start: datetime
    end: datetime
    uid: str | None = None
    all_day: bool = False
    private: bool = False
    title: str | None = None
    attendees: int | None = None


@dataclass(frozen=True, slots=True)
class OccurrenceList:
    """The occurrences in a time range, and the number of events that could not be read."""

    taken: Sequence[Occurrence] = ()
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to write; its times are in the zone it is written in."""

    uid: str
    title: str
    start: datetime
    end: datetime
    attendees: tuple[str, ...] = ()
    description: str = ""
    organizer: str | None = None
    meeting_url: str | None = None
    """The meeting link of the event."""

    ask_for_meeting: bool = False
    """True if the calendar server should create the meeting link."""

    @property
    def span(self) -> TimeRange:
        """The time range of the event."""
        return TimeRange(self.start, self.end)


@dataclass(frozen=True, slots=True)
class BookedEvent:
    """An event as it is stored in the calendar."""

    uid: str
    start: datetime
    end: datetime
    meeting_url: str | None = None
    invited: tuple[str, ...] = field(default=())
    existed: bool = False
    unreadable: int = 0


class Backend(Protocol):
    """One calendar. Failures are raised as `ToolError` with a message for the model."""

    makes_meetings: bool
    """True if the server creates meeting links itself."""

    async def taken(self, span: TimeRange, *, details: bool) -> OccurrenceList:
        """Return the occurrences in a time range; titles and attendees are needed only with `details`."""

    async def book(self, event: NewEvent) -> BookedEvent:
        """Write an event if its time is free; an existing event with its UID is left unchanged."""

    async def close(self) -> None:
        """Close the connections."""


def clash(event: NewEvent, taken: Iterable[Occurrence]) -> Occurrence | None:
    """Return the first other occurrence that overlaps an event."""
    others = (each for each in taken if each.uid != event.uid and event.span.overlaps(each.start, each.end))
    return min(others, key=lambda each: each.start, default=None)


_log = logging.getLogger("jackfield_calendar")

_MOST = 1000


class DeduplicatedWarnings:
    """Logs each unreadable event once per cause, not with every query."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def log(self, where: str, cause: str) -> None:
        """Log a warning, unless the same one was logged before."""
        if (where, cause) in self._said:
            return
        if len(self._said) >= _MOST:
            self._said.clear()
        self._said.add((where, cause))
        _log.warning("%s cannot be read, so its time counts as free: %s", where, cause)

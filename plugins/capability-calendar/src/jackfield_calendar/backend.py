"""The interface of a calendar backend, with the events it reads and writes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From one moment up to another, both with their zone."""

    start: datetime
    end: datetime

    def overlaps(self, start: datetime, end: datetime) -> bool:
        """Whether something else takes any of this time; what only touches it does not."""
        return start < self.end and self.start < end


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence of an event that takes time, in UTC."""

    start: datetime
    end: datetime
    uid: str | None = None
    all_day: bool = False
    private: bool = False
    title: str | None = None
    attendees: int | None = None


@dataclass(frozen=True, slots=True)
class OccurrenceList:
    """What a calendar holds in a span, and how many of its events could not be read."""

    taken: Sequence[Occurrence] = ()
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event that is to be written; its times are in the zone it is written in."""

    uid: str
    title: str
    start: datetime
    end: datetime
    attendees: tuple[str, ...] = ()
    description: str = ""
    organizer: str | None = None
    meeting_url: str | None = None
    """The link that goes into the event."""

    ask_for_meeting: bool = False
    """Whether the calendar's own server is to make the link."""

    @property
    def span(self) -> TimeRange:
        """The time it takes."""
        return TimeRange(self.start, self.end)


@dataclass(frozen=True, slots=True)
class BookedEvent:
    """An event as it stands in the calendar now."""

    uid: str
    start: datetime
    end: datetime
    meeting_url: str | None = None
    invited: tuple[str, ...] = field(default=())
    existed: bool = False
    unreadable: int = 0


class Backend(Protocol):
    """One calendar, wherever it lies. What fails is a `ToolError` that says so to the model."""

    makes_meetings: bool
    """Whether its server makes links to video calls itself."""

    async def taken(self, span: TimeRange, *, details: bool) -> OccurrenceList:
        """Everything that takes time in a span; titles and attendees may be left out without details."""

    async def book(self, event: NewEvent) -> BookedEvent:
        """Write an event whose time is free; one with its UID that is there already stays as it is."""

    async def close(self) -> None:
        """Let go of connections."""


def clash(event: NewEvent, taken: Iterable[Occurrence]) -> Occurrence | None:
    """The first that takes some of the time of an event, itself excepted."""
    others = (each for each in taken if each.uid != event.uid and event.span.overlaps(each.start, each.end))
    return min(others, key=lambda each: each.start, default=None)


_log = logging.getLogger("jackfield_calendar")

_MOST = 1000


class WarningLog:
    """Remembers what has been said."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def log(self, where: str, cause: str) -> None:
        """Warn of something that cannot be read, unless that was said before."""
        if (where, cause) in self._said:
            return
        if len(self._said) >= _MOST:
            self._said.clear()
        self._said.add((where, cause))
        _log.warning("%s cannot be read, and counts as no time taken: %s", where, cause)

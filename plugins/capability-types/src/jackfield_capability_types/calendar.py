"""`ctx.calendar`: busy times, and new events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from jackfield.contract.context import SessionView

CALENDARS = ("primary", "team", "personal")
"""The calendar names that tools use; the deployment configures the calendar behind each name."""

MAX_DAYS = 31
"""The longest range of one query."""


@dataclass(frozen=True, slots=True)
class Busy:
    """A busy time. Details are set only if they were requested."""

    start: datetime
    end: datetime
    calendar: str
    all_day: bool = False
    title: str | None = None
    attendees: int | None = None


@dataclass(frozen=True, slots=True)
class Agenda:
    """Busy times sorted by start, and notices about events that could not be read."""

    busy: tuple[Busy, ...]
    notices: tuple[str, ...] = ()
    """What could not be read, in sentences; if there is a notice, a time that looks free may be busy."""


@dataclass(frozen=True, slots=True)
class EventDraft:
    """An event to write; its times have a zone."""

    title: str
    start: datetime
    end: datetime
    calendar: str = "primary"
    attendees: tuple[str, ...] = ()
    description: str = ""
    meeting_link: bool = False
    """True if the event gets a meeting link from the configured provider."""


@dataclass(frozen=True, slots=True)
class CreatedEvent:
    """An event as it is stored in the calendar."""

    uid: str
    calendar: str
    start: datetime
    end: datetime
    meeting_url: str | None = None
    invited: tuple[str, ...] = ()
    """The attendees that the calendar server invites; empty if it sends no invitations."""

    existed: bool = False
    """True if the same event already existed, so that nothing was written."""

    notices: tuple[str, ...] = ()
    """What could not be read when the time was checked, in sentences."""


class CalendarView(Protocol):
    """The calendars of one session."""

    @property
    def names(self) -> Sequence[str]:
        """The configured calendars of this user, out of `CALENDARS`."""

    @property
    def zone(self) -> str:
        """The default IANA time zone."""

    @property
    def has_meeting_links(self) -> bool:
        """True if a provider of meeting links is configured."""

    async def busy(
        self, calendars: Sequence[str], start: datetime, end: datetime, *, details: bool = False
    ) -> Agenda:
        """Return the busy times between two times; recurring events are expanded.

        Cancelled and transparent events are not busy. Times are cut to the range. Without details,
        overlapping events in a calendar are merged; with details, every event is separate, and a private
        event still shows only its time. Raises `PERMANENT` for a calendar that is not configured.
        """

    async def create(self, draft: EventDraft) -> CreatedEvent:
        """Write an event; raises `CONFLICT` if its time is not free.

        The UID is derived from the content, so the same draft is written only once.
        """


class Calendar(Protocol):
    """The capability `calendar`."""

    def for_session(self, session: SessionView) -> CalendarView:
        """Return the view that handlers of this session use."""

    async def close(self) -> None:
        """Close files and connections."""

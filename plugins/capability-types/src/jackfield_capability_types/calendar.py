"""`ctx.calendar`: when people are busy, and events that are really written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from jackfield.contract.context import SessionView

CALENDARS = ("primary", "team", "personal")
"""The names by which tools know calendars; a deployment says what each of them is."""

MAX_DAYS = 31
"""The longest range that is asked for at once."""


@dataclass(frozen=True, slots=True)
class Busy:
    """A time that is taken. Details are there only when they were asked for."""

    start: datetime
    end: datetime
    calendar: str
    all_day: bool = False
    title: str | None = None
    attendees: int | None = None


@dataclass(frozen=True, slots=True)
class Agenda:
    """What is taken, by start, and whether that is all."""

    busy: tuple[Busy, ...]
    notices: tuple[str, ...] = ()
    """What could not be read, in sentences; with one of them a time that looks free may be taken."""


@dataclass(frozen=True, slots=True)
class EventDraft:
    """An event to be written; times carry their zone."""

    title: str
    start: datetime
    end: datetime
    calendar: str = "primary"
    attendees: tuple[str, ...] = ()
    description: str = ""
    meeting_link: bool = False
    """Whether a link to a video call is wanted, from the provider the deployment configured."""


@dataclass(frozen=True, slots=True)
class CreatedEvent:
    """An event as it stands in the calendar now."""

    uid: str
    calendar: str
    start: datetime
    end: datetime
    meeting_url: str | None = None
    invited: tuple[str, ...] = ()
    """Whom the calendar's server invites; empty where it sends nothing."""

    existed: bool = False
    """Whether this very event had been written before, so that nothing was written now."""

    notices: tuple[str, ...] = ()
    """What could not be read when the time was checked, in sentences."""


class CalendarView(Protocol):
    """The calendars as one session may use them."""

    @property
    def names(self) -> Sequence[str]:
        """The calendars that are set up for this user, of `CALENDARS`."""

    @property
    def zone(self) -> str:
        """The IANA zone in which times are told when nobody asks for another."""

    @property
    def has_meeting_links(self) -> bool:
        """Whether a provider of meeting links is configured."""

    async def busy(
        self, calendars: Sequence[str], start: datetime, end: datetime, *, details: bool = False
    ) -> Agenda:
        """What is taken between two moments; recurring events as their occurrences.

        Cancelled and transparent events take no time. What reaches beyond the range is cut to it. Without
        details what overlaps in a calendar is one time; with them every event stands alone, and of a private
        one still nothing but its time. `PERMANENT` for a calendar that is not set up.
        """

    async def create(self, draft: EventDraft) -> CreatedEvent:
        """Write an event; `CONFLICT` when its time is no longer free.

        The same draft again is the same event: its UID is made of its content, so nothing is written twice.
        """


class Calendar(Protocol):
    """What a plugin provides under the name `calendar`."""

    def for_session(self, session: SessionView) -> CalendarView:
        """Return the view that handlers of this session use."""

    async def close(self) -> None:
        """Let go of files and connections."""

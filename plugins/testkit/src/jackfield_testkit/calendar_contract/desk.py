"""Where a standard test works: a calendar filled for it, as one user sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from jackfield_capability_types.calendar import Busy, Calendar, CalendarView, EventDraft

from jackfield_testkit.calendar_contract.objects import ZONE
from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.trials import patiently

Filled = Callable[[Path, Sequence[str]], Awaitable[Calendar]]


class Desk:
    """Makes calendars for one test."""

    def __init__(self, filled: Filled, place: Path) -> None:
        self._filled = filled
        self._place = place

    @asynccontextmanager
    async def calendar(self, *objects: str, user: str | None = "ada") -> AsyncIterator[CalendarView]:
        """The view of a user of a calendar that holds these objects."""
        async with self.shared(*objects) as view_of:
            yield view_of(user)

    @asynccontextmanager
    async def shared(self, *objects: str) -> AsyncIterator[Callable[[str | None], CalendarView]]:
        """One calendar for several users."""
        made = await self._filled(self._place, objects)
        try:
            yield lambda user: made.for_session(ToolTestContext("text", user=user).session)
        finally:
            await made.close()


on_a_loop = patiently("the calendar", 60)


def at(text: str) -> datetime:
    """A local time of the calendar's zone, `2027-03-01 10:00`."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(ZONE))


def shown(busy: Sequence[Busy]) -> list[str]:
    """Busy times as they are compared and printed, in the calendar's zone."""
    for each in busy:
        holds(each.start.tzinfo and each.end.tzinfo, f"a time without a zone: {each}")
    return [f"{_local(each.start)} - {_local(each.end)}" for each in busy]


def _local(moment: datetime) -> str:
    return f"{moment.astimezone(ZoneInfo(ZONE)):%Y-%m-%d %H:%M}"


async def taken(view: CalendarView, start: str, end: str, *, details: bool = False) -> list[str]:
    """What is taken in the primary calendar between two local times."""
    agenda = await view.busy(["primary"], at(start), at(end), details=details)
    same(list(agenda.notices), [], "notices about a calendar that can be read")
    return shown(agenda.busy)


def draft(start: str, end: str, **said: Any) -> EventDraft:
    """An event to be created."""
    return EventDraft(**{"title": "Fitting", "start": at(start), "end": at(end), **said})

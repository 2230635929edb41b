"""Where a standard test works: a calendar filled for it, as one user sees it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from jackfield import ErrorType, ToolError
from jackfield_capability_types.calendar import Busy, Calendar, CalendarView, EventDraft

from jackfield_testkit.calendar_contract.objects import ZONE
from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.store_contract.verdict import give_up, holds, same

Filled = Callable[[Path, Sequence[str]], Awaitable[Calendar]]

_PATIENCE = 60.0


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


def on_a_loop(test: Callable[[Any, Desk], Awaitable[None]]) -> Callable[[Any, Desk], None]:
    """Run a test that awaits, and end it when the calendar makes it wait for ever."""

    @functools.wraps(test)
    def run(self: Any, desk: Desk) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(_PATIENCE):
                await test(self, desk)

        try:
            asyncio.run(bounded())
        except TimeoutError:
            give_up(f"the calendar did not answer within {_PATIENCE:.0f} s")

    return run


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


async def refused(work: Awaitable[Any], expected: ErrorType, what: str) -> ToolError:
    """The error with which something has to fail."""
    found: ToolError | None = None
    try:
        await work
    except ToolError as error:
        found = error
    if found is None:
        give_up(f"{what} has to fail with {expected}, and it did not")
    same(found.type, expected, f"the type of failure of {what}")
    holds(found.message, f"{what} failed without a sentence")
    return found

"""The calendars of one session: busy times and new events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from jackfield import ErrorType, ToolError
from jackfield_capability_types.calendar import Agenda, Busy, CreatedEvent, EventDraft

from jackfield_calendar import tool_errors
from jackfield_calendar.backend import Backend, Occurrence, OccurrenceList, TimeRange
from jackfield_calendar.drafts import prepared
from jackfield_calendar.settings import CalendarCapabilitySettings, CalendarConfiguration

_LONGEST = 200


def encoded(user: str) -> str | None:
    """Encode a user name as one path segment, unique per user; None if that is not possible."""
    try:
        segment = quote(user, safe="@")
    except UnicodeEncodeError:
        return None
    # A name of dots would lead to a parent directory, even if encoded, because URLs are decoded.
    if not user.strip(".") or len(segment) > _LONGEST:
        return None
    return f"%2E{segment[1:]}" if segment.startswith(".") else segment


def filled(
    options: Mapping[str, Any], user: str | None, *, raw: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Replace `{user}` in the options of a calendar; options in `raw` get the name without encoding."""
    segment = encoded(user) if user else None

    def fill(key: str, value: Any) -> Any:
        if not isinstance(value, str) or "{user}" not in value:
            return value
        if user is None or segment is None:
            raise LookupError(key)
        return value.replace("{user}", user if key in raw else segment)

    return {key: fill(key, value) for key, value in options.items()}


def times(calendar: str, taken: Iterable[Occurrence], span: TimeRange, *, details: bool) -> list[Busy]:
    """Cut occurrences to a range and sort them; without details, adjacent ones are merged."""
    inside = sorted(_cut(calendar, taken, span, details=details), key=lambda busy: (busy.start, busy.end))
    return inside if details else list(_merged(inside))


def _cut(calendar: str, taken: Iterable[Occurrence], span: TimeRange, *, details: bool) -> Iterator[Busy]:
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
    """Merge busy times that overlap or touch, so that the number of events stays private."""
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


class SessionCalendars:
    """The implementation of `ctx.calendar`: the calendars that are configured for one user."""

    def __init__(
        self,
        settings: CalendarCapabilitySettings,
        user: str | None,
        calendars: Mapping[str, CalendarConfiguration],
        backend: Callable[[str, str | None], Awaitable[Backend]],
    ) -> None:
        self._zone = settings.zone
        self._meetings = settings.meetings
        self._user = user
        self._calendars = calendars
        self._backend = backend

    @property
    def names(self) -> Sequence[str]:
        """The names of the calendars that are configured for this user."""
        return tuple(self._calendars)

    @property
    def zone(self) -> str:
        """The default time zone."""
        return self._zone.key

    @property
    def has_meeting_links(self) -> bool:
        """True if meeting links are configured for a calendar of this user."""
        if self._meetings.google_meet:
            return any(calendar.backend == "google" for calendar in self._calendars.values())
        return self._meetings.template is not None

    async def busy(
        self, calendars: Sequence[str], start: datetime, end: datetime, *, details: bool = False
    ) -> Agenda:
        """Return the busy times of some calendars between two times."""
        span = TimeRange(start, end)
        wanted = list(dict.fromkeys(calendars))
        backends = [await self._find(name) for name in wanted]
        asked = (backend.taken(span, details=details) for backend in backends)
        found: list[OccurrenceList] = []
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            found.append(answer)
        each = zip(wanted, found, strict=True)
        busy = [one for name, answer in each for one in times(name, answer.taken, span, details=details)]
        notices = [_notice(name, answer.unreadable) for name, answer in zip(wanted, found, strict=True)]
        return Agenda(tuple(sorted(busy, key=lambda one: (one.start, one.end))), tuple(filter(None, notices)))

    async def create(self, draft: EventDraft) -> CreatedEvent:
        """Write an event if its time is free."""
        backend = await self._find(draft.calendar)
        calendar = self._calendars[draft.calendar]
        if draft.meeting_link:
            self._check_meetings(backend, draft.calendar)
        organizer = filled({"organizer": calendar.organizer}, self._user, raw=frozenset({"organizer"}))[
            "organizer"
        ]
        event = prepared(
            draft,
            user=self._user,
            zone=calendar.zone,
            organizer=organizer,
            template=self._meetings.template,
        )
        booked = await backend.book(event)
        notice = _notice(draft.calendar, booked.unreadable)
        return CreatedEvent(
            uid=booked.uid,
            calendar=draft.calendar,
            start=booked.start,
            end=booked.end,
            meeting_url=booked.meeting_url,
            invited=booked.invited,
            existed=booked.existed,
            notices=(notice,) if notice else (),
        )

    async def _find(self, name: str) -> Backend:
        if name not in self._calendars:
            raise tool_errors.not_set_up(name, list(self._calendars))
        return await self._backend(name, self._user)

    def _check_meetings(self, backend: Backend, calendar: str) -> None:
        if self._meetings.template is None and not (self._meetings.google_meet and backend.makes_meetings):
            raise ToolError(
                ErrorType.PERMANENT,
                f"No meeting links are configured for the {calendar} calendar.",
                suggestion="Create it without one, or ask the user for a link to put in the description.",
            )


def _notice(calendar: str, unreadable: int) -> str | None:
    # File names and causes go to the log, not to the model.
    if not unreadable:
        return None
    entries = "1 entry" if unreadable == 1 else f"{unreadable} entries"
    return f"{entries} of the {calendar} calendar could not be read, so a time that looks free may be taken."

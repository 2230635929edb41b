"""CalDAV backend (RFC 4791); servers with scheduling (RFC 6638) send the invitations."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from math import ceil
from typing import Any

from caldav.async_davclient import AsyncDAVClient
from caldav.lib.error import (
    UID_CONFLICT_PRECONDITIONS,
    AuthorizationError,
    DAVError,
    RateLimitError,
    parse_preconditions,
)
from caldav.response import CalendarQueryResult
from icalendar import Event

from jackfield_calendar import tool_errors
from jackfield_calendar.backend import (
    BookedEvent,
    DeduplicatedWarnings,
    NewEvent,
    Occurrence,
    OccurrenceList,
    TimeRange,
    clash,
)
from jackfield_calendar.ical.occurrences import Occurrences, Zones
from jackfield_calendar.ical.parser import read
from jackfield_calendar.ical.serializer import booked_event, cancelled, next_sequence, write

TIMEOUT_SECONDS = 5.0
"""Default time limit of a request."""

_MARGIN = timedelta(days=1)
"""Added at both ends of a query: servers place all-day events and floating times in their own zone."""

_NO_SERVER = "the server is not a CalDAV server"
_MULTISTATUS = "{DAV:}multistatus"
_CALENDAR_TEXT = {"Content-Type": "text/calendar; charset=utf-8"}


class CalDavCalendar:
    """One collection of a CalDAV server."""

    makes_meetings = False

    def __init__(
        self, name: str, options: Mapping[str, Any], environ: Mapping[str, str], zones: Zones
    ) -> None:
        self._name = name
        self._url = options["url"].rstrip("/") + "/"
        self._zones = zones
        self._seconds = float(options.get("timeout_seconds", TIMEOUT_SECONDS))
        self._client = AsyncDAVClient(
            url=self._url,
            username=options.get("user"),
            password=environ.get(options.get("password_env", "")),
            timeout=ceil(self._seconds),
            enable_rfc6764=False,
            rate_limit_handle=False,
        )
        self._notices = DeduplicatedWarnings()
        self._schedules: bool | None = None
        # CalDAV cannot check and book atomically; the lock excludes other bookings of this process.
        self._booking = asyncio.Lock()

    async def taken(self, span: TimeRange, *, details: bool) -> OccurrenceList:  # noqa: ARG002 - the query always returns them
        """Return the occurrences in a time range; the server filters, recurrences are expanded here."""
        start, end = span.start - _MARGIN, span.end + _MARGIN
        async with self._request(writing=False):
            answer = await self._client.calendar_query(self._url, start=start, end=end, event=True)
        self._check(answer.status, writing=False)
        if answer.status != 207 or answer.tree is None or answer.tree.tag != _MULTISTATUS:
            # For example the login page of a hotel network, which must not look like an empty calendar.
            raise tool_errors.unreachable(self._name, _NO_SERVER, writing=False)
        results = [each for each in answer.results or () if isinstance(each, CalendarQueryResult)]
        # A result without data counts as unreadable: the server withholds or truncates it.
        texts = [(each.href, each.calendar_data or "") for each in results]
        return await asyncio.to_thread(self._unroll, texts, span)

    def _unroll(self, texts: list[tuple[str, str]], span: TimeRange) -> OccurrenceList:
        taken: list[Occurrence] = []
        unreadable = 0
        for where, text in texts:
            found = Occurrences(read(text), self._zones).within(span)
            taken += found.taken
            unreadable += len(found.faults)
            for fault in found.faults:
                self._notices.log(f"{self._name} calendar, {where}", fault)
        return OccurrenceList(taken, unreadable)

    async def book(self, event: NewEvent) -> BookedEvent:
        """Write an event if its time is free; the server rejects a UID that exists."""
        async with self._booking:
            found = await self.taken(event.span, details=False)
            known = any(each.uid == event.uid for each in found.taken)
            if not known and (taken := clash(event, found.taken)):
                zone = event.start.tzinfo
                raise tool_errors.conflict(taken.start.astimezone(zone), taken.end.astimezone(zone))
            invites = bool(event.attendees and event.organizer) and await self._invites()
            before = await self._put(event, {"If-None-Match": "*"})
        if before is not None:
            return before
        return BookedEvent(
            event.uid,
            event.start,
            event.end,
            event.meeting_url,
            invited=event.attendees if invites else (),
            unreadable=found.unreadable,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _put(
        self, event: NewEvent, condition: Mapping[str, str], sequence: int = 0
    ) -> BookedEvent | None:
        """Write under a condition; return the existing event if the condition fails."""
        url = self._place(event.uid)
        text = write(event, sequence=sequence).decode()
        try:
            async with self._request(writing=True):
                answer = await self._client.put(url, text, {**_CALENDAR_TEXT, **condition})
            status, preconditions = answer.status, parse_preconditions(answer.raw)
        except AuthorizationError as error:
            # Some servers answer 403 if the UID exists.
            if not UID_CONFLICT_PRECONDITIONS & set(error.preconditions):
                raise tool_errors.refused(self._name) from None
            status, preconditions = 409, error.preconditions
        if status == 412 or UID_CONFLICT_PRECONDITIONS & set(preconditions):
            return await self._already_there(event)
        self._check(status, writing=True)
        if status not in (201, 204) and not await self._read(event.uid):
            # For example after a redirect to a login page; nothing was written.
            raise tool_errors.unreachable(self._name, _NO_SERVER, writing=True)
        return None

    async def _already_there(self, event: NewEvent) -> BookedEvent | None:
        written = await self._read(event.uid)
        if written is None:
            # The event exists under another name or is not readable, so its current times are not known.
            return BookedEvent(event.uid, event.start, event.end, existed=True)
        found, etag = written
        if cancelled(found) and etag:
            return await self._put(event, {"If-Match": etag}, next_sequence(found))
        return booked_event(found, self._zones)

    async def _read(self, uid: str) -> tuple[Event, str | None] | None:
        """Return the event stored under a UID, and its ETag."""
        async with self._request(writing=False):
            answer = await self._client.request(self._place(uid), "GET")
        found = read(answer.raw or "").find(uid) if answer.status == 200 else None
        return None if found is None else (found, answer.headers.get("ETag"))

    async def _invites(self) -> bool:
        """Return whether the server sends invitations; cached after the first request."""
        if self._schedules is None:
            async with self._request(writing=False):
                answer = await self._client.options(self._url)
            said = [each.strip() for each in answer.headers.get("DAV", "").split(",")]
            self._schedules = "calendar-auto-schedule" in said
        return self._schedules

    def _place(self, uid: str) -> str:
        return f"{self._url}{hashlib.sha256(uid.encode()).hexdigest()[:40]}.ics"

    def _check(self, status: int, *, writing: bool) -> None:
        if status in (404, 410):
            raise tool_errors.missing(self._name)
        if not 200 <= status < 300:
            raise tool_errors.unexpected(self._name, status, writing=writing)

    @asynccontextmanager
    async def _request(self, *, writing: bool) -> AsyncIterator[None]:
        """Limit the time of one request, and turn failures into tool errors."""
        try:
            # The client's timeout applies to each read, so a slow stream would never reach it.
            async with asyncio.timeout(self._seconds):
                yield
        except TimeoutError:
            how = f"its server did not answer within {self._seconds:g} s"
            raise tool_errors.unreachable(self._name, how, writing=writing) from None
        except RateLimitError as error:
            raise tool_errors.limited(self._name, error.retry_after_seconds) from None
        except AuthorizationError:
            if writing:
                raise
            raise tool_errors.refused(self._name) from None
        except DAVError as error:
            raise tool_errors.unexpected(self._name, error.status or 502, writing=writing) from None
        except SyntaxError:
            # The library raises this for invalid XML.
            raise tool_errors.unreachable(self._name, _NO_SERVER, writing=writing) from None
        except OSError as error:
            # All connection errors and timeouts of the library are subclasses.
            how = f"the connection to its server failed ({type(error).__name__})"
            raise tool_errors.unreachable(self._name, how, writing=writing) from None

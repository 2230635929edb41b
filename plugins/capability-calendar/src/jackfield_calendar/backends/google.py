"""Google Calendar, through its REST API, version 3."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import httpx
from jackfield.datetimes import find_zone

from jackfield_calendar import tool_errors
from jackfield_calendar.backend import BookedEvent, NewEvent, Occurrence, OccurrenceList, TimeRange, clash
from jackfield_calendar.backends.google_auth import GoogleTokens
from jackfield_calendar.zones import moment

_LONGEST_TITLE = 200


def event_id(uid: str) -> str:
    """Derive a Google event id from a UID, so that a second write of the same event is detected."""
    return base64.b32hexencode(hashlib.sha256(uid.encode()).digest()).decode().rstrip("=").lower()


def stamp(value: datetime) -> str:
    """Format a time for the API."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def to_wire(event: NewEvent) -> dict[str, Any]:
    """Serialize a new event; the account of the credentials is the organizer."""
    wire: dict[str, Any] = {
        "id": event_id(event.uid),
        "summary": event.title,
        "status": "confirmed",
        "start": _time(event.start),
        "end": _time(event.end),
    }
    if event.description:
        wire["description"] = event.description
    if event.attendees:
        wire["attendees"] = [{"email": address} for address in event.attendees]
    if event.meeting_url:
        wire["location"] = event.meeting_url
    if event.ask_for_meeting:
        wanted = {"type": "hangoutsMeet"}
        wire["conferenceData"] = {
            "createRequest": {"requestId": event_id(event.uid), "conferenceSolutionKey": wanted}
        }
    return wire


def _time(value: datetime) -> dict[str, str]:
    zone = value.tzinfo.key if isinstance(value.tzinfo, ZoneInfo) else "UTC"
    return {"dateTime": value.isoformat(), "timeZone": zone}


def busy(interval: Mapping[str, Any]) -> Occurrence:
    """Parse one interval of a free/busy response."""
    return Occurrence(datetime.fromisoformat(interval["start"]), datetime.fromisoformat(interval["end"]))


def taken(item: Mapping[str, Any], calendar_zone: str) -> Occurrence | None:
    """Parse one event of a list; None if it blocks no time."""
    attendees = item.get("attendees", ())
    declined = any(each.get("self") and each.get("responseStatus") == "declined" for each in attendees)
    if item.get("status") == "cancelled" or item.get("transparency") == "transparent" or declined:
        return None
    start, all_day = _moment(item["start"], calendar_zone)
    end, _ = _moment(item["end"], calendar_zone)
    if start >= end:
        return None
    return Occurrence(
        start,
        end,
        uid=item.get("id"),
        all_day=all_day,
        private=item.get("visibility", "default") not in ("default", "public"),
        title=str(item.get("summary", ""))[:_LONGEST_TITLE] or None,
        attendees=len(attendees),
    )


def _moment(said: Mapping[str, str], calendar_zone: str) -> tuple[datetime, bool]:
    zone = find_zone(calendar_zone)
    if "date" in said:
        return moment(date.fromisoformat(said["date"]), days_in=zone, floating_in=zone), True
    return moment(datetime.fromisoformat(said["dateTime"]), days_in=zone, floating_in=zone), False


def booked_event(item: Mapping[str, Any], event: NewEvent, *, existed: bool) -> BookedEvent:
    """Parse an event as Google stored it."""
    start, _ = _moment(item["start"], "UTC")
    end, _ = _moment(item["end"], "UTC")
    return BookedEvent(
        uid=str(item.get("iCalUID", event.uid)),
        start=start,
        end=end,
        meeting_url=link(item) or (item.get("location") if event.meeting_url else None),
        invited=() if existed else event.attendees,
        existed=existed,
    )


def link(item: Mapping[str, Any]) -> str | None:
    """Return the meeting link, once Google has created it."""
    entries = item.get("conferenceData", {}).get("entryPoints", ())
    video = (each.get("uri") for each in entries if each.get("entryPointType") == "video")
    found = item.get("hangoutLink") or next(video, None)
    return None if found is None else str(found)


API_URL = "https://www.googleapis.com/calendar/v3"
TIMEOUT_SECONDS = 5.0
"""Default time limit of a request."""

_MOST_PAGES = 20
_QUOTA = {"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded"}


class GoogleCalendar:
    """One calendar of a Google account."""

    def __init__(
        self, name: str, options: Mapping[str, Any], environ: Mapping[str, str], *, meet: bool
    ) -> None:
        self.makes_meetings = meet
        self._name = name
        self._id = options["calendar_id"]
        self._seconds = float(options.get("timeout_seconds", TIMEOUT_SECONDS))
        self._tokens = GoogleTokens(name, options, environ, self._seconds)
        base = options.get("api_url", API_URL).rstrip("/")
        self._client = httpx.AsyncClient(base_url=base, timeout=self._seconds)
        self._events = f"/calendars/{quote(self._id, safe='')}/events"
        # Google cannot check and book atomically; the lock excludes other bookings of this process.
        self._booking = asyncio.Lock()

    async def taken(self, span: TimeRange, *, details: bool) -> OccurrenceList:
        """Return the occurrences in a time range; without details by a free/busy query."""
        return await (self._listed(span) if details else self._free_busy(span))

    async def _free_busy(self, span: TimeRange) -> OccurrenceList:
        asked = {
            "timeMin": stamp(span.start),
            "timeMax": stamp(span.end),
            "items": [{"id": self._id}],
        }
        answer = await self._ask("POST", "/freeBusy", json=asked)
        said = answer.get("calendars", {}).get(self._id, {})
        if said.get("errors") or "busy" not in said:
            raise tool_errors.missing(self._name)
        return OccurrenceList([busy(each) for each in said["busy"]])

    async def _listed(self, span: TimeRange) -> OccurrenceList:
        asked: dict[str, Any] = {
            "timeMin": stamp(span.start),
            "timeMax": stamp(span.end),
            "singleEvents": "true",
            "orderBy": "startTime",
            "maxResults": 250,
        }
        found = []
        for _ in range(_MOST_PAGES):
            answer = await self._ask("GET", self._events, params=asked)
            zone = answer.get("timeZone", "UTC")
            found += [one for item in answer.get("items", ()) if (one := taken(item, zone))]
            if "nextPageToken" not in answer:
                break
            asked["pageToken"] = answer["nextPageToken"]
        return OccurrenceList(found)

    async def book(self, event: NewEvent) -> BookedEvent:
        """Write an event if its time is free, under a derived id, so that it is never written twice."""
        place = f"{self._events}/{event_id(event.uid)}"
        async with self._booking:
            before = await self._ask("GET", place, params={}, absent={404, 410})
            if before and before.get("status") != "cancelled":
                return booked_event(before, event, existed=True)
            found = await self._free_busy(event.span)
            if taken := clash(event, found.taken):
                zone = event.start.tzinfo
                raise tool_errors.conflict(taken.start.astimezone(zone), taken.end.astimezone(zone))
            method, where = ("PUT", place) if before else ("POST", self._events)
            params = {"sendUpdates": "all", "conferenceDataVersion": 1}
            written = await self._ask(method, where, params=params, json=to_wire(event), absent={409})
            existed = not written
            if existed or (event.ask_for_meeting and not link(written)):
                # Another process wrote the same event first, or the link is not created yet.
                written = await self._ask("GET", place, params={})
        return booked_event(written, event, existed=existed)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _ask(
        self, method: str, path: str, *, absent: frozenset[int] | set[int] = frozenset(), **said: Any
    ) -> dict[str, Any]:
        """Send one request; return an empty dict for the statuses in `absent`."""
        writing = method in ("POST", "PUT") and path != "/freeBusy"
        bearer = await self._tokens.bearer()
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._client.request(
                    method, path, headers={"Authorization": f"Bearer {bearer}"}, **said
                )
        except (TimeoutError, httpx.TimeoutException):
            how = f"Google did not answer within {self._seconds:g} s"
            raise tool_errors.unreachable(self._name, how, writing=writing) from None
        except httpx.HTTPError as error:
            how = f"the connection to Google failed ({type(error).__name__})"
            raise tool_errors.unreachable(self._name, how, writing=writing) from None
        if answer.status_code in absent:
            return {}
        if not answer.is_success:
            raise self._failure(answer, writing=writing)
        found = _json(answer)
        if found is None:
            raise tool_errors.unexpected(self._name, 502, writing=writing)
        return found

    def _failure(self, answer: httpx.Response, *, writing: bool) -> Exception:
        status = answer.status_code
        said = _json(answer) or {}
        error = said.get("error")
        reasons = (
            {each.get("reason") for each in error.get("errors", ())} if isinstance(error, dict) else set()
        )
        if (
            status == 429
            or (status == 403 and reasons & _QUOTA)
            or (status == 503 and "Retry-After" in answer.headers)
        ):
            return tool_errors.limited(self._name, _seconds(answer.headers.get("Retry-After")))
        if status in (401, 403):
            return tool_errors.refused(self._name)
        if status in (404, 410):
            return tool_errors.missing(self._name)
        return tool_errors.unexpected(self._name, status, writing=writing)


def _json(answer: httpx.Response) -> dict[str, Any] | None:
    try:
        found = answer.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _seconds(said: str | None) -> float | None:
    return float(said) if said is not None and said.isdecimal() else None

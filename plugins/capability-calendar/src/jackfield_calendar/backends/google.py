"""A calendar of Google, by its REST API: free/busy and events as Google has unrolled them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx

from jackfield_calendar import faults
from jackfield_calendar.backend import Booked, Found, NewEvent, Span, clash
from jackfield_calendar.backends import google_wire as wire
from jackfield_calendar.backends.google_tokens import Tokens

API_URL = "https://www.googleapis.com/calendar/v3"
TIMEOUT_SECONDS = 5.0
"""How long a request may take, unless the settings say otherwise."""

_MOST_PAGES = 20
_QUOTA = {"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded"}


class GoogleCalendar:
    """One calendar of one Google account."""

    def __init__(
        self, name: str, options: Mapping[str, Any], environ: Mapping[str, str], *, meet: bool
    ) -> None:
        self.makes_meetings = meet
        self._name = name
        self._id = options["calendar_id"]
        self._seconds = float(options.get("timeout_seconds", TIMEOUT_SECONDS))
        self._tokens = Tokens(name, options, environ, self._seconds)
        base = options.get("api_url", API_URL).rstrip("/")
        self._client = httpx.AsyncClient(base_url=base, timeout=self._seconds)
        self._events = f"/calendars/{quote(self._id, safe='')}/events"
        # Google has no way to book a time that is free: at least nobody in this process comes between.
        self._booking = asyncio.Lock()

    async def taken(self, span: Span, *, details: bool) -> Found:
        """Everything that takes time in a span; without details Google tells us no more than that."""
        return await (self._listed(span) if details else self._free_busy(span))

    async def _free_busy(self, span: Span) -> Found:
        asked = {
            "timeMin": wire.stamp(span.start),
            "timeMax": wire.stamp(span.end),
            "items": [{"id": self._id}],
        }
        answer = await self._ask("POST", "/freeBusy", json=asked)
        said = answer.get("calendars", {}).get(self._id, {})
        if said.get("errors") or "busy" not in said:
            raise faults.missing(self._name)
        return Found([wire.busy(each) for each in said["busy"]])

    async def _listed(self, span: Span) -> Found:
        asked: dict[str, Any] = {
            "timeMin": wire.stamp(span.start),
            "timeMax": wire.stamp(span.end),
            "singleEvents": "true",
            "orderBy": "startTime",
            "maxResults": 250,
        }
        found = []
        for _ in range(_MOST_PAGES):
            answer = await self._ask("GET", self._events, params=asked)
            zone = answer.get("timeZone", "UTC")
            found += [one for item in answer.get("items", ()) if (one := wire.taken(item, zone))]
            if "nextPageToken" not in answer:
                break
            asked["pageToken"] = answer["nextPageToken"]
        return Found(found)

    async def book(self, event: NewEvent) -> Booked:
        """Write an event whose time is free, under an id of our own, so that it is never written twice."""
        place = f"{self._events}/{wire.event_id(event.uid)}"
        async with self._booking:
            before = await self._ask("GET", place, params={}, absent={404, 410})
            if before and before.get("status") != "cancelled":
                return wire.stands(before, event, existed=True)
            found = await self._free_busy(event.span)
            if taken := clash(event, found.taken):
                zone = event.start.tzinfo
                raise faults.conflict(taken.start.astimezone(zone), taken.end.astimezone(zone))
            method, where = ("PUT", place) if before else ("POST", self._events)
            params = {"sendUpdates": "all", "conferenceDataVersion": 1}
            written = await self._ask(method, where, params=params, json=wire.to_wire(event), absent={409})
            existed = not written
            if existed or (event.ask_for_meeting and not wire.link(written)):
                # Somebody else was quicker with the same event; or the link is still being made.
                written = await self._ask("GET", place, params={})
        return wire.stands(written, event, existed=existed)

    async def close(self) -> None:
        """End the connections."""
        await self._client.aclose()

    async def _ask(
        self, method: str, path: str, *, absent: frozenset[int] | set[int] = frozenset(), **said: Any
    ) -> dict[str, Any]:
        """One request; an empty answer for a status that means there is nothing."""
        writing = method in ("POST", "PUT") and path != "/freeBusy"
        bearer = await self._tokens.bearer()
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._client.request(
                    method, path, headers={"Authorization": f"Bearer {bearer}"}, **said
                )
        except (TimeoutError, httpx.TimeoutException):
            how = f"Google did not answer within {self._seconds:g} s"
            raise faults.unreachable(self._name, how, writing=writing) from None
        except httpx.HTTPError as error:
            how = f"the connection to Google failed ({type(error).__name__})"
            raise faults.unreachable(self._name, how, writing=writing) from None
        if answer.status_code in absent:
            return {}
        if not answer.is_success:
            raise self._failure(answer, writing=writing)
        found = _json(answer)
        if found is None:
            raise faults.unexpected(self._name, 502, writing=writing)
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
            return faults.limited(self._name, _seconds(answer.headers.get("Retry-After")))
        if status in (401, 403):
            return faults.refused(self._name)
        if status in (404, 410):
            return faults.missing(self._name)
        return faults.unexpected(self._name, status, writing=writing)


def _json(answer: httpx.Response) -> dict[str, Any] | None:
    try:
        found = answer.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _seconds(said: str | None) -> float | None:
    return float(said) if said is not None and said.isdecimal() else None

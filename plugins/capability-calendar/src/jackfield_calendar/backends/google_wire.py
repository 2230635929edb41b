"""What goes over the wire to Google Calendar and back (REST API, version 3)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from jackfield_calendar.backend import Booked, NewEvent, Taken
from jackfield_calendar.zones import find_zone, moment

_LONGEST_TITLE = 200


def event_id(uid: str) -> str:
    """An id in the characters Google allows, the same for the same UID, so that writing twice is noticed."""
    return base64.b32hexencode(hashlib.sha256(uid.encode()).digest()).decode().rstrip("=").lower()


def stamp(value: datetime) -> str:
    """A moment as the API writes it."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def to_wire(event: NewEvent) -> dict[str, Any]:
    """A new event; the organizer is whoever the credentials belong to."""
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


def busy(interval: Mapping[str, Any]) -> Taken:
    """One interval of a free/busy answer."""
    return Taken(datetime.fromisoformat(interval["start"]), datetime.fromisoformat(interval["end"]))


def taken(item: Mapping[str, Any], calendar_zone: str) -> Taken | None:
    """One event of a list; nothing when it takes no time."""
    attendees = item.get("attendees", ())
    declined = any(each.get("self") and each.get("responseStatus") == "declined" for each in attendees)
    if item.get("status") == "cancelled" or item.get("transparency") == "transparent" or declined:
        return None
    start, all_day = _moment(item["start"], calendar_zone)
    end, _ = _moment(item["end"], calendar_zone)
    if start >= end:
        return None
    return Taken(
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


def stands(item: Mapping[str, Any], event: NewEvent, *, existed: bool) -> Booked:
    """An event as Google has it."""
    start, _ = _moment(item["start"], "UTC")
    end, _ = _moment(item["end"], "UTC")
    return Booked(
        uid=str(item.get("iCalUID", event.uid)),
        start=start,
        end=end,
        meeting_url=link(item) or (item.get("location") if event.meeting_url else None),
        invited=() if existed else event.attendees,
        existed=existed,
    )


def link(item: Mapping[str, Any]) -> str | None:
    """The address of the video call, once Google has made it."""
    entries = item.get("conferenceData", {}).get("entryPoints", ())
    video = (each.get("uri") for each in entries if each.get("entryPointType") == "video")
    found = item.get("hangoutLink") or next(video, None)
    return None if found is None else str(found)

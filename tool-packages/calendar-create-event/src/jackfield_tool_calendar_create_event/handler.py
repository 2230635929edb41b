"""Creates a calendar event that the user has confirmed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from jackfield import ErrorType, ToolContext, ToolError, ToolResponse, ok
from jackfield.datetimes import parse_datetime, parse_zone
from jackfield_capability_types.calendar import MAX_DAYS, CalendarView, CreatedEvent, EventDraft


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Create the event."""
    calendar: CalendarView = ctx.calendar
    zone = await parse_zone(args.get("time_zone") or calendar.zone)
    draft = _draft(args, zone)
    if draft.meeting_link and not calendar.has_meeting_links:
        raise ToolError(
            ErrorType.PERMANENT,
            "No provider of meeting links is configured, so the event was not created.",
            suggestion="Offer to create it without a link. Never invent a link.",
        )
    created = await calendar.create(draft)
    ctx.audit("event_created", uid=created.uid, calendar=created.calendar, existed=created.existed)
    return ok(_answer(draft, created, zone))


def _draft(args: dict[str, Any], zone: ZoneInfo) -> EventDraft:
    title = args["title"].strip()
    if not title:
        raise ToolError(
            ErrorType.PERMANENT, "The title is empty.", suggestion="Ask the user what the event is about."
        )
    start, end = (
        parse_datetime("start_time", args["start_time"]),
        parse_datetime("end_time", args["end_time"]),
    )
    if start >= end:
        raise ToolError(
            ErrorType.PERMANENT, "start_time must be before end_time.", suggestion="Check both times."
        )
    if end - start > timedelta(days=MAX_DAYS):
        raise ToolError(
            ErrorType.PERMANENT,
            f"An event lasts at most {MAX_DAYS} days.",
            suggestion="Check the year and the month of both times.",
        )
    return EventDraft(
        title=title,
        start=start.astimezone(zone),
        end=end.astimezone(zone),
        calendar=args["calendar"],
        attendees=tuple(args["attendees"]),
        description=args["description"],
        meeting_link=args["include_meeting_link"],
    )


def _answer(draft: EventDraft, created: CreatedEvent, zone: ZoneInfo) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "status": "existed" if created.existed else "created",
        "uid": created.uid,
        "calendar": created.calendar,
        "title": draft.title,
        "start": created.start.astimezone(zone).isoformat(timespec="seconds"),
        "end": created.end.astimezone(zone).isoformat(timespec="seconds"),
        # In UTC, because Python subtracts two times of the same zone by the wall clock and ignores clock
        # changes.
        "duration_minutes": (_utc(created.end) - _utc(created.start)) // timedelta(minutes=1),
        "zone": zone.key,
        "invited": list(created.invited),
        "meeting_url": created.meeting_url,
    }
    if created.notices:
        answer["notices"] = list(created.notices)
    return answer


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)

"""Looks up busy times and the free slots between them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from jackfield import ErrorType, ToolContext, ToolError, ToolResponse, ok
from jackfield.datetimes import parse_datetime, parse_zone
from jackfield_capability_types.calendar import MAX_DAYS, Agenda, Busy, CalendarView

from jackfield_tool_calendar_get_availability.slots import Slot, free_slots


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Return the busy times and free slots of a range."""
    calendar: CalendarView = ctx.calendar
    zone = await parse_zone(args.get("time_zone") or calendar.zone)
    span = Slot(
        parse_datetime("start_date", args["start_date"]), parse_datetime("end_date", args["end_date"])
    )
    _check(span, zone)
    details = args["include_details"]
    agenda = await calendar.busy(args["calendars"], span.start, span.end, details=details)
    taken = [Slot(each.start, each.end) for each in agenda.busy]
    shortest = timedelta(minutes=args["min_duration_minutes"])
    free = list(free_slots(span, taken, shortest))
    ctx.audit("availability_read", calendars=args["calendars"], details=details, complete=not agenda.notices)
    return ok(_answer(span, agenda, free, zone))


def _check(span: Slot, zone: ZoneInfo) -> None:
    if span.start >= span.end:
        raise ToolError(
            ErrorType.PERMANENT,
            "start_date must be before end_date.",
            suggestion="Swap them, or request a range of at least a few minutes.",
        )
    # By the wall clock: a month in which the clocks go back is an hour longer.
    first, last = (each.astimezone(zone).replace(tzinfo=None) for each in span)
    by_clock = last - first
    if min(by_clock, span.end - span.start) > timedelta(days=MAX_DAYS):
        raise ToolError(
            ErrorType.PERMANENT,
            f"The range is longer than {MAX_DAYS} days.",
            suggestion="Request a part of it, or agree on a week with the user first.",
        )


def _answer(span: Slot, agenda: Agenda, free: list[Slot], zone: ZoneInfo) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "date_range": {"start": _told(span.start, zone), "end": _told(span.end, zone)},
        "existing_events": [_event(each, zone) for each in agenda.busy],
        "available_slots": [
            {"start": _told(each.start, zone), "end": _told(each.end, zone), "duration_minutes": each.minutes}
            for each in free
        ],
        "summary": _summary(agenda, free),
        "zone": zone.key,
        "complete": not agenda.notices,
    }
    if agenda.notices:
        answer["notices"] = list(agenda.notices)
    return answer


def _event(busy: Busy, zone: ZoneInfo) -> dict[str, Any]:
    event: dict[str, Any] = {
        "start": _told(busy.start, zone),
        "end": _told(busy.end, zone),
        "status": "busy",
        "calendar": busy.calendar,
        "all_day": busy.all_day,
        "title": busy.title,
    }
    if busy.attendees is not None:
        event["attendees"] = busy.attendees
    return event


def _summary(agenda: Agenda, free: list[Slot]) -> str:
    minutes = sum(each.minutes for each in free)
    busy, slots = _count(len(agenda.busy), "busy period"), _count(len(free), "available slot")
    told = f"{busy}, {slots} ({minutes} minutes in all)"
    return f"{told}; may be incomplete: {' '.join(agenda.notices)}" if agenda.notices else told


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _told(moment: datetime, zone: ZoneInfo) -> str:
    return moment.astimezone(zone).isoformat(timespec="seconds")

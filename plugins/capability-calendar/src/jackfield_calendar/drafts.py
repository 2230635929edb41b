"""Turns an event draft into the event to write, with a UID derived from its content."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from jackfield import ErrorType, ToolError
from jackfield_capability_types.calendar import EventDraft

from jackfield_calendar.backend import NewEvent

_ADDRESS = re.compile(r"[^\s@<>,;:\"\\]+@[^\s@<>,;:\"\\]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def uid_of(draft: EventDraft, user: str | None) -> str:
    """Derive the UID, so that the same draft of the same user always names the same event."""
    content = [
        draft.calendar,
        user,
        _clean(draft.title),
        draft.start.astimezone(UTC).isoformat(),
        draft.end.astimezone(UTC).isoformat(),
        sorted(address.casefold() for address in draft.attendees),
    ]
    return f"{hashlib.sha256(json.dumps(content).encode()).hexdigest()[:40]}@jackfield"


def prepared(
    draft: EventDraft, *, user: str | None, zone: ZoneInfo, organizer: str | None, template: str | None
) -> NewEvent:
    """Validate a draft and build the event; raises a `PERMANENT` tool error for an invalid draft."""
    if draft.start.tzinfo is None or draft.end.tzinfo is None or draft.start >= draft.end:
        raise ToolError(
            ErrorType.PERMANENT, "The event must end after it starts, and both times need a time zone."
        )
    title = _clean(draft.title)
    if not title:
        raise ToolError(ErrorType.PERMANENT, "The event needs a title.")
    for address in draft.attendees:
        if not _ADDRESS.fullmatch(address):
            raise ToolError(ErrorType.PERMANENT, f"{address!r} is not a valid e-mail address.")
    url = template.replace("{id}", secrets.token_urlsafe(18)) if template and draft.meeting_link else None
    return NewEvent(
        uid=uid_of(draft, user),
        title=title,
        start=_in_zone(draft.start, zone),
        end=_in_zone(draft.end, zone),
        attendees=tuple(dict.fromkeys(draft.attendees)),
        description=_clean(draft.description),
        organizer=organizer if organizer and _ADDRESS.fullmatch(organizer) else None,
        meeting_url=url,
        ask_for_meeting=draft.meeting_link and url is None,
    )


def _in_zone(moment: datetime, zone: ZoneInfo) -> datetime:
    # A named zone is kept; a plain offset is replaced, because it has no daylight saving rules.
    # iCalendar has whole seconds only.
    kept = moment.tzinfo if isinstance(moment.tzinfo, ZoneInfo) else zone
    return moment.astimezone(UTC).replace(microsecond=0).astimezone(kept)


def _clean(text: str) -> str:
    """Remove the control characters that iCalendar does not allow."""
    return _CONTROL.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n")).strip()

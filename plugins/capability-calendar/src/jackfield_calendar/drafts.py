"""From what a tool asks for to the event that is written: in a zone, under a UID made of its content."""

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
    """The same for the same event of the same user, whoever writes it and however often."""
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
    """The event to be written; `PERMANENT` for a draft that is none."""
    if draft.start.tzinfo is None or draft.end.tzinfo is None or draft.start >= draft.end:
        raise ToolError(ErrorType.PERMANENT, "An event ends after it starts, and both times carry a zone.")
    title = _clean(draft.title)
    if not title:
        raise ToolError(ErrorType.PERMANENT, "An event has a title.")
    for address in draft.attendees:
        if not _ADDRESS.fullmatch(address):
            raise ToolError(ErrorType.PERMANENT, f"{address!r} is not an e-mail address that can be invited.")
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
    # An offset alone does not say what the clocks do next month; a zone that has a name is kept.
    # Whole seconds, because iCalendar has no shorter time.
    kept = moment.tzinfo if isinstance(moment.tzinfo, ZoneInfo) else zone
    return moment.astimezone(UTC).replace(microsecond=0).astimezone(kept)


def _clean(text: str) -> str:
    """The text without what iCalendar cannot carry."""
    return _CONTROL.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n")).strip()

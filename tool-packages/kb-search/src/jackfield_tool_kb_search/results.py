"""Search results for the model, with the requested fields."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from jackfield_capability_types.knowledge import Evidence, Record

ALWAYS = ("snippet", "url", "metadata")
"""The optional fields of a result by default."""

_FULL_TEXT = 4000


def result(found: Evidence, fields: Collection[str]) -> dict[str, Any]:
    """Return one result with the requested optional fields."""
    record = found.record
    wire: dict[str, Any] = {"id": record.id, "type": record.type, "title": record.title}
    if "snippet" in fields:
        wire["snippet"] = found.snippet
    wire["score"] = round(min(max(found.score, 0.0), 1.0), 3)
    wire["source_type"] = record.source_type
    wire["last_updated"] = iso(record.last_updated)
    if "url" in fields:
        wire["url"] = record.url
    if "metadata" in fields:
        wire["metadata"] = dict(record.metadata)
    if "full_text" in fields:
        wire["full_text"] = shortened(record.text, _FULL_TEXT)
    if "sources" in fields:
        wire["citation"] = _citation(record)
    return wire


def iso(moment: datetime | None) -> str | None:
    """Format a date-time, with `Z` for UTC."""
    return moment.isoformat().replace("+00:00", "Z") if moment else None


def shortened(text: str, limit: int) -> str:
    """Truncate a text to a length, between words if possible."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    head, _, _ = cut.rpartition(" ")
    return f"{(head if len(head) > limit // 2 else cut).rstrip()}…"


def _citation(record: Record) -> str:
    updated = record.last_updated
    date = f", updated {updated.day} {updated:%B %Y}" if updated else ""
    address = f", {record.url}" if record.url else ""
    return f"{record.title} ({record.id}), {record.source_type}{date}{address}"

"""Gets knowledge base records that the session's user may see."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jackfield import ToolContext, ToolResponse, ok
from jackfield_capability_types.knowledge import Record

from jackfield_tool_kb_get.parts import part
from jackfield_tool_kb_get.voice_format import shorten_for_voice


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Return the records in the requested order, and the ids without a record."""
    ids: list[str] = args["ids"]
    found = await ctx.kb.get(ids)
    known = {record.id for record in found}
    missing = [each for each in ids if each not in known]
    records = [_wire(record, args["offset"], args["max_characters"]) for record in found]
    ctx.audit("kb_read", found=len(records), missing=len(missing))
    if ctx.session.mode == "voice":
        return ok(shorten_for_voice(records, missing, args["offset"]))
    return ok({"records": records, "missing": missing})


def _wire(record: Record, offset: int, most: int) -> dict[str, Any]:
    text, next_offset = part(record.text, offset, most)
    return {
        "id": record.id,
        "type": record.type,
        "title": record.title,
        "text": text,
        "next_offset": next_offset,
        "source_type": record.source_type,
        "last_updated": _iso(record.last_updated),
        "url": record.url,
        "namespace": record.namespace,
        "tags": list(record.tags),
        "metadata": dict(record.metadata),
    }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None

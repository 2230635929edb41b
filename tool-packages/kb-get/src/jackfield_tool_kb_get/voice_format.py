"""Records for voice: short, without markup."""

from __future__ import annotations

from typing import Any

from jackfield.speech import LINE, VOICE_LIMIT, characters, plain, short_facts

from jackfield_tool_kb_get.parts import part

_TEXTS = (600, 300, 160, 80, 40)
_FACTS = 6


def shorten_for_voice(records: list[dict[str, Any]], missing: list[str], offset: int) -> dict[str, Any]:
    """Shorten the texts until the answer fits, then drop the last records."""
    for limit in _TEXTS:
        data: dict[str, Any] = {
            "records": [_short(each, limit, offset) for each in records],
            "missing": missing,
        }
        if characters(data) <= VOICE_LIMIT:
            return data
    kept = data["records"]
    while len(kept) > 1 and characters(data) > VOICE_LIMIT:
        kept.pop()
        data["left_out"] = [each["id"] for each in records[len(kept) :]]
    return data


def _short(record: dict[str, Any], limit: int, offset: int) -> dict[str, Any]:
    begin, inside = part(record["text"], 0, limit)
    return {
        "id": record["id"],
        "type": record["type"],
        "title": plain(record["title"])[:LINE],
        "text": plain(begin),
        "next_offset": record["next_offset"] if inside is None else offset + inside,
        "source_type": record["source_type"],
        "last_updated": record["last_updated"],
        "url": record["url"] if len(record["url"] or "") <= LINE else None,
        "metadata": short_facts(record["metadata"], _FACTS) if limit > LINE else {},
    }

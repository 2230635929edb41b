"""Parses the items of the arguments."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jackfield_tool_rank_results.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Item:
    """A search result."""

    id: str
    title: str
    kind: str | None
    score: float | None
    updated: datetime | None
    title_words: tuple[str, ...]
    snippet_words: tuple[str, ...]
    tags: frozenset[str]
    # Everything in canonical form; breaks the tie between items that are otherwise equal.
    text: str

    @classmethod
    def read(cls, wire: Mapping[str, Any]) -> Item:
        """Parse an item of the arguments; an unreadable date counts as none."""
        return cls(
            id=wire["id"],
            title=wire["title"],
            kind=label(wire["type"]) if "type" in wire else None,
            score=wire.get("score"),
            updated=parse_datetime(wire["last_updated"]) if "last_updated" in wire else None,
            title_words=tokenize(wire["title"]),
            snippet_words=tokenize(wire.get("snippet", "")),
            tags=frozenset(label(tag) for tag in wire.get("tags", ())),
            text=json.dumps(wire, sort_keys=True),
        )


def label(text: str) -> str:
    """Return a type or tag in comparable form, without case, accents, spaces and punctuation."""
    return " ".join(tokenize(text)) or text


def parse_datetime(text: str) -> datetime | None:
    """Parse an ISO 8601 date or date-time, in UTC by default; None if it is neither."""
    try:
        moment = datetime.fromisoformat(text.strip().upper())
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

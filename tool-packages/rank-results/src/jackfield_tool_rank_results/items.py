"""An item as it was given, read once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jackfield_tool_rank_results.words import words

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Item:
    """One result of some search."""

    id: str
    title: str
    kind: str | None
    score: float | None
    updated: datetime | None
    title_words: tuple[str, ...]
    snippet_words: tuple[str, ...]
    tags: frozenset[str]
    # Everything that was given, in one form: the last word when two items are equal in all that counts.
    text: str

    @classmethod
    def read(cls, wire: Mapping[str, Any]) -> Item:
        """An item of the arguments; a date that cannot be read counts as none."""
        return cls(
            id=wire["id"],
            title=wire["title"],
            kind=label(wire["type"]) if "type" in wire else None,
            score=wire.get("score"),
            updated=read_moment(wire["last_updated"]) if "last_updated" in wire else None,
            title_words=words(wire["title"]),
            snippet_words=words(wire.get("snippet", "")),
            tags=frozenset(label(tag) for tag in wire.get("tags", ())),
            text=json.dumps(wire, sort_keys=True),
        )


def label(text: str) -> str:
    """A type or tag as it is compared: case, accents, spaces and punctuation do not matter."""
    return " ".join(words(text)) or text


def read_moment(text: str) -> datetime | None:
    """An ISO 8601 date or date-time, in UTC unless it says otherwise; nothing when it is neither."""
    try:
        moment = datetime.fromisoformat(text.strip().upper())
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

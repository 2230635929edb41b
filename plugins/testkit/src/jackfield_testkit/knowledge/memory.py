"""A knowledge base in memory, for tests of tools that require `kb`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime

from jackfield import SessionView
from jackfield_capability_types.knowledge import Evidence, Filters, Record

_WORD = re.compile(r"\w+")
_SNIPPET_WORDS = 30
_TEXT_WEIGHT = 0.8
"""The weight of a word in the text or the tags; a word in the title has the weight 1."""


class MemoryKnowledgeBase:
    """Finds records by the words that they share with the query, without synonyms or inflection."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records = {record.id: record for record in records}

    def for_session(self, session: SessionView) -> MemoryKnowledgeView:
        """Return the view of the session's user."""
        return self.for_user(session.user)

    def for_user(self, user: str | None) -> MemoryKnowledgeView:
        """Return the view of a user; a test passes it to `ToolTestContext` as `kb`."""
        return MemoryKnowledgeView(
            [record for record in self._records.values() if _may_see(user, record)],
        )

    async def close(self) -> None:
        """Do nothing."""


class MemoryKnowledgeView:
    """The records that one user may see."""

    def __init__(self, visible: Sequence[Record]) -> None:
        self._visible = visible

    async def search(
        self,
        query: str,
        *,
        namespace: str = "studio",
        filters: Filters | None = None,
        limit: int = 5,
        snippets: bool = True,
    ) -> Sequence[Evidence]:
        """Return the records that share the most words with the query; the score is their share."""
        wanted = set(words(query))
        chosen = [each for each in self._visible if each.namespace == namespace and _matches(each, filters)]
        found = [(score, record) for record in chosen if (score := _score(wanted, record)) > 0]
        found.sort(key=lambda each: (-each[0], each[1].id))
        return [
            Evidence(record, score, _snippet(wanted, record.text) if snippets else None)
            for score, record in found[:limit]
        ]

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        """Return records by id, in the requested order."""
        known = {record.id: record for record in self._visible}
        return [known[each] for each in ids if each in known]


def words(text: str) -> list[str]:
    """Return the words of a text without case and accents."""
    bare = "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))
    return _WORD.findall(bare.casefold())


def _may_see(user: str | None, record: Record) -> bool:
    return record.namespace != "personal" or (user is not None and record.owner == user)


def _matches(record: Record, filters: Filters | None) -> bool:
    if filters is None:
        return True
    return (
        filters.type in (None, record.type)
        and set(filters.tags) <= set(record.tags)
        and _within(record.last_updated, filters.updated_from, filters.updated_until)
    )


def _within(date: datetime | None, start: datetime | None, end: datetime | None) -> bool:
    if date is None:
        return start is None and end is None
    return (start is None or start <= date) and (end is None or date <= end)


def _score(wanted: set[str], record: Record) -> float:
    title = wanted & set(words(record.title))
    elsewhere = (wanted & set(words(" ".join([record.text, *record.tags])))) - title
    return (len(title) + _TEXT_WEIGHT * len(elsewhere)) / len(wanted) if wanted else 0.0


def _snippet(wanted: set[str], text: str) -> str | None:
    """Return the part of the text that contains the most query words."""
    text_words = text.split()
    if not text_words:
        return None
    hits = [bool(wanted & set(words(each))) for each in text_words]
    starts = range(max(1, len(text_words) - _SNIPPET_WORDS + 1))
    best = max(starts, key=lambda start: sum(hits[start : start + _SNIPPET_WORDS]))
    return " ".join(text_words[best : best + _SNIPPET_WORDS])

"""A knowledge base in memory, so that a tool which needs `kb` is tested without a real one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime

from jackfield import SessionView
from jackfield_capability_types.knowledge import Evidence, Filters, Record

_WORD = re.compile(r"\w+")
_SNIPPET_WORDS = 30
_BESIDE_THE_TITLE = 0.8
"""What a word counts that stands in the text or the tags and not in the title."""


class MemoryKnowledgeBase:
    """Finds records by the words they share with the query; it knows no synonyms and no word forms."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records = {record.id: record for record in records}

    def for_session(self, session: SessionView) -> MemoryKnowledgeView:
        """The records that the session's user may see."""
        return self.for_user(session.user)

    def for_user(self, user: str | None) -> MemoryKnowledgeView:
        """The records that somebody may see: a test passes this to `ToolTestContext` as `kb`."""
        return MemoryKnowledgeView(
            [record for record in self._records.values() if _may_see(user, record)],
        )

    async def close(self) -> None:
        """Nothing is held open."""


class MemoryKnowledgeView:
    """What one user may see of it."""

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
        """The records that share most words with the query; the score is the share of its words."""
        wanted = set(words(query))
        chosen = [each for each in self._visible if each.namespace == namespace and _fits(each, filters)]
        found = [(score, record) for record in chosen if (score := _score(wanted, record)) > 0]
        found.sort(key=lambda each: (-each[0], each[1].id))
        return [
            Evidence(record, score, _passage(wanted, record.text) if snippets else None)
            for score, record in found[:limit]
        ]

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        """Records by id, in the order asked."""
        known = {record.id: record for record in self._visible}
        return [known[each] for each in ids if each in known]


def words(text: str) -> list[str]:
    """The words of a text without case and accents."""
    bare = "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))
    return _WORD.findall(bare.casefold())


def _may_see(user: str | None, record: Record) -> bool:
    return record.namespace != "personal" or (user is not None and record.owner == user)


def _fits(record: Record, filters: Filters | None) -> bool:
    if filters is None:
        return True
    return (
        filters.type in (None, record.type)
        and set(filters.tags) <= set(record.tags)
        and _within(record.last_updated, filters.updated_from, filters.updated_until)
    )


def _within(moment: datetime | None, start: datetime | None, end: datetime | None) -> bool:
    if moment is None:
        return start is None and end is None
    return (start is None or start <= moment) and (end is None or moment <= end)


def _score(wanted: set[str], record: Record) -> float:
    title = wanted & set(words(record.title))
    beside = (wanted & set(words(" ".join([record.text, *record.tags])))) - title
    return (len(title) + _BESIDE_THE_TITLE * len(beside)) / len(wanted) if wanted else 0.0


def _passage(wanted: set[str], text: str) -> str | None:
    """The stretch of the text that holds most of the words."""
    spoken = text.split()
    if not spoken:
        return None
    hits = [bool(wanted & set(words(each))) for each in spoken]
    starts = range(max(1, len(spoken) - _SNIPPET_WORDS + 1))
    best = max(starts, key=lambda start: sum(hits[start : start + _SNIPPET_WORDS]))
    return " ".join(spoken[best : best + _SNIPPET_WORDS])

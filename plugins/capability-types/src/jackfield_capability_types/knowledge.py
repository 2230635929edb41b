"""`ctx.kb`: records with their sources, with the access of one user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from jackfield.contract.context import SessionView

TYPES = ("project", "person", "process", "link", "doc")
"""The types of records."""

NAMESPACES = ("studio", "personal", "public")
"""The namespaces of records: of the team, of one user, or public."""


@dataclass(frozen=True, slots=True)
class Record:
    """An entry of the knowledge base, and its source."""

    id: str
    """Type and name, such as `person:ada`; unique over all namespaces."""

    title: str
    text: str
    type: str = "doc"
    namespace: str = "studio"
    owner: str | None = None
    """The owner of a personal record; other users never learn that it exists."""

    tags: tuple[str, ...] = ()
    url: str | None = None
    source_type: str = "document"
    """The kind of source: `document`, `crm`, `directory`, ..."""

    last_updated: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filters:
    """Search filters; all of them must match."""

    type: str | None = None
    tags: tuple[str, ...] = ()
    """The record must have all of these tags."""

    updated_from: datetime | None = None
    updated_until: datetime | None = None
    """The range includes both ends; a record without a date is in no range."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A search result: a record, its score and a snippet."""

    record: Record
    score: float
    """0 to 1, comparable between queries: 1 is certain, below about 0.2 is hardly related."""

    snippet: str | None = None


class SearchResults(list[Evidence]):
    """Search results, with the reason if not all records were searched."""

    def __init__(self, found: Iterable[Evidence] = (), incomplete: str | None = None) -> None:
        super().__init__(found)
        self.incomplete = incomplete
        """Why records may be missing, as a sentence; None if all records were searched."""


class KnowledgeView(Protocol):
    """The knowledge base of one session, with the access of its user."""

    async def search(
        self,
        query: str,
        *,
        namespace: str = "studio",
        filters: Filters | None = None,
        limit: int = 5,
        snippets: bool = True,
    ) -> Sequence[Evidence]:
        """Return the best matching records, best first, each once; the result may be empty.

        Return `SearchResults` with a reason if records may be missing because an index is being built.
        """

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        """Return the records that the user may see, by id, in the given order."""


class KnowledgeBase(Protocol):
    """The capability `kb`."""

    def for_session(self, session: SessionView) -> KnowledgeView:
        """Return the view that handlers of this session use."""

    async def close(self) -> None:
        """Close files and connections."""

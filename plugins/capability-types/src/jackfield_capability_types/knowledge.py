"""`ctx.kb`: records with their sources, searched and fetched as one user may see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from jackfield.contract.context import SessionView

TYPES = ("project", "person", "process", "link", "doc")
"""What a record can be about."""

NAMESPACES = ("studio", "personal", "public")
"""Whose a record is: the team's, one user's, or everybody's."""


@dataclass(frozen=True, slots=True)
class Record:
    """One thing the knowledge base knows, and where it knows it from."""

    id: str
    """Type and name, such as `person:ada`; unique over all namespaces."""

    title: str
    text: str
    type: str = "doc"
    namespace: str = "studio"
    owner: str | None = None
    """The user a personal record belongs to; nobody else ever learns that it exists."""

    tags: tuple[str, ...] = ()
    url: str | None = None
    source_type: str = "document"
    """Where it came from: `document`, `crm`, `directory`, ..."""

    last_updated: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search is narrowed to; everything that is stated must hold."""

    type: str | None = None
    tags: tuple[str, ...] = ()
    """All of them must be on the record."""

    updated_from: datetime | None = None
    updated_until: datetime | None = None
    """Both ends belong to the range; a record without a date is outside every range."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A record that was found, how well it fits, and the passage that shows it."""

    record: Record
    score: float
    """0 to 1, the same scale whatever the query: 1 is certain, below about 0.2 is hardly related."""

    snippet: str | None = None


class KnowledgeView(Protocol):
    """The knowledge base as one session sees it: what its user may not see is not there."""

    async def search(
        self,
        query: str,
        *,
        namespace: str = "studio",
        filters: Filters | None = None,
        limit: int = 5,
        snippets: bool = True,
    ) -> Sequence[Evidence]:
        """The records that fit best, best first, each once; an empty answer is an answer."""

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        """Records by id, in the order asked; an id that is unknown or not for this user is left out."""


class KnowledgeBase(Protocol):
    """What a plugin provides under the name `kb`."""

    def for_session(self, session: SessionView) -> KnowledgeView:
        """Return the view that handlers of this session use."""

    async def close(self) -> None:
        """Let go of files and connections."""

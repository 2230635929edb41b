"""The search of a library: in indexes on this machine, or inside PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from jackfield_capability_types.knowledge import Filters, Record, SearchResults

from jackfield_kb.access import Access
from jackfield_kb.index_worker import Progress


class LibraryQuery(NamedTuple):
    """A query that is not blank, and what it may find."""

    query: str
    access: Access
    scopes: frozenset[str] | None
    """The scopes to search; None means all."""

    filters: Filters | None
    limit: int
    snippets: bool


class IndexFigures(NamedTuple):
    """Figures about the indexes."""

    passages: int
    bytes: dict[str, int]
    states: dict[str, str]
    """The state of each index: `up to date`, `12 records behind`, `missing`, or why it is off."""


class SearchEngine(Protocol):
    """Searches the records, and keeps the indexes that it needs up to date."""

    def search(self, asked: LibraryQuery) -> SearchResults:
        """Return the best matching records that the user may see, best first, each once."""

    def get(self, ids: Sequence[str], access: Access) -> list[Record]:
        """Return the records that the user may see, by id, in the given order."""

    def refresh(self, progress: Progress | None, *, rebuild: bool = False) -> None:
        """Update or rebuild the indexes, and wait."""

    def follow(self) -> None:
        """Keep up with changes that other hosts make, in the background."""

    def warm(self) -> None:
        """Load what the first search needs."""

    def figures(self) -> IndexFigures:
        """Return figures about the indexes."""

    def close(self) -> None:
        """Stop background work, and close files and connections."""

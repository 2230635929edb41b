"""A library: the records, the search over them, and figures about both.

A library is thread-safe, and several processes may open one folder. One of them writes at a time; the others
keep reading and see new records as soon as they are indexed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from jackfield_capability_types.knowledge import Filters, Record, SearchResults

from jackfield_kb.access import Access
from jackfield_kb.embedders import EmbeddingModel
from jackfield_kb.errors import LibraryError, RecordError
from jackfield_kb.fulltext.index import storable
from jackfield_kb.index_worker import Progress
from jackfield_kb.local_search import LocalSearch
from jackfield_kb.records.interface import Records, Source, SourceAndOwner, SourceRecords
from jackfield_kb.records.sqlite import SqliteRecords
from jackfield_kb.search_engine import IndexFigures, LibraryQuery, SearchEngine

__all__ = ["Access", "EmbeddingModel", "Library", "LibraryError", "LibraryStats", "RecordError", "Source"]

MOST_QUERY = 8_000
"""The maximum length of a query, about two pages; the rest is ignored."""

_PAGE = 200
_log = logging.getLogger("jackfield.kb")


class LibraryStats(NamedTuple):
    """Figures about a library."""

    records: dict[tuple[str, str], int]
    """The number of records by namespace and type."""

    sources: int
    passages: int
    """The number of passages in the full-text index."""

    bytes: dict[str, int]
    """Size on disk of the `records`, the `text` index and the `vectors`."""

    indexes: dict[str, str]
    """The state of `text` and `vectors`: `up to date`, `12 records behind`, `missing`, or why it is off."""

    model: str | None
    """The embedding model; None for full-text search only."""


def log(line: str) -> None:
    """Log a notice; the default `notice` of a `Library`."""
    _log.warning("%s", line)


class Library:
    """Records and the search over them, by default in one folder."""

    def __init__(
        self,
        folder: Path,
        *,
        embedder: EmbeddingModel | None,
        notice: Callable[[str], None] = log,
        records: Records | None = None,
        engine: SearchEngine | None = None,
    ) -> None:
        self.folder = folder
        self._embedder = embedder
        self._records = records or SqliteRecords(folder / "knowledge.db")
        self._engine = engine or LocalSearch(folder, self._records, embedder, notice)

    @property
    def place(self) -> str:
        """The location of the records, without secrets."""
        return self._records.place if self.is_shared else str(self.folder)

    @property
    def is_shared(self) -> bool:
        """True if other hosts may change the records."""
        return not isinstance(self._records, SqliteRecords)

    def write(self, put: Sequence[SourceRecords] = (), drop_sources: Sequence[str] = ()) -> None:
        """Replace the records of some sources and drop others, in one transaction."""
        self._records.write(put, drop_sources)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove records by id."""
        self._records.delete(ids)

    def loading(self, uris: Sequence[str]) -> AbstractContextManager[None]:
        """Lock these files and folders for one loader; raises `LibraryError` if another is loading them."""
        return self._records.loading(uris)

    def sources(self, collection: str | None = None) -> dict[str, Source]:
        """Return the sources of the records, by URI."""
        return {source.uri: source for source in self._records.sources(collection)}

    def holders(self, ids: Iterable[str]) -> dict[str, SourceAndOwner]:
        """Return the source and owner of each existing id."""
        return self._records.holders(ids)

    def get(self, ids: Sequence[str]) -> list[Record]:
        """Return records by id in the given order, without unknown ids."""
        return self._records.by_ids(ids, Access.everything())

    def visible(self, ids: Sequence[str], access: Access) -> list[Record]:
        """Return the records that a user may see, by id, in the given order."""
        return self._engine.get(ids, access)

    def __iter__(self) -> Iterator[Record]:
        """Yield all records, ordered by id."""
        last = ""
        while records := self._records.page(last, _PAGE):
            yield from records
            last = records[-1].id

    def refresh(self, progress: Progress | None = None) -> None:
        """Update both indexes; continues where an interrupted run stopped."""
        self._engine.refresh(progress)

    def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuild both indexes; searches use the old ones meanwhile."""
        self._engine.refresh(progress, rebuild=True)

    def follow(self) -> None:
        """Keep the indexes up to date with other hosts' changes, in the background."""
        self._engine.follow()

    def search(
        self,
        query: str,
        *,
        access: Access,
        namespace: str | None = None,
        filters: Filters | None = None,
        limit: int = 5,
        snippets: bool = True,
    ) -> SearchResults:
        """Return the best matching records that the user may see, best first, each once.

        A query is plain text without operators. Without a namespace, all visible namespaces are searched.
        """
        query = storable(query[:MOST_QUERY]).strip()
        scopes = access.scopes(namespace)
        if not query or limit < 1 or scopes == frozenset():
            return SearchResults()
        if filters is not None:
            filters = replace(filters, tags=tuple(sorted(set(filters.tags))))
        return self._engine.search(LibraryQuery(query, access, scopes, filters, limit, snippets))

    def warm(self) -> None:
        """Open the indexes and load the model before the first search."""
        with suppress(LibraryError):
            self._engine.warm()

    def figures(self) -> IndexFigures:
        """Return figures about the indexes, which are faster to compute than `stats`."""
        return self._engine.figures()

    def stats(self) -> LibraryStats:
        """Return figures about the library."""
        figures = self.figures()
        return LibraryStats(
            records=self._records.counts(),
            sources=len(self._records.sources(None)),
            passages=figures.passages,
            bytes={"records": self._records.bytes(), **figures.bytes},
            indexes=figures.states,
            model=None if self._embedder is None else self._embedder.model,
        )

    def close(self) -> None:
        """Close all files and connections."""
        self._engine.close()
        self._records.close()

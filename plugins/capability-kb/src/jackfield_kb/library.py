"""A library: the records of a folder, the search over them, and figures about both.

A library is thread-safe, and several processes may open one folder. One of them writes at a time; the others
keep reading and see new records as soon as they are indexed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from jackfield_capability_types.knowledge import Evidence, Filters, Record

from jackfield_kb.access import Access
from jackfield_kb.embedders import EmbeddingModel
from jackfield_kb.errors import LibraryError, RecordError
from jackfield_kb.files import size
from jackfield_kb.fulltext.index import stems, storable
from jackfield_kb.index_worker import Progress
from jackfield_kb.indexes import Indexes
from jackfield_kb.records import statements
from jackfield_kb.records.database import RecordDatabase
from jackfield_kb.records.statements import Position, Source, SourceRecords
from jackfield_kb.search import SearchQuery, evidence, find


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


def stats(folder: Path, database: RecordDatabase, indexes: Indexes) -> LibraryStats:
    """Collect the figures of a library."""
    text, vectors = indexes.text(), indexes.vectors()
    with database.reading() as db:
        records = statements.counts(db)
        sources = sum(1 for _ in statements.sources(db, None))
        target = statements.position(db)

        def state(position: Position | None) -> str:
            if position is None:
                return "missing" if records else "empty"
            lacking = statements.count_after(db, position.number)
            if lacking:
                return f"{lacking} record{'s' if lacking > 1 else ''} behind"
            return "up to date" if position.step == target.step else "behind on removals"

        states = {"text": state(None if text is None else text.position), "vectors": "off: no embeddings"}
        if indexes.embedder is not None:
            states["vectors"] = state(None if vectors is None else vectors.position)
    return LibraryStats(
        records=records,
        sources=sources,
        passages=0 if text is None else text.passages,
        bytes={
            "records": sum(path.stat().st_size for path in folder.glob("knowledge.db*")),
            "text": size(folder / "text"),
            "vectors": size(folder / "vectors"),
        },
        indexes=states,
        model=None if indexes.embedder is None else indexes.embedder.model,
    )


__all__ = ["Access", "EmbeddingModel", "Library", "LibraryError", "LibraryStats", "RecordError", "Source"]

MOST_QUERY = 1_000
"""The maximum length of a query; the rest is ignored."""

_PAGE = 200
_log = logging.getLogger("jackfield.kb")


def log(line: str) -> None:
    """Log a notice; the default of `Library`."""
    _log.warning("%s", line)


class Library:
    """The records of one folder."""

    def __init__(
        self, folder: Path, *, embedder: EmbeddingModel | None, notice: Callable[[str], None] = log
    ) -> None:
        self.folder = folder
        self._database = RecordDatabase(folder / "knowledge.db")
        self._indexes = Indexes(folder, self._database, embedder, notice)

    def write(self, put: Sequence[SourceRecords] = (), drop_sources: Sequence[str] = ()) -> None:
        """Replace the records of some sources and drop others, in one transaction."""
        with self._database.writing() as db:
            statements.write(db, put, drop_sources)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove records by id."""
        with self._database.writing() as db:
            numbers = [db.execute("SELECT number FROM records WHERE id = ?", (id_,)).get for id_ in ids]
            statements.remove(db, [number for number in numbers if number is not None])

    def sources(self, collection: str | None = None) -> dict[str, Source]:
        """The sources of the records, by URI."""
        with self._database.reading() as db:
            return {source.uri: source for source in statements.sources(db, collection)}

    def holders(self, ids: Iterable[str]) -> dict[str, statements.Holder]:
        """The source and owner of each existing id."""
        with self._database.reading() as db:
            return statements.holders(db, ids)

    def get(self, ids: Sequence[str]) -> list[Record]:
        """Return records by id in the given order, without unknown ids."""
        with self._database.reading() as db:
            return statements.by_ids(db, ids)

    def __iter__(self) -> Iterator[Record]:
        """All records by id."""
        last = ""
        while True:
            with self._database.reading() as db:
                records = statements.page(db, last, _PAGE)
            if not records:
                return
            yield from records
            last = records[-1].id

    def refresh(self, progress: Progress | None = None) -> None:
        """Update both indexes; continues where an interrupted run stopped."""
        self._indexes.upkeep.refresh(progress)

    def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuild both indexes; searches use the old ones meanwhile."""
        self._indexes.upkeep.refresh(progress, anew=True)

    def search(
        self,
        query: str,
        *,
        access: Access,
        namespace: str | None = None,
        filters: Filters | None = None,
        limit: int = 5,
        snippets: bool = True,
    ) -> list[Evidence]:
        """Return the best matching records that the user may see, best first, each once.

        A query is plain text without operators. Without a namespace all visible ones are searched.
        """
        query = storable(query[:MOST_QUERY]).strip()
        scopes = access.scopes(namespace)
        if not query or limit < 1 or scopes == frozenset():
            return []
        if filters is not None:
            filters = replace(filters, tags=tuple(sorted(set(filters.tags))))
        opened = self._indexes.open()
        words = stems(query)
        asked = SearchQuery(words, opened.weights(words), scopes, filters, limit)
        found = find(asked, opened.text, opened.meaning(query, scopes, filters))
        return evidence(self._database, found, access, limit, asked.weights if snippets else None)

    def warm(self) -> None:
        """Open the indexes and load the model before the first search."""
        with suppress(LibraryError):
            self._indexes.open().meaning("warm", None, None)

    def stats(self) -> LibraryStats:
        """Return figures about the library."""
        return stats(self.folder, self._database, self._indexes)

    def close(self) -> None:
        """Close all files."""
        self._indexes.close()
        self._database.close()

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
from jackfield_kb.embedding import Embedder
from jackfield_kb.errors import LibraryError, RecordError
from jackfield_kb.files import size
from jackfield_kb.fulltext.index import stems, storable
from jackfield_kb.indexes import Indexes
from jackfield_kb.indexing import Progress
from jackfield_kb.records import statements
from jackfield_kb.records.database import Database
from jackfield_kb.records.statements import Position, Put, Source
from jackfield_kb.search import Asked, evidence, find


class Stats(NamedTuple):
    """What a library holds."""

    records: dict[tuple[str, str], int]
    """How many, by namespace and type."""

    sources: int
    passages: int
    """How many passages can be found by their words at this moment."""

    bytes: dict[str, int]
    """On disk: of the `records`, the `text` index and the `vectors`."""

    indexes: dict[str, str]
    """Of `text` and `vectors`: `up to date`, `12 records behind`, `missing`, or why there is none."""

    model: str | None
    """The model whose vectors are searched; None when the words alone are."""


def stats(folder: Path, database: Database, indexes: Indexes) -> Stats:
    """Count and measure."""
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
    return Stats(
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


__all__ = ["Access", "Embedder", "Library", "LibraryError", "RecordError", "Source", "Stats"]

MOST_QUERY = 1_000
"""Characters of a query that are looked at; what follows is left out."""

_PAGE = 200
_log = logging.getLogger("jackfield.kb")


def log(line: str) -> None:
    """Notices go to the log unless somebody asks for them."""
    _log.warning("%s", line)


class Library:
    """The records of one folder."""

    def __init__(
        self, folder: Path, *, embedder: Embedder | None, notice: Callable[[str], None] = log
    ) -> None:
        self.folder = folder
        self._database = Database(folder / "knowledge.db")
        self._indexes = Indexes(folder, self._database, embedder, notice)

    def write(self, put: Sequence[Put] = (), drop_sources: Sequence[str] = ()) -> None:
        """Replace the records of sources, and drop sources with theirs, all or nothing, safe on disk."""
        with self._database.writing() as db:
            statements.write(db, put, drop_sources)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove records, whatever source they came from."""
        with self._database.writing() as db:
            numbers = [db.execute("SELECT number FROM records WHERE id = ?", (id_,)).get for id_ in ids]
            statements.remove(db, [number for number in numbers if number is not None])

    def sources(self, collection: str | None = None) -> dict[str, Source]:
        """The files that records came from, by uri."""
        with self._database.reading() as db:
            return {source.uri: source for source in statements.sources(db, collection)}

    def holders(self, ids: Iterable[str]) -> dict[str, statements.Holder]:
        """Whose each id is, of those that are there: a source, and the owner of a personal record."""
        with self._database.reading() as db:
            return statements.holders(db, ids)

    def get(self, ids: Sequence[str]) -> list[Record]:
        """Records by id, in the order asked; unknown ids are left out."""
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
        """Bring both indexes up to date with the records; resumes where a crash cut it short."""
        self._indexes.upkeep.refresh(progress)

    def rebuild(self, progress: Progress | None = None) -> None:
        """Make both indexes anew; searches go on with the old ones meanwhile."""
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
        """The records that fit best among those this user may see, best first, each once.

        Nothing in a query is syntax: it is words. No namespace means every one that the user may see.
        """
        query = storable(query[:MOST_QUERY]).strip()
        scopes = access.scopes(namespace)
        if not query or limit < 1 or scopes == frozenset():
            return []
        if filters is not None:
            filters = replace(filters, tags=tuple(sorted(set(filters.tags))))
        opened = self._indexes.open()
        words = stems(query)
        asked = Asked(words, opened.weights(words), scopes, filters, limit)
        found = find(asked, opened.text, opened.meaning(query, scopes, filters))
        return evidence(self._database, found, access, limit, asked.weights if snippets else None)

    def warm(self) -> None:
        """Open what the first search would otherwise have to wait for."""
        with suppress(LibraryError):
            self._indexes.open().meaning("warm", None, None)

    def stats(self) -> Stats:
        """What the library holds."""
        return stats(self.folder, self._database, self._indexes)

    def close(self) -> None:
        """Let go of all files."""
        self._indexes.close()
        self._database.close()

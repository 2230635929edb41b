"""The full-text and the vector index of a library, opened or rebuilt as needed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jackfield_capability_types.knowledge import Filters

from jackfield_kb.embedders import EmbeddingModel
from jackfield_kb.errors import DamagedIndexError, EmbeddingFailedError, IndexUnavailableError
from jackfield_kb.fulltext.index import TextIndex
from jackfield_kb.fulltext.indexer import TextIndexer
from jackfield_kb.fulltext.search import TextReader, TextView
from jackfield_kb.index_worker import Indexer, IndexWorker
from jackfield_kb.records import statements
from jackfield_kb.records.database import RecordDatabase
from jackfield_kb.records.statements import Position

if TYPE_CHECKING:
    from jackfield_kb.vectors.candidates import VectorQuery
    from jackfield_kb.vectors.search import Vector, VectorReader, VectorView

_PATIENCE = 2.0
"""How long a search waits for the rebuild of the full-text index if no index is usable."""

_REMEMBERED = 256
"""Cached query vectors; agents repeat queries with other filters."""


class Indexes:
    """The full-text index, and the vector index if there is an embedding model."""

    def __init__(
        self,
        folder: Path,
        database: RecordDatabase,
        embedder: EmbeddingModel | None,
        notice: Callable[[str], None],
    ) -> None:
        self._database = database
        self.embedder = embedder
        self._notice = notice
        self.text_index = TextIndex(folder / "text")
        self._text = TextReader(self.text_index)
        self._vectors: VectorReader | None = None
        kept: list[Indexer] = [TextIndexer(database, self.text_index, notice)]
        if embedder is not None:
            kept.append(self._with_vectors(folder / "vectors", embedder))
        self.upkeep = IndexWorker(kept, notice)
        self._queries = _QueryVectors(embedder, notice)

    def _with_vectors(self, folder: Path, embedder: EmbeddingModel) -> Indexer:
        from jackfield_kb.vectors.index import VectorIndex
        from jackfield_kb.vectors.indexer import VectorIndexer
        from jackfield_kb.vectors.search import VectorReader

        index = VectorIndex(folder)
        self._vectors = VectorReader(index, embedder.model)
        return VectorIndexer(self._database, index, embedder, self._notice)

    def open(self) -> OpenIndexes:
        """Open the usable indexes; the others are rebuilt in the background."""
        with self._database.reading() as db:
            target = statements.position(db)
        text, vectors = self.text(), self.vectors()
        if target == Position():
            return OpenIndexes(text, vectors, self._queries)
        if text is None or (vectors is None and self._vectors is not None):
            self.upkeep.start()
            if text is None and vectors is None:
                self.upkeep.finished.wait(_PATIENCE)
                text = self.text()
        if text is None and vectors is None:
            raise IndexUnavailableError("the search index is being rebuilt; try again in a moment")
        self.upkeep.behind(self._behind(target, text, vectors))
        return OpenIndexes(text, vectors, self._queries)

    def _behind(self, target: Position, text: TextView | None, vectors: VectorView | None) -> bool:
        late = text is not None and text.position != target
        return late or (vectors is not None and vectors.position != target)

    def text(self) -> TextView | None:
        """The full-text index; None if it is missing or damaged."""
        try:
            return self._text.view()
        except DamagedIndexError as error:
            self._notice(f"the full-text index is damaged and is being rebuilt: {error}")
            self._text.forget()
            self.text_index.discard()
            return None

    def vectors(self) -> VectorView | None:
        """The vector index; None if it is missing, damaged or from another model."""
        if self._vectors is None:
            return None
        try:
            return self._vectors.view()
        except DamagedIndexError as error:
            self._notice(f"the vector index is damaged and is being rebuilt: {error}")
            self._vectors.discard()
            return None

    def close(self) -> None:
        """Stop background work and close all files."""
        self.upkeep.close()
        self._text.forget()
        if self._vectors is not None:
            self._vectors.forget()


class OpenIndexes:
    """The indexes for one search."""

    def __init__(self, text: TextView | None, vectors: VectorView | None, queries: _QueryVectors) -> None:
        self.text = text
        self._vectors = vectors
        self._queries = queries

    def meaning(
        self, query: str, scopes: frozenset[str] | None, filters: Filters | None
    ) -> VectorQuery | None:
        """Embed the query; None if there are no vectors or the model fails."""
        if self._vectors is None:
            return None
        vector = self._queries.vector(query)
        if vector is None:
            return None
        from jackfield_kb.vectors.candidates import VectorQuery

        return VectorQuery(self._vectors, vector, self._vectors.facets.select(scopes, filters))

    def weights(self, stems: Sequence[str]) -> dict[str, float]:
        """The weight of each word of the query."""
        return dict.fromkeys(stems, 1.0) if self.text is None else self.text.rarity(stems)


class _QueryVectors:
    """Embeds queries, with a cache."""

    def __init__(self, embedder: EmbeddingModel | None, notice: Callable[[str], None]) -> None:
        self._embedder = embedder
        self._notice = notice
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Vector] = OrderedDict()
        self._failing = False

    def vector(self, query: str) -> Vector | None:
        """The vector of a query; None if the model fails, with a notice the first time."""
        with self._lock:
            if query in self._kept:
                self._kept.move_to_end(query)
                return self._kept[query]
        if self._embedder is None:
            return None
        try:
            vector: Vector = self._embedder.embed([query])[0]
        except EmbeddingFailedError as error:
            if not self._failing:
                self._notice(f"full-text search only until this is fixed: {error}")
            self._failing = True
            return None
        with self._lock:
            self._failing = False
            self._kept[query] = vector
            if len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
        return vector

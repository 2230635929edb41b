"""The full-text and the vector index of a library, opened or rebuilt as needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jackfield_capability_types.knowledge import Filters

from jackfield_kb.embedders import EmbeddingModel
from jackfield_kb.errors import DamagedIndexError, IndexUnavailableError
from jackfield_kb.fulltext.index import TextIndex
from jackfield_kb.fulltext.indexer import TextIndexer
from jackfield_kb.fulltext.search import TextReader, TextView
from jackfield_kb.index_worker import Indexer, IndexWorker
from jackfield_kb.query_vectors import QueryVectors
from jackfield_kb.records.interface import Position, RecordLog

if TYPE_CHECKING:
    from jackfield_kb.vectors.candidates import VectorQuery
    from jackfield_kb.vectors.search import VectorReader, VectorView

_PATIENCE = 2.0
"""How long a search waits for the rebuild of the full-text index if no index is usable."""


_LOOK = 0.05


class Indexes:
    """The full-text index, and the vector index if there is an embedding model."""

    def __init__(
        self,
        folder: Path,
        log: RecordLog,
        embedder: EmbeddingModel | None,
        notice: Callable[[str], None],
    ) -> None:
        self._log = log
        self.embedder = embedder
        self._notice = notice
        self.text_index = TextIndex(folder / "text")
        self._text = TextReader(self.text_index)
        self._vector_folder = folder / "vectors"
        self._vectors: _VectorParts | None = None
        self._loading = threading.Lock()
        self.upkeep = IndexWorker(self._indexers, notice)
        self._queries = QueryVectors(embedder, notice)

    def _indexers(self) -> list[Indexer]:
        """Return an indexer for each index."""
        text = TextIndexer(self._log, self.text_index, self._notice)
        vectors = self._load_vectors()
        return [text] if vectors is None else [text, vectors.indexer]

    def _load_vectors(self) -> _VectorParts | None:
        """Return the parts of the vector index; None without an embedding model.

        They are created on first use, on the thread that needs them, because they import numpy, which takes
        as long as a quarter of a host's startup.
        """
        if self.embedder is None:
            return None
        with self._loading:
            if self._vectors is None:
                from jackfield_kb.vectors.index import VectorIndex
                from jackfield_kb.vectors.indexer import VectorIndexer
                from jackfield_kb.vectors.search import VectorReader

                index = VectorIndex(self._vector_folder)
                self._vectors = _VectorParts(
                    VectorReader(index, self.embedder.model),
                    VectorIndexer(self._log, index, self.embedder, self._notice),
                )
            return self._vectors

    def open(self) -> OpenIndexes:
        """Open the usable indexes; the others are rebuilt in the background."""
        target = self._log.position()
        text, vectors = self.text(), self.vectors()
        if target == Position():
            return OpenIndexes(text, vectors, self._queries)
        if text is None or (vectors is None and self.embedder is not None):
            self.upkeep.start()
            if text is None and vectors is None:
                text = self._awaited()
        if text is None and vectors is None:
            raise IndexUnavailableError("the search index is being rebuilt; try again in a moment")
        self.upkeep.behind(self._behind(target, text, vectors))
        return OpenIndexes(text, vectors, self._queries)

    def _awaited(self) -> TextView | None:
        """Wait for the full-text index, which this or another thread or process is building."""
        deadline = time.monotonic() + _PATIENCE
        self.upkeep.finished.wait(_PATIENCE)
        while (text := self.text()) is None and time.monotonic() < deadline:
            time.sleep(_LOOK)
        return text

    def _behind(self, target: Position, text: TextView | None, vectors: VectorView | None) -> bool:
        late = text is not None and text.position != target
        return late or (vectors is not None and vectors.position != target)

    def text(self) -> TextView | None:
        """Return the full-text index; None if it is missing or damaged."""
        try:
            return self._text.view()
        except DamagedIndexError as error:
            self._notice(f"the full-text index cannot be used and is being rebuilt: {error}")
            self._text.forget()
            self.text_index.discard()
            return None

    def vectors(self) -> VectorView | None:
        """Return the vector index; None if it is missing, damaged or from another model."""
        parts = self._load_vectors()
        if parts is None:
            return None
        try:
            return parts.reader.view()
        except DamagedIndexError as error:
            self._notice(f"the vector index cannot be used and is being rebuilt: {error}")
            parts.reader.discard()
            return None

    def discard(self) -> None:
        """Discard both indexes, because their records are gone; the next refresh rebuilds them."""
        self._text.forget()
        self.text_index.discard()
        parts = self._load_vectors()
        if parts is not None:
            parts.reader.discard()

    def close(self) -> None:
        """Stop background work and close all files."""
        self.upkeep.close()
        self._text.forget()
        if self._vectors is not None:
            self._vectors.reader.forget()


class _VectorParts(NamedTuple):
    reader: VectorReader
    indexer: Indexer


class OpenIndexes:
    """The indexes for one search."""

    def __init__(self, text: TextView | None, vectors: VectorView | None, queries: QueryVectors) -> None:
        self.text = text
        self._vectors = vectors
        self._queries = queries

    def meaning(
        self, query: str, scopes: frozenset[str] | None, filters: Filters | None
    ) -> VectorQuery | None:
        """Embed the query; return None if there are no vectors or the model fails."""
        if self._vectors is None:
            return None
        vector = self._queries.vector(query)
        if vector is None:
            return None
        from jackfield_kb.vectors.candidates import VectorQuery

        return VectorQuery(self._vectors, vector, self._vectors.facets.select(scopes, filters))

    @property
    def complete(self) -> bool:
        """False while the full-text index, or without it the vector index, is being built."""
        view = self.text or self._vectors
        return view is None or view.complete

    def weights(self, stems: Sequence[str]) -> dict[str, float]:
        """Return the weight of each word of the query."""
        return dict.fromkeys(stems, 1.0) if self.text is None else self.text.rarity(stems)

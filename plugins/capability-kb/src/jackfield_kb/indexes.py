"""The two indexes as a search needs them: open, or on their way back."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jackfield_capability_types.knowledge import Filters

from jackfield_kb.embedding import Embedder
from jackfield_kb.errors import DamagedIndexError, EmbeddingError, IndexUnavailableError
from jackfield_kb.fulltext.index import TextIndex
from jackfield_kb.fulltext.indexer import TextUpkeep
from jackfield_kb.fulltext.search import TextReader, TextView
from jackfield_kb.indexing import OneIndex, Upkeep
from jackfield_kb.records import statements
from jackfield_kb.records.database import Database
from jackfield_kb.records.statements import Position

if TYPE_CHECKING:
    from jackfield_kb.vectors.reranking import Meaning
    from jackfield_kb.vectors.search import Vector, VectorReader, VectorView

_PATIENCE = 2.0
"""Seconds that a search waits for full text to be made anew when there is nothing else to search with."""

_REMEMBERED = 256
"""Queries whose vectors are kept: an agent asks the same again, with other filters."""


class Indexes:
    """Full text, and vectors where there is a model."""

    def __init__(
        self, folder: Path, database: Database, embedder: Embedder | None, notice: Callable[[str], None]
    ) -> None:
        self._database = database
        self.embedder = embedder
        self._notice = notice
        self.text_index = TextIndex(folder / "text")
        self._text = TextReader(self.text_index)
        self._vectors: VectorReader | None = None
        kept: list[OneIndex] = [TextUpkeep(database, self.text_index, notice)]
        if embedder is not None:
            kept.append(self._with_vectors(folder / "vectors", embedder))
        self.upkeep = Upkeep(kept, notice)
        self._queries = _QueryVectors(embedder, notice)

    def _with_vectors(self, folder: Path, embedder: Embedder) -> OneIndex:
        from jackfield_kb.vectors.index import VectorIndex
        from jackfield_kb.vectors.indexer import VectorUpkeep
        from jackfield_kb.vectors.search import VectorReader

        index = VectorIndex(folder)
        self._vectors = VectorReader(index, embedder.model)
        return VectorUpkeep(self._database, index, embedder, self._notice)

    def open(self) -> Opened:
        """What can be searched with now; what cannot is seen to in the background."""
        with self._database.reading() as db:
            target = statements.position(db)
        text, vectors = self.text(), self.vectors()
        if target == Position():
            return Opened(text, vectors, self._queries)
        if text is None or (vectors is None and self._vectors is not None):
            self.upkeep.start()
            if text is None and vectors is None:
                self.upkeep.finished.wait(_PATIENCE)
                text = self.text()
        if text is None and vectors is None:
            raise IndexUnavailableError("the search index is being made anew; try again in a moment")
        self.upkeep.behind(self._behind(target, text, vectors))
        return Opened(text, vectors, self._queries)

    def _behind(self, target: Position, text: TextView | None, vectors: VectorView | None) -> bool:
        late = text is not None and text.position != target
        return late or (vectors is not None and vectors.position != target)

    def text(self) -> TextView | None:
        """Full text, unless it is missing or damaged."""
        try:
            return self._text.view()
        except DamagedIndexError as error:
            self._notice(f"the full-text index is damaged and is made anew: {error}")
            self._text.forget()
            self.text_index.discard()
            return None

    def vectors(self) -> VectorView | None:
        """The vectors, unless they are missing, damaged, or another model's."""
        if self._vectors is None:
            return None
        try:
            return self._vectors.view()
        except DamagedIndexError as error:
            self._notice(f"the vector index is damaged and is made anew: {error}")
            self._vectors.discard()
            return None

    def close(self) -> None:
        """Stop what runs, and let go of all files."""
        self.upkeep.close()
        self._text.forget()
        if self._vectors is not None:
            self._vectors.forget()


class Opened:
    """The indexes for one search."""

    def __init__(self, text: TextView | None, vectors: VectorView | None, queries: _QueryVectors) -> None:
        self.text = text
        self._vectors = vectors
        self._queries = queries

    def meaning(self, query: str, scopes: frozenset[str] | None, filters: Filters | None) -> Meaning | None:
        """The query among the vectors; None when there are none, or it cannot be embedded."""
        if self._vectors is None:
            return None
        vector = self._queries.vector(query)
        if vector is None:
            return None
        from jackfield_kb.vectors.reranking import Meaning

        return Meaning(self._vectors, vector, self._vectors.facets.select(scopes, filters))

    def weights(self, stems: Sequence[str]) -> dict[str, float]:
        """How much each word of the query tells."""
        return dict.fromkeys(stems, 1.0) if self.text is None else self.text.rarity(stems)


class _QueryVectors:
    """The vectors of queries, the last ones kept."""

    def __init__(self, embedder: Embedder | None, notice: Callable[[str], None]) -> None:
        self._embedder = embedder
        self._notice = notice
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Vector] = OrderedDict()
        self._failing = False

    def vector(self, query: str) -> Vector | None:
        """The vector of a query; None, with a notice the first time, when it cannot be had."""
        with self._lock:
            if query in self._kept:
                self._kept.move_to_end(query)
                return self._kept[query]
        if self._embedder is None:
            return None
        try:
            vector: Vector = self._embedder.embed([query])[0]
        except EmbeddingError as error:
            if not self._failing:
                self._notice(f"searching by words alone until this is mended: {error}")
            self._failing = True
            return None
        with self._lock:
            self._failing = False
            self._kept[query] = vector
            if len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
        return vector

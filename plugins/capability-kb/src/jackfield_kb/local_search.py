"""Search in the indexes on this machine, which follow a log of records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from jackfield_capability_types.knowledge import Record, SearchResults

from jackfield_kb.access import Access
from jackfield_kb.embedders import EmbeddingModel
from jackfield_kb.fulltext.index import stems
from jackfield_kb.index_files import size
from jackfield_kb.index_worker import Progress
from jackfield_kb.indexes import Indexes
from jackfield_kb.records.interface import Position, RecordLog
from jackfield_kb.search import SearchQuery, evidence, find
from jackfield_kb.search_engine import IndexFigures, LibraryQuery


class LocalSearch:
    """A full-text index, and a vector index if there is an embedding model."""

    def __init__(
        self,
        folder: Path,
        log: RecordLog,
        embedder: EmbeddingModel | None,
        notice: Callable[[str], None],
        origin: RecordLog | None = None,
    ) -> None:
        self._folder = folder
        self._log = log
        self._origin = origin or log
        """The log that `log` is a copy of."""
        self.indexes = Indexes(folder, log, embedder, notice)

    def search(self, asked: LibraryQuery) -> SearchResults:
        """Return the best matching records that the user may see, best first, each once."""
        opened = self.indexes.open()
        words = stems(asked.query)
        query = SearchQuery(words, opened.weights(words), asked.scopes, asked.filters, asked.limit)
        found = find(query, opened.text, opened.meaning(asked.query, asked.scopes, asked.filters))
        weights = query.weights if asked.snippets else None
        incomplete = None if opened.complete else "The search index is still being built."
        return SearchResults(evidence(self._log, found, asked.access, asked.limit, weights), incomplete)

    def get(self, ids: Sequence[str], access: Access) -> list[Record]:
        """Return the records that the user may see, by id, in the given order."""
        return self._log.by_ids(ids, access)

    def refresh(self, progress: Progress | None, *, rebuild: bool = False) -> None:
        """Update both indexes, or rebuild them while searches use the old ones."""
        self.indexes.upkeep.refresh(progress, rebuild=rebuild)

    def follow(self) -> None:
        """Do nothing: the writing process updates the indexes, and a search notices if it did not."""

    def warm(self) -> None:
        """Open the indexes and load the model."""
        self.indexes.open().meaning("warm", None, None)

    def figures(self) -> IndexFigures:
        """Return figures about the indexes."""
        text, vectors = self.indexes.text(), self.indexes.vectors()
        states = {"text": self._state(None if text is None else text.position)}
        if self.indexes.embedder is None:
            states["vectors"] = "off: no embeddings"
        else:
            states["vectors"] = self._state(None if vectors is None else vectors.position)
        return IndexFigures(
            passages=0 if text is None else text.passages,
            bytes={"text": size(self._folder / "text"), "vectors": size(self._folder / "vectors")},
            states=states,
        )

    def _state(self, position: Position | None) -> str:
        if position is None:
            return "missing" if self._origin.count_after(0) else "empty"
        lacking = self._origin.count_after(position.number)
        return state_of(lacking, position.step == self._origin.position().step)

    def close(self) -> None:
        """Stop background work and close all files."""
        self.indexes.close()


def state_of(lacking: int, knows_removals: bool) -> str:
    """Describe how far an index is behind the records."""
    if lacking:
        return f"{lacking} record{'s' if lacking > 1 else ''} behind"
    return "up to date" if knows_removals else "behind on removals"

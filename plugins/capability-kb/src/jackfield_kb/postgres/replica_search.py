"""Search on this machine over records in PostgreSQL."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from jackfield_capability_types.knowledge import Record, SearchResults

from jackfield_kb.access import Access
from jackfield_kb.embedders import EmbeddingModel
from jackfield_kb.index_worker import Indexer, Progress
from jackfield_kb.local_search import LocalSearch
from jackfield_kb.postgres.follower import Follower
from jackfield_kb.postgres.records import PostgresRecords
from jackfield_kb.postgres.replica import Replica
from jackfield_kb.postgres.vector_rescue import VectorRescue
from jackfield_kb.search_engine import IndexFigures, LibraryQuery

_AT_ONCE = 20_000
"""The number of records copied before they are indexed, so that a new host soon has something to search."""

_TELL = 10.0
"""Seconds between two progress messages in the log."""

_log = logging.getLogger("jackfield.kb")


class ReplicaSearch:
    """A copy of the records and local indexes, which follow PostgreSQL."""

    def __init__(
        self,
        folder: Path,
        records: PostgresRecords,
        embedder: EmbeddingModel | None,
        notice: Callable[[str], None],
    ) -> None:
        self._records = records
        self._replica = Replica(folder / "replica.db", records, self._discard)
        self._local = LocalSearch(folder, self._replica, embedder, notice, origin=records)
        self._embedder = embedder
        self._embeddings: Indexer | None = None
        self._follower = Follower(records.database, self._catch_up, notice)
        self._rescue: VectorRescue | None = None
        self._told = 0.0

    def search(self, asked: LibraryQuery) -> SearchResults:
        """Return the best matching records that the user may see, best first, each once."""
        found = self._local.search(asked)
        if not self._replica.complete:
            found.incomplete = "This host is still copying the records and building its search index."
        return found

    def get(self, ids: Sequence[str], access: Access) -> list[Record]:
        """Return records by id; those that are not copied yet come from PostgreSQL."""
        found = self._replica.by_ids(ids, access)
        if len(found) == len(set(ids)) or self._replica.complete:
            return found
        return self._records.by_ids(ids, access)

    def refresh(self, progress: Progress | None, *, rebuild: bool = False) -> None:
        """Compute missing vectors, copy the records, and update or rebuild the indexes."""
        while self._replica.pull(_AT_ONCE, wait=True):
            pass
        embeddings = self._embeddings_of()
        before = [] if embeddings is None else [embeddings]
        self._local.indexes.upkeep.refresh(progress, rebuild=rebuild, before=before)

    def follow(self) -> None:
        """Start following the records in the background."""
        self._follower.start()

    def warm(self) -> None:
        """Open the indexes and load the model."""
        self._local.warm()

    def figures(self) -> IndexFigures:
        """Return figures about the copy and the indexes."""
        figures = self._local.figures()
        return figures._replace(bytes={"copy": self._replica.bytes(), **figures.bytes})

    def close(self) -> None:
        """Stop background work and close all files."""
        self._local.indexes.upkeep.close()
        self._follower.close()
        self._local.close()
        self._replica.close()

    def _discard(self) -> None:
        self._local.indexes.discard()

    def _catch_up(self) -> None:
        upkeep = self._local.indexes.upkeep
        while self._replica.pull(_AT_ONCE) and not upkeep.is_closing:
            self._tell()
            upkeep.update()
        upkeep.update()
        if self._rescue is None and (embeddings := self._embeddings_of()) is not None:
            self._rescue = VectorRescue(embeddings, self._records.leases)
        if self._rescue is not None:
            self._rescue.look(upkeep.count)

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._told >= _TELL:
            self._told = now
            lacking, total = self._replica.lacks(), self._records.count_after(0)
            _log.info(
                "copying the knowledge base: %s of %s records copied", f"{total - lacking:,}", f"{total:,}"
            )

    def _embeddings_of(self) -> Indexer | None:
        """Return the indexer of vectors; it is created on first use, because it imports numpy."""
        if self._embeddings is None and self._embedder is not None:
            from jackfield_kb.postgres.embeddings import Embeddings

            self._embeddings = Embeddings(self._records, self._embedder)
        return self._embeddings

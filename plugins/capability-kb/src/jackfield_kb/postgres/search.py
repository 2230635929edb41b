"""Search inside PostgreSQL: it needs no files on this machine, and all hosts find a new record at once.

The search for candidates reads tables without text. Row-level security guards the records, so whatever the
candidates are, a user never gets another user's personal records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jackfield_capability_types.knowledge import Record, SearchResults

from jackfield_kb.access import Access
from jackfield_kb.chunks import key_of
from jackfield_kb.embedders import EmbeddingModel
from jackfield_kb.fulltext.index import stems
from jackfield_kb.index_worker import Indexer, IndexWorker, Progress
from jackfield_kb.local_search import state_of
from jackfield_kb.postgres import term_impacts
from jackfield_kb.postgres.candidates import Candidate, CandidateQuery, QueryTotals, totals
from jackfield_kb.postgres.follower import Follower
from jackfield_kb.postgres.passages import PassageTable
from jackfield_kb.postgres.records import PostgresRecords
from jackfield_kb.postgres.schema import Connection
from jackfield_kb.postgres.vector_rescue import VectorRescue
from jackfield_kb.query_vectors import QueryVectors
from jackfield_kb.search import RankedRecord, SearchQuery, by_words, evidence
from jackfield_kb.search_engine import IndexFigures, LibraryQuery

if TYPE_CHECKING:
    from jackfield_kb.vectors.search import Vector

_SAMPLE = 256
_SAMPLE_SECONDS = 30.0
"""How many seconds a sample of the vectors is used; the average similarity hardly changes."""


class PostgresSearch:
    """Searches with the tables of PostgreSQL."""

    def __init__(
        self, records: PostgresRecords, embedder: EmbeddingModel | None, notice: Callable[[str], None]
    ) -> None:
        self._records = records
        self._embedder = embedder
        self._passages = PassageTable(records)
        self._upkeep = IndexWorker(self._indexers, notice)
        self._queries = QueryVectors(embedder, notice)
        self._follower = Follower(records.database, self._catch_up, notice)
        self._embeddings: Indexer | None = None
        self._rescue: VectorRescue | None = None
        self._sample: tuple[float, Vector] | None = None

    def search(self, asked: LibraryQuery) -> SearchResults:
        """Return the best matching records that the user may see, best first, each once."""
        words = stems(asked.query)
        vector = None if self._embedder is None else self._queries.vector(asked.query)
        known, found = self._records.database.query(partial(self._candidates, asked, words, vector))
        if vector is None or known.dimensions is None:
            matches = {key_of(each.number, each.ordinal): each.matches for each in found if each.matches > 0}
            ranked = by_words(matches, term_impacts.ideal(words, known.weights)) if matches else iter(())
        else:
            ranked = self._ranked(found, vector)
        weights = known.weights if asked.snippets else None
        incomplete = None if known.complete else "The search tables are still being filled."
        return SearchResults(evidence(self._records, ranked, asked.access, asked.limit, weights), incomplete)

    async def _candidates(
        self, asked: LibraryQuery, words: Sequence[str], vector: Vector | None, connection: Connection
    ) -> tuple[QueryTotals, list[Candidate]]:
        model = "" if self._embedder is None else self._embedder.model
        known = await totals(connection, words, model)
        near = None
        if vector is not None and known.dimensions is not None:
            from jackfield_kb.postgres.embeddings import encoded

            near = model, encoded(vector)
        depth = SearchQuery(words, known.weights, asked.scopes, asked.filters, asked.limit).depth
        query = CandidateQuery(asked.scopes, asked.filters, depth)
        return known, await query.run(connection, words, known, near)

    def _ranked(self, found: Sequence[Candidate], vector: Vector) -> Iterator[RankedRecord]:
        import numpy as np

        from jackfield_kb.postgres.embeddings import decoded
        from jackfield_kb.vectors.candidates import Candidates

        if not found:
            return
        keyed = sorted((key_of(each.number, each.ordinal), each) for each in found)
        known = np.array([each.vector is not None for _, each in keyed])
        vectors = np.zeros((len(keyed), len(vector)), np.float32)
        if known.any():
            vectors[known] = decoded([each.vector for _, each in keyed if each.vector is not None])
        candidates = Candidates(
            vector,
            np.array([key for key, _ in keyed], np.uint64),
            np.array([each.matches for _, each in keyed], np.float32),
            vectors=vectors,
            known=known,
            sample=self._sampled(),
        )
        candidates.pull()
        yield from (RankedRecord(*each) for each in candidates.ranked())

    def _sampled(self) -> Vector:
        """Return a sample of all vectors, to estimate the average similarity of a query."""
        if self._sample is None or time.monotonic() - self._sample[0] > _SAMPLE_SECONDS:
            from jackfield_kb.postgres.embeddings import decoded

            model = "" if self._embedder is None else self._embedder.model

            async def read(connection: Connection) -> list[bytes]:
                rows = await connection.fetch(_SAMPLED, model, _SAMPLE)
                return [vector for (vector,) in rows]

            self._sample = time.monotonic(), decoded(self._records.database.query(read))
        return self._sample[1]

    def get(self, ids: Sequence[str], access: Access) -> list[Record]:
        """Return the records that the user may see, by id, in the given order."""
        return self._records.by_ids(ids, access)

    def refresh(self, progress: Progress | None, *, rebuild: bool = False) -> None:
        """Add the missing words and vectors to the tables, or replace the words of all passages."""
        self._upkeep.refresh(progress, rebuild=rebuild)

    def follow(self) -> None:
        """Index the records of other hosts in the background, unless those hosts do so."""
        self._follower.start()

    def warm(self) -> None:
        """Connect, and load the model."""
        self._records.position()
        if self._embedder is not None:
            self._queries.vector("warm")
            self._sampled()

    def figures(self) -> IndexFigures:
        """Return figures about the tables."""
        row: Any = self._records.database.query(lambda connection: connection.fetchrow(_FIGURES))
        states = {"text": state_of(self._passages.lacks(), knows_removals=True)}
        embeddings = self._embeddings_of()
        states["vectors"] = (
            "off: no embeddings"
            if embeddings is None
            else state_of(embeddings.lacks(rebuild=False), knows_removals=True)
        )
        return IndexFigures(row["passages"], {"text": row["text"], "vectors": row["vectors"]}, states)

    def close(self) -> None:
        """Stop background work."""
        self._upkeep.close()
        self._follower.close()

    def _catch_up(self) -> None:
        self._passages.refresh(self._upkeep.count, wait=False)
        if self._rescue is None and (embeddings := self._embeddings_of()) is not None:
            self._rescue = VectorRescue(embeddings, self._records.leases)
        if self._rescue is not None:
            self._rescue.look(self._upkeep.count)

    def _indexers(self) -> list[Indexer]:
        embeddings = self._embeddings_of()
        return [self._passages] if embeddings is None else [self._passages, embeddings]

    def _embeddings_of(self) -> Indexer | None:
        """Return the indexer of vectors; it is created on first use, because it imports numpy."""
        if self._embeddings is None and self._embedder is not None:
            from jackfield_kb.postgres.embeddings import IndexedEmbeddings

            self._embeddings = IndexedEmbeddings(self._records, self._embedder)
        return self._embeddings


_SAMPLED = """
    SELECT near.vector FROM models,
        generate_series(0, $2 - 1) AS place,
        LATERAL (
            SELECT vector FROM vectors
            WHERE model = $1 AND vectors.number >= place * models.number / $2
            ORDER BY vectors.number LIMIT 1
        ) AS near
    WHERE models.model = $1
"""
_FIGURES = """
    SELECT (SELECT passages FROM totals) AS passages,
        pg_total_relation_size('passages') + pg_total_relation_size('terms') AS text,
        pg_total_relation_size('vectors') AS vectors
"""

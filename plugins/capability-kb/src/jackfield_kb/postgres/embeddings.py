"""Vectors of passages in PostgreSQL: one host computes them, and all others read them.

The vectors of a model are stored in the order of record numbers, so one number says how far they reach.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jackfield_kb.chunks import passage_texts
from jackfield_kb.embedders import EmbeddingModel
from jackfield_kb.errors import EmbeddingFailedError
from jackfield_kb.postgres.candidates import index_of
from jackfield_kb.postgres.schema import Connection
from jackfield_kb.records.interface import Numbered

if TYPE_CHECKING:
    from jackfield_kb.postgres.records import PostgresRecords

Vectors = NDArray[np.float32]
_BATCH = 96
"""The number of records embedded and stored at once."""

_AT_ONCE = 48
"""The number of texts embedded at once."""

_LOOK = 0.2
_HEADER = struct.Struct(">HH")
_STORE = """
    INSERT INTO vectors (model, number, ordinal, facets, updated, vector)
    SELECT $1, number, $3, facets, updated, $4 FROM records WHERE number = $2
    ON CONFLICT (number, model, ordinal) DO UPDATE SET vector = excluded.vector
"""


def encoded(vector: Vectors) -> bytes:
    """Return a vector in pgvector's binary format for half precision."""
    return _HEADER.pack(len(vector), 0) + vector.astype(">f2").tobytes()


def decoded(rows: Sequence[bytes]) -> Vectors:
    """Return vectors from pgvector's binary format."""
    if not rows:
        return np.empty((0, 0), np.float32)
    data = np.frombuffer(b"".join(row[_HEADER.size :] for row in rows), ">f2")
    return data.reshape(len(rows), -1).astype(np.float32)


async def stored_vectors(connection: Connection, model: str, numbers: Sequence[int]) -> dict[int, Vectors]:
    """Return the vectors of records, one row per passage, up to the first record that has none yet."""
    reached = await reach(connection, model)
    rows = await connection.fetch(
        "SELECT number, vector FROM vectors WHERE model = $1 AND number = ANY ($2) ORDER BY number, ordinal",
        model,
        [number for number in numbers if number <= reached],
    )
    found = {
        number: decoded([vector for _, vector in group]) for number, group in groupby(rows, itemgetter(0))
    }
    # A record between others has none if it was just removed; the next changes contain its removal.
    missing = next((place for place, number in enumerate(numbers) if number not in found), len(numbers))
    return {number: found[number] for number in numbers[:missing]}


async def reach(connection: Connection, model: str) -> int:
    """Return the record number up to which records have vectors of a model."""
    found = await connection.fetchval("SELECT number FROM models WHERE model = $1", model)
    return int(found or 0)


class Embeddings:
    """Computes the vectors that are missing in PostgreSQL."""

    def __init__(self, records: PostgresRecords, embedder: EmbeddingModel) -> None:
        self._records = records
        self._embedder = embedder

    def lacks(self, *, rebuild: bool = False) -> int:  # noqa: ARG002 - vectors are never recomputed
        """Return the number of records without vectors."""
        return self._records.count_after(self._reach())

    def refresh(self, count: Callable[[int], None], *, rebuild: bool = False, wait: bool = True) -> bool:  # noqa: ARG002
        """Compute and store the missing vectors; only one host does so at a time.

        With `wait`, this waits until another host has finished; without it, this returns False.
        """
        name = f"embed:{self._embedder.model}"
        while self.lacks():
            with self._records.leases.held([name]) as other:
                if other is None:
                    self._compute(self._reach(), count)
                    return True
            if not wait:
                return False
            # Lets the caller stop.
            count(0)
            time.sleep(_LOOK)
        return True

    def _reach(self) -> int:
        return self._records.database.query(lambda connection: reach(connection, self._embedder.model))

    def _compute(self, number: int, count: Callable[[int], None]) -> None:
        while batch := self._records.after(number, _BATCH):
            texts = [passage_texts(item.record) for item in batch]
            flat = list(chain.from_iterable(texts))
            parts = []
            for start in range(0, len(flat), _AT_ONCE):
                count(0)
                parts.append(np.asarray(self._embedder.embed(flat[start : start + _AT_ONCE]), np.float32))
            self._store(batch, [len(each) for each in texts], np.concatenate(parts))
            number = batch[-1].number
            count(len(batch))

    def _store(self, batch: Sequence[Numbered], counts: Sequence[int], vectors: Vectors) -> None:
        model, dimensions = self._embedder.model, vectors.shape[1]
        rows: list[tuple[Any, ...]] = []
        for item, many in zip(batch, counts, strict=True):
            rows += [
                (model, item.number, place, encoded(vectors[len(rows) + place])) for place in range(many)
            ]

        async def work(connection: Connection) -> None:
            # Locks the head first, as a writer does, so that no record of the batch is removed meanwhile.
            await connection.fetch("SELECT FROM head FOR UPDATE")
            await self._records.leases.check(connection)
            known = await connection.fetchval(_ADVANCE, model, dimensions, batch[-1].number)
            if known != dimensions:
                raise EmbeddingFailedError(
                    f"the model {model} returns vectors of {dimensions} dimensions, but the stored ones have "
                    f"{known}; give one of the two models a different name"
                )
            await connection.executemany(_STORE, rows)

        from jackfield_kb.postgres.records import EVERYTHING

        self._records.database.run(work, EVERYTHING)
        self._records.database.announce()


_WORTH_IT = 5_000
"""With fewer vectors than this, comparing all of them is fast."""


class IndexedEmbeddings(Embeddings):
    """Also builds an index once there are many vectors, for the search inside PostgreSQL."""

    def refresh(self, count: Callable[[int], None], *, rebuild: bool = False, wait: bool = True) -> bool:
        """Compute and store the missing vectors; index all vectors if there are many and no index exists."""
        done = super().refresh(count, rebuild=rebuild, wait=wait)
        if done and self._records.database.query(self._needs_index):
            with self._records.leases.held([f"index:{index_of(self._embedder.model)}"]) as other:
                if other is None:
                    self._records.database.query(self._build_index)
        return done

    async def _needs_index(self, connection: Connection) -> bool:
        if await connection.fetchval(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)",
            index_of(self._embedder.model),
        ):
            return False
        some = "SELECT count(*) FROM (SELECT FROM vectors WHERE model = $1 LIMIT $2) AS first"
        return bool(await connection.fetchval(some, self._embedder.model, _WORTH_IT) == _WORTH_IT)

    async def _build_index(self, connection: Connection) -> None:
        # An interrupted build leaves an invalid index behind.
        await connection.execute(f"DROP INDEX IF EXISTS {index_of(self._embedder.model)}")
        statement = await connection.fetchval(_INDEX, index_of(self._embedder.model), self._embedder.model)
        await connection.execute(statement, timeout=_BUILD)


_BUILD = 24 * 3_600.0
"""How many seconds it may take to build the index of the vectors."""

_INDEX = """
    SELECT format(
        'CREATE INDEX CONCURRENTLY %I ON vectors USING hnsw ((vector::halfvec(%s)) halfvec_cosine_ops) '
        'WHERE model = %L', $1::text, dimensions, model
    )
    FROM models WHERE model = $2
"""
_ADVANCE = """
    INSERT INTO models (model, dimensions, number) VALUES ($1, $2, $3)
    ON CONFLICT (model) DO UPDATE SET number = greatest(models.number, excluded.number)
    RETURNING dimensions
"""

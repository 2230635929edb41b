"""Keeps the vector index up to date with the records."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from jackfield_kb.chunks import passage_texts
from jackfield_kb.embedders import EmbeddingModel
from jackfield_kb.errors import DamagedIndexError, EmbeddingFailedError
from jackfield_kb.index_worker import Count, IncrementalIndex, Notice
from jackfield_kb.records.interface import Numbered, Position, RecordLog
from jackfield_kb.vectors import index
from jackfield_kb.vectors.index import Rows, VectorIndex, VectorIndexState, added, compacted, too_many_dead

_SECONDS, _MOST_ROWS = 4.0, 8_192
"""Limits of the work between two saves, which a crash can lose."""

_BATCH = 96
"""The number of records read at once."""

_AT_ONCE = 48
"""The number of texts embedded at once."""


class VectorIndexer(IncrementalIndex[VectorIndexState]):
    """Updates the vector index."""

    def __init__(self, log: RecordLog, index: VectorIndex, embedder: EmbeddingModel, notice: Notice) -> None:
        super().__init__(log, index.folder, notice)
        self._index = index
        self._embedder = embedder

    def _begun(self) -> VectorIndexState:
        return self._index.start_rebuild(self._embedder.model)

    def _discard(self) -> None:
        self._index.discard()

    def _usable(self) -> VectorIndexState | None:
        try:
            state = self._index.state()
            if state is not None and state.model != self._embedder.model:
                self._notice(
                    f"the vectors are from the model {state.model}; rebuilding with {self._embedder.model}"
                )
                self._index.discard()
                return None
        except DamagedIndexError as error:
            self._notice(f"the vector index cannot be used and is being rebuilt: {error}")
            self._index.discard()
            return None
        return state

    def _fill(self, state: VectorIndexState, count: Count, *, publish: bool) -> None:
        before = state.position
        target, gone = self._log.changes(before)
        state = self._struck_out(state, gone)
        state = state._replace(position=state.position._replace(step=target.step))
        while batch := self._next_embedded(state.position.number, count):
            state = self._with(state, batch)
            if publish:
                self._index.record(state)
            count(len(batch.items))
        if not self._log.count_after(state.position.number):
            number = max(state.position.number, target.number)
            state = state._replace(position=Position(number, target.step), complete=True)
        elif state.position == before:
            return  # The stored vectors are not there yet.
        if too_many_dead(self._index.columns(state), state):
            state = compacted(self._index, state)
        self._index.record(state)
        self._index.tidy(state)

    def _next_embedded(self, number: int, count: Count) -> Rows | None:
        """Return the next records with their vectors, a few seconds of work; None if there are no more."""
        items: list[Numbered] = []
        counts: list[int] = []
        vectors: list[NDArray[np.float32]] = []
        enough = time.monotonic() + _SECONDS
        while time.monotonic() < enough and sum(counts) < _MOST_ROWS:
            batch = self._log.after(items[-1].number if items else number, _BATCH)
            if not batch:
                break
            found = self._vectors(batch, count)
            if not found:
                break
            items += batch[: len(found)]
            counts += map(len, found)
            vectors += found
        return Rows(items, counts, np.concatenate(vectors)) if items else None

    def _vectors(self, batch: Sequence[Numbered], count: Count) -> list[NDArray[np.float32]]:
        """Return each record's vectors, a row per chunk; of fewer records if some are not stored yet."""
        stored = self._log.vectors(self._embedder.model, batch)
        if stored is not None:
            count(0)
            return [stored[item.number] for item in batch if item.number in stored]
        texts = [passage_texts(item.record) for item in batch]
        rows = np.concatenate([*self._embedded([text for each in texts for text in each], count)])
        return np.split(rows, np.cumsum([len(each) for each in texts])[:-1])

    def _struck_out(self, state: VectorIndexState, gone: Sequence[int]) -> VectorIndexState:
        numbers = np.array([number for number in gone if number <= state.position.number], np.uint64)
        files = self._index.columns(state)
        return state._replace(extents=files.append(state.extents, {index.REMOVED: numbers}))

    def _with(self, state: VectorIndexState, rows: Rows) -> VectorIndexState:
        dimensions = rows.vectors.shape[1]
        if state.dimensions not in (0, dimensions):
            raise EmbeddingFailedError(
                f"the model {self._embedder.model} returns vectors of {dimensions} dimensions, "
                f"but the index has {state.dimensions}; run `jackfield kb rebuild`"
            )
        grown = added(self._index.columns(state), state, rows)
        return grown._replace(position=grown.position._replace(number=rows.items[-1].number))

    def _embedded(self, texts: Sequence[str], count: Count) -> Iterator[NDArray[np.float32]]:
        for start in range(0, len(texts), _AT_ONCE):
            # Lets the caller stop between batches.
            count(0)
            yield np.asarray(self._embedder.embed(texts[start : start + _AT_ONCE]), np.float32)

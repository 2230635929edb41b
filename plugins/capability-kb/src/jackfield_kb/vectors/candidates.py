"""Search candidates with both scores as arrays: vector similarity and word matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jackfield_kb import score_fusion
from jackfield_kb.vectors import binary_quantization as quantization
from jackfield_kb.vectors.search import RowSelection, Vector, VectorView

_AVERAGE = 0.1
"""The prior for the average cosine, for small libraries."""

_DOUBT = 32
"""The weight of the prior, in chunks."""

_ORDINAL = np.uint64(16)


class VectorQuery(NamedTuple):
    """A query vector, and the rows that it may find."""

    view: VectorView
    query: Vector
    selection: RowSelection | None

    def nearest(self, most: int) -> list[int]:
        """Return the keys of the nearest chunks."""
        return self.view.keys(self.view.search(self.query, self.selection, most).rows)

    def share(self) -> float:
        """Return the share of all chunks that the query may find."""
        return 1.0 if self.selection is None else self.selection.size / self.selection.total

    def allowed(self, keys: Sequence[int]) -> list[bool] | None:
        """Return a mask of the chunks that the query may find; None if one of them has no vector yet."""
        rows, known = self.view.rows_of(np.array(keys, np.uint64))
        if not known.all():
            return None
        if self.selection is None:
            return [True] * len(keys)
        found: list[bool] = self.selection.holds(rows).tolist()
        return found


class Candidates:
    """Chunks with matches and vector, grouped by record.

    Keys are sorted. A chunk that is not `known` has no vector yet. `sample` is a sample of all vectors.
    """

    def __init__(
        self,
        query: Vector,
        keys: NDArray[np.uint64],
        matches: Vector,
        *,
        vectors: Vector,
        known: NDArray[np.bool_],
        sample: Vector,
    ) -> None:
        self._query, self._keys, self._matches = query, keys, matches
        self._vectors, self._known, self._sample = vectors, known, sample
        numbers = self._keys >> _ORDINAL
        self._starts = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
        self._ends = np.append(self._starts[1:], len(numbers))
        self._numbers = numbers[self._starts]
        self._likes = self._liked()

    @classmethod
    def of(cls, meaning: VectorQuery, matches: Mapping[int, float]) -> Candidates:
        """Return the candidates of a query with their vectors from the index."""
        keys = np.fromiter(matches.keys(), np.uint64, len(matches))
        order = np.argsort(keys)
        figures = np.fromiter(matches.values(), np.float32, len(matches))[order]
        view, keys = meaning.view, keys[order]
        rows, known = view.rows_of(keys)
        return cls(meaning.query, keys, figures, vectors=view.vectors(rows), known=known, sample=view.sample)

    def pull(self) -> None:
        """Move the query towards the best records."""
        sums = self._sums()
        moved = self._query.copy()
        for record in np.argsort(-sums, kind="stable")[: score_fusion.PULLING]:
            place = self._best(self._likes, record)
            if self._known[place]:
                moved += score_fusion.PULL * self._vectors[place]
        self._query = moved / np.linalg.norm(moved)
        self._likes = self._liked()

    def ranked(self) -> Iterator[tuple[int, float, int]]:
        """Yield the number, score and best chunk of each relevant record, best first."""
        sums, both = self._sums(), score_fusion.fused(self._likes, self._matches)
        matches = np.maximum.reduceat(self._matches, self._starts)
        for record in np.argsort(-sums, kind="stable"):
            score = score_fusion.HYBRID(float(sums[record]))
            if score >= score_fusion.NOISE or matches[record]:
                shown = self._keys[self._best(both, record)]
                yield int(self._numbers[record]), score, int(shown)

    def _sums(self) -> Vector:
        """Return for each record the sum of its best similarity and best match, of any chunks."""
        likes = np.maximum.reduceat(self._likes, self._starts)
        return score_fusion.fused(likes, np.maximum.reduceat(self._matches, self._starts))

    def _liked(self) -> Vector:
        cosines = quantization.cosines(self._vectors, self._query)
        likes = score_fusion.similarity(cosines, self._average())
        found: Vector = np.where(self._known, likes, score_fusion.expected_similarity(self._matches))
        return found

    def _average(self) -> float:
        sample = quantization.cosines(self._sample, self._query)
        return float((sample.sum() + _DOUBT * _AVERAGE) / (len(sample) + _DOUBT))

    def _best(self, values: NDArray[np.float32], record: np.intp) -> int:
        start = self._starts[record]
        return int(start + np.argmax(values[start : self._ends[record]]))

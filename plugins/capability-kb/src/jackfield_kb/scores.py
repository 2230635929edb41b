"""Combines full-text overlap and vector similarity into one score.

Every candidate gets both figures, whichever search found it, on scales that are comparable between queries:

- *overlap* of words: BM25 divided by the highest possible score, with every word of the query in title and
  text any number of times. 0 is no common word, 1 is the maximum.
- *similarity* of vectors: the cosine, shifted so that 0 is the average chunk of this library and 1 is the
  same meaning. Models differ in the cosine of two random texts; the shift removes that difference.

The weighted sum ranks the candidates. The best ones then move the query vector towards themselves, each in
proportion to its probability of being right (pseudo-relevance feedback), and the sum is computed again. A
logistic curve turns the sum into a probability.

The parameters were tuned on two collections with judged answers, Cranfield (225 questions of engineers, 1,398
abstracts) and StackFAQ (620 paraphrased questions, 384 answers). All of these questions were used to choose
the form of the sum and the numbers below. To measure overfitting, the weight, the number of feedback records
and their strength were chosen again from a grid on one half of the questions (StackFAQ split by thread, so
that no answer is right in both halves) and measured on the other half, and once more on one collection for
the other. The curves were fitted to the ten best results of each question, including questions of the other
collection, which have no right answer. `nox -s bench -- retrieval` repeats the measurement; the README has
the results.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Figures = NDArray[np.float32]

WEIGHT = 0.7
"""The weight of overlap relative to similarity."""

PULLING = 2
"""The number of best records that move the query vector."""

PULL = 1.0
"""The weight of a certainly right record relative to the query, which has 1."""

NOISE = 0.03
"""The lowest score at which a record without a common word is returned."""

_LIKENESS_FROM_OVERLAP = (0.05, 1.3)
"""Estimates the similarity of a chunk that has no vector yet."""


class Curve(NamedTuple):
    """A logistic curve that maps a sum to a probability."""

    slope: float
    shift: float

    def __call__(self, value: float) -> float:
        """Return a probability that rises with the value."""
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, self.slope * value + self.shift))))


FIRST = Curve(10.47, -7.66)
"""The probability that a candidate is right, after the first ranking."""

HYBRID = Curve(7.12, -5.76)
"""The score of a result of both searches."""

WORDS_ALONE = Curve(11.72, -3.48)
"""The score of a result without vectors, from its overlap."""


def similarity(cosine: Figures, average: float) -> Figures:
    """Scale cosines from the average chunk (0) to the same meaning (1)."""
    return (cosine - average) / max(1 - average, 1e-6)


def expected_similarity(overlap: Figures) -> Figures:
    """Estimate the similarity of chunks that have no vector yet."""
    base, slope = _LIKENESS_FROM_OVERLAP
    return base + slope * overlap


def fused(like: Figures, overlap: Figures) -> Figures:
    """The weighted sums that rank the candidates."""
    return like + WEIGHT * overlap

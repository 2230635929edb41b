"""Combines word matches and vector similarity into one score.

Every candidate gets both figures, whichever search found it:

- *matches*: unscaled BM25. It is a sum over the shared words, so it grows with their number and rarity: many
  matches for a long question say more than a single shared word. A cosine does not grow like that, so the
  weight of the words rises with the number of matches. Dividing BM25 by its maximum for the query loses this.
- *similarity* of vectors: the cosine, shifted so that 0 is the average chunk of this library and 1 is the
  same meaning. Models differ in the cosine of two random texts; the shift removes that difference.

The weighted sum ranks the candidates. The two best records then pull the query vector towards themselves
(pseudo-relevance feedback), and the sum is computed again. A logistic curve turns it into a probability.

`WEIGHT`, `PULLING` and `PULL` are the only parameters of the ranking. Decision 0046 reports how they do on
seven collections of judged questions, each ranked with the values chosen on the other six; `nox -s bench --
retrieval` repeats the measurement.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Figures = NDArray[np.float32]

WEIGHT = 0.015
"""The weight of a point of BM25 relative to similarity; a rare shared word is worth about 5 points."""

PULLING = 2
"""The number of best records that pull the query vector towards themselves."""

PULL = 0.3
"""The weight of each of these records, relative to a weight of 1 for the query."""

NOISE = 0.03
"""The lowest score at which a record that shares no word with the query is returned."""

_SIMILARITY_FROM_MATCHES = (-0.03, 0.0175)
"""The estimated similarity of a chunk that has no vector yet: without a match, and per point of BM25."""


class Curve(NamedTuple):
    """A logistic curve that maps a sum to a probability."""

    slope: float
    shift: float

    def __call__(self, value: float) -> float:
        """Return a probability that rises with the value."""
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, self.slope * value + self.shift))))


HYBRID = Curve(7.0, -6.62)
"""The score of a result of both searches."""

WORDS_ALONE = Curve(11.72, -3.48)
"""The score of a result without vectors, from its BM25 as a share of the maximum for the query."""


def similarity(cosine: Figures, average: float) -> Figures:
    """Scale cosines from the average chunk (0) to the same meaning (1)."""
    return (cosine - average) / max(1 - average, 1e-6)


def expected_similarity(matches: Figures) -> Figures:
    """Estimate the similarity of chunks that have no vector yet."""
    base, slope = _SIMILARITY_FROM_MATCHES
    return base + slope * matches


def fused(like: Figures, matches: Figures) -> Figures:
    """Return the weighted sums that rank the candidates."""
    return like + WEIGHT * matches

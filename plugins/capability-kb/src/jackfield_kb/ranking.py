"""One score from words and meaning.

Every candidate gets both figures, whichever search found it, on scales that mean the same for every query:

- *overlap*, of the words: BM25 divided by what a passage would get that has every word of the query in
  title and text as often as one likes. 0 is no word in common, 1 is all that could be hoped for.
- *likeness*, of the meaning: the cosine, moved so that 0 is the average passage of this library and 1 is
  the same meaning. Models differ in how alike they find two random texts; this takes that out.

Their weighted sum orders the candidates once; the best of them then pull the query a little towards
themselves, each as far as it is probably right, and the sum is taken again. A logistic curve turns the sum
into a probability.

How the numbers came about: on two collections with judged answers, Cranfield (225 questions of engineers,
1,398 abstracts) and StackFAQ (620 paraphrased questions, 384 answers). The form of the sum and the numbers
below were chosen with all of these questions in view. To see what that flatters, the weight, the number of
records that pull and their strength were chosen anew from a grid on one half of the questions (StackFAQ
split by thread, so that no answer is right in both halves) and measured on the other, and once more on one
collection for the other. The curves were fitted to the ten best of each question, with the questions of
each collection put to the other one as well, so that they know what an answer to nothing looks like. `nox
-s bench -- retrieval` repeats the measurement; its result stands in the README.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Figures = NDArray[np.float32]

WEIGHT = 0.7
"""What overlap counts beside likeness."""

PULLING = 2
"""How many of the best pull the query."""

PULL = 1.0
"""How far one pulls that is certainly right, the query itself being 1."""

NOISE = 0.03
"""The score below which a record that shares no word with the query is not worth showing."""

_LIKENESS_FROM_OVERLAP = (0.05, 1.3)
"""What to expect of a passage that has no vector yet."""


class Curve(NamedTuple):
    """A logistic curve, from a sum to a probability."""

    slope: float
    shift: float

    def __call__(self, value: float) -> float:
        """Between 0 and 1, rising with the value."""
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, self.slope * value + self.shift))))


FIRST = Curve(10.47, -7.66)
"""After the first look, all candidates: how probably right one is that may pull."""

HYBRID = Curve(7.12, -5.76)
"""The score of a result when both searches took part."""

WORDS_ALONE = Curve(11.72, -3.48)
"""The score of a result, from its overlap, when there are no vectors."""


def likeness(cosine: Figures, average: float) -> Figures:
    """Cosines on a scale from the average passage (0) to the same meaning (1)."""
    return (cosine - average) / max(1 - average, 1e-6)


def expected_likeness(overlap: Figures) -> Figures:
    """What stands in for the likeness of passages that have no vector yet."""
    base, slope = _LIKENESS_FROM_OVERLAP
    return base + slope * overlap


def fused(like: Figures, overlap: Figures) -> Figures:
    """The sums by which candidates are ordered."""
    return like + WEIGHT * overlap

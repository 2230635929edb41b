"""A search: candidates by words and by meaning, one order, one result a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jackfield.capabilities.knowledge import Filters

from jackfield_kb.passages import number_of
from jackfield_kb.ranking import fusion
from jackfield_kb.text.search import TextView

if TYPE_CHECKING:
    from jackfield_kb.ranking.meaning import Meaning

_DEPTH = 64
"""Passages that each search contributes at least."""


class Asked(NamedTuple):
    """What is looked for, and where."""

    stems: Sequence[str]
    weights: Mapping[str, float]
    """How much each word tells."""

    scopes: frozenset[str] | None
    filters: Filters | None
    limit: int

    @property
    def depth(self) -> int:
        """How many passages to consider: a long record takes several of them."""
        return max(_DEPTH, 4 * self.limit)


class Found(NamedTuple):
    """A record by its number, how well it fits, and which of its passages shows it."""

    number: int
    score: float
    key: int


def find(asked: Asked, text: TextView | None, meaning: Meaning | None) -> Iterator[Found]:
    """All candidates, best first, each record once."""
    overlaps = _overlaps(asked, text)
    return _by_words(overlaps) if meaning is None else _by_both(asked, text, overlaps, meaning)


def _by_words(overlaps: Mapping[int, float]) -> Iterator[Found]:
    best: dict[int, tuple[float, int]] = {}
    for key, overlap in overlaps.items():
        best[number_of(key)] = max(best.get(number_of(key), (0.0, key)), (overlap, key))
    for number, (overlap, key) in sorted(best.items(), key=lambda each: (-each[1][0], each[0])):
        yield Found(number, fusion.WORDS_ALONE(overlap), key)


def _by_both(
    asked: Asked, text: TextView | None, overlaps: dict[int, float], meaning: Meaning
) -> Iterator[Found]:
    from jackfield_kb.ranking.meaning import Candidates

    near = [key for key in meaning.nearest(asked.depth) if key not in overlaps]
    overlaps |= dict.fromkeys(near, 0.0) | _overlaps_of(asked, text, near)
    if not overlaps:
        return
    candidates = Candidates(meaning, overlaps)
    candidates.pull()
    for number, score, key in candidates.ranked():
        yield Found(number, score, key)


def _overlaps(asked: Asked, text: TextView | None) -> dict[int, float]:
    if text is None or not asked.stems:
        return {}
    ideal = text.ideal(asked.stems, asked.weights)
    hits = text.search(asked.stems, asked.scopes, asked.filters, asked.depth)
    return {hit.key: hit.score / ideal for hit in hits}


def _overlaps_of(asked: Asked, text: TextView | None, keys: Sequence[int]) -> dict[int, float]:
    if text is None or not asked.stems:
        return {}
    ideal = text.ideal(asked.stems, asked.weights)
    return {hit.key: hit.score / ideal for hit in text.scores(asked.stems, keys)}

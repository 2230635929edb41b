"""A search: candidates by words and by meaning, one order, one result a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from jackfield_capability_types.knowledge import Filters

from jackfield_kb.passages import number_of
from jackfield_kb.ranking import fusion
from jackfield_kb.text.search import Hit, TextView

if TYPE_CHECKING:
    from jackfield_kb.ranking.meaning import Meaning

_DEPTH = 64
"""Passages that each search contributes at least."""

_BROAD = 8
"""When one passage in so many passes, or more, the words may be looked up before the filter is."""

_WORTH_IT = 500
"""So many times what is fetched for that has to be there: a filter in the index is quick enough before."""


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
    if meaning is None:
        return _by_words(_overlaps(asked, text, None))
    return _by_both(asked, text, _overlaps(asked, text, meaning), meaning)


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


def _overlaps(asked: Asked, text: TextView | None, meaning: Meaning | None) -> dict[int, float]:
    if text is None or not asked.stems:
        return {}
    ideal = text.ideal(asked.stems, asked.weights)
    hits = None if meaning is None else _sifted(asked, text, meaning)
    if hits is None:
        hits = text.search(asked.stems, asked.scopes, asked.filters, asked.depth)
    return {hit.key: hit.score / ideal for hit in hits}


def _sifted(asked: Asked, text: TextView, meaning: Meaning) -> list[Hit] | None:
    """The same hits as with the filter in the index, or None when that cannot be had this way.

    Without a condition tantivy skips whatever cannot come among the best, which halves its time. The best of
    all that pass are the best of those that pass, as long as enough do or there are no more.
    """
    share = meaning.share()
    if share * _BROAD < 1:
        return None
    wide = int(1.3 * asked.depth / share) + _DEPTH // 4
    if wide * _WORTH_IT > text.passages:
        return None
    hits = text.search(asked.stems, None, None, wide)
    allowed = meaning.allowed([hit.key for hit in hits])
    if allowed is None:
        return None
    passing = list(compress(hits, allowed))
    return passing[: asked.depth] if len(passing) >= asked.depth or len(hits) < wide else None


def _overlaps_of(asked: Asked, text: TextView | None, keys: Sequence[int]) -> dict[int, float]:
    if text is None or not asked.stems:
        return {}
    ideal = text.ideal(asked.stems, asked.weights)
    return {hit.key: hit.score / ideal for hit in text.scores(asked.stems, keys)}

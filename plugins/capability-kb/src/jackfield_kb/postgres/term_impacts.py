"""BM25 as an inner product of sparse vectors, which pgvector can compute.

PostgreSQL's own ranking considers neither the rarity of words nor the average length of texts. The share of
BM25 that depends only on the passage, its *impacts*, is a sparse vector with a dimension for each word. The
rarities of the query's words form another one. Their inner product is BM25, as in the full-text index on
disk: k1 is 1.2, b is 0.75, and a word in the title counts half as much again.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jackfield_kb.chunks import split
from jackfield_kb.fulltext.index import stems
from jackfield_kb.records.interface import Numbered

DIMENSIONS = 1_000_000_000
"""pgvector's maximum; a word's dimension is its hash."""

_MOST_TERMS = 16_000
"""The maximum number of words in a sparse vector in pgvector."""

_K1, _B, _TITLE = 1.2, 0.75, 0.5


class Passage(NamedTuple):
    """The words of a passage, and of the title that belongs to it."""

    number: int
    ordinal: int
    words: Counter[int]
    title: Counter[int]


class Averages(NamedTuple):
    """The average number of words of passages and titles."""

    words: float
    title: float


def term_of(stem: str) -> int:
    """Return the dimension of a word."""
    return zlib.crc32(stem.encode()) % DIMENSIONS


def passages_of(item: Numbered) -> Iterator[Passage]:
    """Yield the passages of a record, each with the record's title and tags."""
    record = item.record
    title = _counted(record.title)
    heading = "\n".join((record.title, *record.tags))
    for ordinal, part in enumerate(split(record.text)):
        yield Passage(
            item.number, ordinal, _counted(f"{heading}\n{record.text[part.start : part.end]}"), title
        )


def _counted(text: str) -> Counter[int]:
    found = Counter(map(term_of, stems(text)))
    return found if len(found) <= _MOST_TERMS else Counter(dict(found.most_common(_MOST_TERMS)))


def impacts(passage: Passage, averages: Averages) -> bytes:
    """Return the share of BM25 that a passage contributes for each of its words, as a sparse vector."""
    words = _Field(passage.words, averages.words)
    title = _Field(passage.title, averages.title)
    return sparse({term: words.impact(term) + _TITLE * title.impact(term) for term in passage.words})


class _Field:
    def __init__(self, counts: Counter[int], average: float) -> None:
        self._counts = counts
        self._norm = _K1 * (1 - _B + _B * counts.total() / max(average, 1.0))

    def impact(self, term: int) -> float:
        count = self._counts.get(term, 0)
        return (_K1 + 1) * count / (count + self._norm) if count else 0.0


def rarity(passages: int, total: int) -> float:
    """Return the weight of a word that occurs in `passages` of `total` passages."""
    return math.log(1 + (max(total - passages, 0) + 0.5) / (passages + 0.5))


def ideal(query: Sequence[str], weights: Mapping[str, float]) -> float:
    """Return the highest possible score, as if title and text contained every word arbitrarily often."""
    return sum(weights[stem] for stem in query) * (_K1 + 1) * (1 + _TITLE)


def sparse(values: Mapping[int, float]) -> bytes:
    """Return a sparse vector in pgvector's binary format."""
    terms = sorted(term for term, value in values.items() if value)
    return struct.pack(
        f">iii{len(terms)}i{len(terms)}f",
        DIMENSIONS,
        len(terms),
        0,
        *terms,
        *(values[term] for term in terms),
    )


def query_vector(query: Iterable[str], weights: Mapping[str, float]) -> bytes:
    """Return the weights of a query's words as a sparse vector; a repeated word counts again."""
    values: dict[int, float] = {}
    for stem in query:
        values[term_of(stem)] = values.get(term_of(stem), 0.0) + weights[stem]
    return sparse(values)

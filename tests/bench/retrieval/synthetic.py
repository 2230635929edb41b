"""A corpus of any size with realistic texts and vectors, made without a model.

Embedding a million texts takes hours. Records here have topics: the words of a topic are more frequent in its
texts, and the vectors of its texts lie around a common centre. Word frequencies follow Zipf's law.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from jackfield_capability_types.knowledge import TYPES, Filters, Record
from numpy.typing import NDArray

DIMENSIONS = 384
TOPICS = 2_000
_WORDS = 40_000
_TOPIC_WORDS = 40
_RANK = 40
"""The first rank: the words before it are stop words, which are not looked up."""
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
_START = datetime(2024, 1, 1, tzinfo=UTC)


class Corpus:
    """Any number of records, the same for the same seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        self._vocabulary = np.array([_word(number) for number in range(_WORDS)])
        chances = 1 / np.arange(_RANK, _WORDS + _RANK)
        self._cumulated = np.cumsum(chances / chances.sum())
        self._topics = self._random.integers(200, _WORDS, (TOPICS, _TOPIC_WORDS))

    def records(self, first: int, count: int) -> Iterator[Record]:
        """Return records with numbers from `first` on."""
        for number in range(first, first + count):
            topic = int(self._random.integers(TOPICS))
            yield Record(
                id=f"doc:{number}",
                title=f"{self._text(topic, 5)} t{topic}",
                text=self._text(topic, int(self._random.integers(60, 140))),
                type=TYPES[number % len(TYPES)],
                namespace="public" if number % 10 == 0 else "studio",
                tags=(f"area{number % 7}", f"team{number % 31}"),
                last_updated=_START + timedelta(hours=number % 17_520),
            )

    def query(self) -> str:
        """Return a question about a topic."""
        topic = int(self._random.integers(TOPICS))
        return f"{self._text(topic, int(self._random.integers(3, 9)))} t{topic}"

    def filters(self) -> Filters:
        """Return filters that about one record in seventy passes."""
        start = _START + timedelta(hours=int(self._random.integers(0, 8_000)))
        return Filters(
            type=TYPES[int(self._random.integers(len(TYPES)))],
            tags=(f"area{int(self._random.integers(7))}",),
            updated_from=start,
            updated_until=start + timedelta(hours=8_760),
        )

    def _text(self, topic: int, length: int) -> str:
        common = np.searchsorted(self._cumulated, self._random.random(length)).clip(max=_WORDS - 1)
        own = self._topics[topic][self._random.integers(0, _TOPIC_WORDS, length)]
        return " ".join(self._vocabulary[np.where(self._random.random(length) < 0.3, own, common)])


class SyntheticModel:
    """Vectors from the topic that a title names."""

    model = "synthetic"

    def __init__(self) -> None:
        self._centres = np.random.default_rng(2).standard_normal((TOPICS, DIMENSIONS), np.float32)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text, always the same."""
        headings = [text.partition("\n")[0] for text in texts]
        topics = [int(heading.rpartition(" t")[2]) for heading in headings]
        noise = np.random.default_rng(zlib.crc32("\n".join(texts).encode()))
        rows = self._centres[topics] + noise.standard_normal((len(texts), DIMENSIONS), np.float32)
        found: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return found


def _word(number: int) -> str:
    """Return a word for each number: common words are short."""
    word = ""
    number += 1
    while number:
        number, digit = divmod(number, len(_SYLLABLES))
        word += _SYLLABLES[digit]
    return word

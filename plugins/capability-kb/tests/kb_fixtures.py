"""A model without weights and records, shared by the tests of the library."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from jackfield_capability_types.knowledge import Evidence, Record
from jackfield_kb.fulltext.index import stems
from jackfield_kb.library import Access, Library
from numpy.typing import NDArray

EVERYTHING = Access.everything()


class WordModel:
    """Sums a vector for every word: texts with common words have similar vectors."""

    def __init__(self, model: str = "words", dimensions: int = 96) -> None:
        self.model = model
        self.dimensions = dimensions
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += len(texts)
        rows = np.array([self._one(text) for text in texts], np.float32).reshape(-1, self.dimensions)
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def _one(self, text: str) -> NDArray[np.float64]:
        # A text without words needs a vector too.
        total = 0.01 * _random(text, self.dimensions)
        for stem in stems(text):
            total += _random(stem, self.dimensions)
        return total


@lru_cache(50_000)
def _random(text: str, dimensions: int) -> NDArray[np.float64]:
    return np.random.default_rng(zlib.crc32(text.encode())).standard_normal(dimensions)


def opened(folder: Path, model: WordModel | None = None, notices: list[str] | None = None) -> Library:
    """Open a library that keeps its notices."""
    return Library(folder, embedder=model, notice=([] if notices is None else notices).append)


def filled(folder: Path, records: Sequence[Record], model: WordModel | None = None) -> Library:
    """Open a library with some records, ready for searches."""
    library = opened(folder, model)
    library.write([(None, records)])
    library.refresh()
    return library


def ids(found: Sequence[Evidence]) -> list[str]:
    return [each.record.id for each in found]


def notes(count: int, first: int = 0) -> list[Record]:
    """Return records that each have a unique word."""
    return [
        Record(f"doc:{number}", f"Note {number}", f"This one is about subject{number} and nothing else.")
        for number in range(first, first + count)
    ]

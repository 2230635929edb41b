"""The vectors of queries, with a cache."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from jackfield_kb.embedders import EmbeddingModel
from jackfield_kb.errors import EmbeddingFailedError

if TYPE_CHECKING:
    from jackfield_kb.vectors.search import Vector

_REMEMBERED = 256
"""The number of cached query vectors; agents repeat queries with different filters."""


class QueryVectors:
    """Embeds queries, with a cache."""

    def __init__(self, embedder: EmbeddingModel | None, notice: Callable[[str], None]) -> None:
        self._embedder = embedder
        self._notice = notice
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Vector] = OrderedDict()
        self._failing = False

    def vector(self, query: str) -> Vector | None:
        """Return the vector of a query; None if the model fails, with a notice for the first failure."""
        with self._lock:
            if query in self._kept:
                self._kept.move_to_end(query)
                return self._kept[query]
        if self._embedder is None:
            return None
        try:
            vector: Vector = self._embedder.embed([query])[0]
        except EmbeddingFailedError as error:
            if not self._failing:
                self._notice(f"full-text search only until this is fixed: {error}")
            self._failing = True
            return None
        with self._lock:
            self._failing = False
            self._kept[query] = vector
            if len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
        return vector

"""Full-text queries and their hits."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import tantivy
from jackfield_capability_types.knowledge import Filters

from jackfield_kb.errors import DamagedIndexError
from jackfield_kb.fulltext import index
from jackfield_kb.fulltext.index import TextIndex, damage_reported
from jackfield_kb.records.interface import Position

_TITLE = 0.5
"""The extra weight of a word in the title."""

_SATURATION = 2.2
"""The highest BM25 of one word, before the multiplication by its rarity."""

_NOTHING = 0.0


class Hit(NamedTuple):
    """A chunk and its score."""

    key: int
    score: float


class TextReader:
    """Keeps the full-text index open, and reloads it when it changes on disk."""

    def __init__(self, index: TextIndex) -> None:
        self._index = index
        self._lock = threading.Lock()
        self._mark: tuple[int, int] | None = None
        self._folder = ""
        self._open: tantivy.Index | None = None
        self._position = Position()
        self._complete = True

    def view(self) -> TextView | None:
        """Return the current state of the index; None if there is no index yet."""
        while (mark := self._index.mark()) is not None:
            try:
                return self._view(mark)
            except DamagedIndexError:
                # The index may have been replaced in the meantime.
                if mark == self._index.mark():
                    raise
        return None

    def _view(self, mark: tuple[int, int]) -> TextView | None:
        with self._lock:
            if mark != self._mark or self._open is None:
                self._follow()
                self._mark = mark
            return None if self._open is None else TextView(self._open, self._position, self._complete)

    def forget(self) -> None:
        """Close the index."""
        with self._lock:
            self._open, self._mark = None, None

    def _follow(self) -> None:
        state = self._index.state()
        if state is None:
            self._open = None
        elif self._open is None or state.folder != self._folder:
            self._open = self._index.open(state, check=True)
            self._folder = state.folder
        if self._open is not None and state is not None:
            with damage_reported():
                self._open.reload()
            self._position, self._complete = state.position, state.complete


class TextView:
    """One state of the index."""

    def __init__(self, index: tantivy.Index, position: Position, complete: bool) -> None:
        self.position = position
        self.complete = complete
        with damage_reported():
            self._searcher = index.searcher()
        self._schema = index.schema

    @property
    def passages(self) -> int:
        """The number of chunks."""
        return self._searcher.num_docs

    def search(
        self, stems: Sequence[str], scopes: Iterable[str] | None, filters: Filters | None, most: int
    ) -> list[Hit]:
        """Return the best matching chunks that pass the filters."""
        if not stems:
            return []
        return self._found(self._words(stems), index.conditions(self._schema, scopes, filters), most)

    def scores(self, stems: Sequence[str], keys: Sequence[int]) -> list[Hit]:
        """Return the scores of given chunks; chunks without a word of the query are omitted."""
        if not stems or not keys:
            return []
        # A union of term queries is three times as fast as a term set query.
        these = tantivy.Query.boolean_query(
            [(tantivy.Occur.Should, tantivy.Query.term_query(self._schema, index.KEY, key)) for key in keys]
        )
        return self._found(self._words(stems), [these], len(keys))

    def rarity(self, stems: Sequence[str]) -> dict[str, float]:
        """Return the weight of each word: its rarity, as in BM25."""
        total = self._searcher.num_docs
        weights = {}
        for stem in set(stems):
            count = self._searcher.doc_freq(index.WORDS, stem)
            weights[stem] = math.log(1 + (max(total - count, 0) + 0.5) / (count + 0.5))
        return weights

    def ideal(self, stems: Sequence[str], weights: Mapping[str, float]) -> float:
        """Return the highest possible score, as if title and text contained every word arbitrarily often."""
        return sum(weights[stem] for stem in stems) * _SATURATION * (1 + _TITLE)

    def _words(self, stems: Sequence[str]) -> tantivy.Query:
        queries = []
        for stem, times in Counter(stems).items():
            for field, weight in ((index.TITLE, _TITLE * times), (index.WORDS, float(times))):
                term = tantivy.Query.term_query(self._schema, field, stem, "freq")
                queries.append(term if weight == 1.0 else tantivy.Query.boost_query(term, weight))
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, each) for each in queries])

    def _found(self, words: tantivy.Query, conditions: Sequence[tantivy.Query], most: int) -> list[Hit]:
        query = words
        if conditions:
            musts = [
                (tantivy.Occur.Must, tantivy.Query.const_score_query(each, _NOTHING)) for each in conditions
            ]
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, words), *musts])
        with damage_reported():
            hits = self._searcher.search(query, most, count=False).hits
            keys = self._searcher.fast_field_values(index.KEY, [address for _, address in hits])
        return [Hit(int(key or 0), float(score)) for key, (score, _) in zip(keys, hits, strict=True)]

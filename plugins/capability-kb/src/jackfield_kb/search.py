"""Search over both indexes, and snippets of the results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice
from typing import TYPE_CHECKING, NamedTuple

from jackfield_capability_types.knowledge import Evidence, Filters, Record

from jackfield_kb import score_fusion
from jackfield_kb.access import Access
from jackfield_kb.chunks import number_of, ordinal_of, split
from jackfield_kb.fulltext.index import places
from jackfield_kb.fulltext.search import Hit, TextView
from jackfield_kb.records.interface import RecordLog

if TYPE_CHECKING:
    from jackfield_kb.vectors.candidates import VectorQuery

MOST = 280
"""The maximum length of a snippet without its ellipses."""

_MARK = "…"


def snippet(passage: str, weights: Mapping[str, float]) -> str:
    """Return the part of a chunk with the most query words, weighted by rarity and cut between words."""
    text = " ".join(passage.split())
    if len(text) <= MOST:
        return text
    start, end = _window(text, weights)
    start, end = _to_words(text, start, end)
    return f"{_MARK if start else ''}{text[start:end].strip()}{_MARK if end < len(text) else ''}"


def _window(text: str, weights: Mapping[str, float]) -> tuple[int, int]:
    """Return the start and end of the best part."""
    matches = places(text, weights)
    best, chosen = 0.0, (0, 0)
    for position, first in enumerate(matches):
        inside = [word for word in matches[position:] if word.end - first.start <= MOST]
        value = _value({word.stem for word in inside}, weights) + 0.01 * len(inside)
        if inside and value > best:
            best, chosen = value, (first.start, inside[-1].end)
    # Center the matches.
    start = max(0, chosen[0] - (MOST - (chosen[1] - chosen[0])) // 2)
    start = min(start, len(text) - MOST)
    return start, start + MOST


def _value(stems: Collection[str], weights: Mapping[str, float]) -> float:
    return sum(weights[stem] for stem in stems)


def _to_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Shrink the part to whole words, if it contains a space."""
    if start and text[start - 1] != " ":
        blank = text.find(" ", start, end)
        start = blank + 1 if blank >= 0 else start
    if end < len(text) and text[end] != " ":
        blank = text.rfind(" ", start, end)
        end = blank if blank > start else end
    return start, end


_AT_ONCE = 200
"""The number of records fetched at once."""


def evidence(
    log: RecordLog,
    found: Iterable[RankedRecord],
    access: Access,
    limit: int,
    snippets_for: Mapping[str, float] | None,
) -> list[Evidence]:
    """Return the best results as evidence, with snippets if the weights of the query's words are given."""
    shown: list[Evidence] = []
    texts: set[tuple[str, str]] = set()
    for each, record in _records(log, found, access, limit):
        # The same text under another id adds nothing.
        text = (record.title.strip().casefold(), record.text.strip())
        if text in texts:
            continue
        texts.add(text)
        piece = None if snippets_for is None else snippet(_passage(record, each.key), snippets_for)
        shown.append(Evidence(record, each.score, piece))
        if len(shown) == limit:
            break
    return shown


def _records(
    log: RecordLog, found: Iterable[RankedRecord], access: Access, limit: int
) -> Iterator[tuple[RankedRecord, Record]]:
    """Fetch the records of the results in batches; deleted ones are skipped.

    The indexes filter by access, and the query of the records does so again.
    """
    remaining = iter(found)
    while part := list(islice(remaining, min(limit, _AT_ONCE))):
        records = log.by_numbers([each.number for each in part], access)
        yield from ((each, records[each.number]) for each in part if each.number in records)


def _passage(record: Record, key: int) -> str:
    ordinal = ordinal_of(key)
    for number, part in enumerate(split(record.text)):
        if number == ordinal:
            return record.text[part.start : part.end]
    return record.text


_DEPTH = 64
"""The minimum number of chunks from each search."""

_BROAD = 8
"""If at least one in this many chunks passes the filter, the search may filter afterwards."""

_WORTH_IT = 500
"""Filtering afterwards pays off only if the index has this many times as many chunks as are fetched."""


class SearchQuery(NamedTuple):
    """A query with its scopes, filters and limit."""

    stems: Sequence[str]
    weights: Mapping[str, float]
    """The weight of each word."""

    scopes: frozenset[str] | None
    filters: Filters | None
    limit: int

    @property
    def depth(self) -> int:
        """The number of chunks to consider; a long record has several."""
        return max(_DEPTH, 4 * self.limit)


class RankedRecord(NamedTuple):
    """A record number, its score and its best chunk."""

    number: int
    score: float
    key: int


def find(asked: SearchQuery, text: TextView | None, meaning: VectorQuery | None) -> Iterator[RankedRecord]:
    """Yield the records of all candidates, best first, each once."""
    matches = _matches(asked, text, meaning)
    if meaning is not None:
        return _by_both(asked, text, matches, meaning)
    return iter(()) if text is None else by_words(matches, text.ideal(asked.stems, asked.weights))


def by_words(matches: Mapping[int, float], ideal: float) -> Iterator[RankedRecord]:
    """Yield the records with the best BM25, best first; `ideal` is its maximum for the query."""
    best: dict[int, tuple[float, int]] = {}
    for key, score in matches.items():
        best[number_of(key)] = max(best.get(number_of(key), (0.0, key)), (score, key))
    for number, (score, key) in sorted(best.items(), key=lambda each: (-each[1][0], each[0])):
        yield RankedRecord(number, score_fusion.WORDS_ALONE(score / ideal), key)


def _by_both(
    asked: SearchQuery, text: TextView | None, matches: dict[int, float], meaning: VectorQuery
) -> Iterator[RankedRecord]:
    from jackfield_kb.vectors.candidates import Candidates

    near = [key for key in meaning.nearest(asked.depth) if key not in matches]
    matches |= dict.fromkeys(near, 0.0)
    if text is not None:
        matches |= {hit.key: hit.score for hit in text.scores(asked.stems, near)}
    if not matches:
        return
    candidates = Candidates.of(meaning, matches)
    candidates.pull()
    yield from (RankedRecord(*each) for each in candidates.ranked())


def _matches(asked: SearchQuery, text: TextView | None, meaning: VectorQuery | None) -> dict[int, float]:
    """Return the chunks with the best BM25, and their scores."""
    if text is None or not asked.stems:
        return {}
    hits = None if meaning is None else _sifted(asked, text, meaning)
    if hits is None:
        hits = text.search(asked.stems, asked.scopes, asked.filters, asked.depth)
    return {hit.key: hit.score for hit in hits}


def _sifted(asked: SearchQuery, text: TextView, meaning: VectorQuery) -> list[Hit] | None:
    """Search without the filter and filter afterwards; None if that could miss results.

    Without a condition tantivy skips chunks that cannot be among the best, which halves its time. The result
    is the same as with the filter in the index, if enough hits pass or there are no more hits.
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

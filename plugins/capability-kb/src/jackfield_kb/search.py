"""Search over both indexes: evidence objects with snippets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice
from typing import TYPE_CHECKING, NamedTuple

from jackfield_capability_types.knowledge import Evidence, Filters, Record

from jackfield_kb import ranking
from jackfield_kb.access import Access
from jackfield_kb.chunks import number_of, ordinal_of, split
from jackfield_kb.fulltext.index import places
from jackfield_kb.fulltext.search import Hit, TextView
from jackfield_kb.records import statements
from jackfield_kb.records.database import Database

if TYPE_CHECKING:
    from jackfield_kb.vectors.reranking import Meaning

MOST = 280
"""Characters of a snippet at most, the marks for what was left out not counted."""

_MARK = "…"


def snippet(passage: str, weights: Mapping[str, float]) -> str:
    """The stretch with most of the query's words, the rarest counting most, cut between words."""
    text = " ".join(passage.split())
    if len(text) <= MOST:
        return text
    start, end = _window(text, weights)
    start, end = _to_words(text, start, end)
    return f"{_MARK if start else ''}{text[start:end].strip()}{_MARK if end < len(text) else ''}"


def _window(text: str, weights: Mapping[str, float]) -> tuple[int, int]:
    """Where the best stretch begins and ends."""
    matches = places(text, weights)
    best, chosen = 0.0, (0, 0)
    for position, first in enumerate(matches):
        inside = [word for word in matches[position:] if word.end - first.start <= MOST]
        value = _value({word.stem for word in inside}, weights) + 0.01 * len(inside)
        if inside and value > best:
            best, chosen = value, (first.start, inside[-1].end)
    # What is found stands in the middle, with as much before it as behind it.
    start = max(0, chosen[0] - (MOST - (chosen[1] - chosen[0])) // 2)
    start = min(start, len(text) - MOST)
    return start, start + MOST


def _value(stems: Collection[str], weights: Mapping[str, float]) -> float:
    return sum(weights[stem] for stem in stems)


def _to_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The same stretch, without halves of words at its ends, as long as there is a blank to cut at."""
    if start and text[start - 1] != " ":
        blank = text.find(" ", start, end)
        start = blank + 1 if blank >= 0 else start
    if end < len(text) and text[end] != " ":
        blank = text.rfind(" ", start, end)
        end = blank if blank > start else end
    return start, end


_AT_ONCE = 200
"""Records that are fetched at once."""


def evidence(
    database: Database,
    found: Iterable[Found],
    access: Access,
    limit: int,
    snippets_for: Mapping[str, float] | None,
) -> list[Evidence]:
    """The best of what was found; with snippets when the weights of the query's words are given."""
    shown: list[Evidence] = []
    texts: set[tuple[str, str]] = set()
    for each, record in _records(database, found, limit):
        # The indexes let through only what this user may see; a record may have changed hands since.
        if not access.allows(record):
            continue
        # The same under another id tells nothing new.
        text = (record.title.strip().casefold(), record.text.strip())
        if text in texts:
            continue
        texts.add(text)
        piece = None if snippets_for is None else snippet(_passage(record, each.key), snippets_for)
        shown.append(Evidence(record, each.score, piece))
        if len(shown) == limit:
            break
    return shown


def _records(database: Database, found: Iterable[Found], limit: int) -> Iterator[tuple[Found, Record]]:
    """What was found with its record, as far as it is still there; a few at a time."""
    remaining = iter(found)
    while part := list(islice(remaining, min(limit, _AT_ONCE))):
        with database.reading() as db:
            records = statements.by_numbers(db, [each.number for each in part])
        yield from ((each, records[each.number]) for each in part if each.number in records)


def _passage(record: Record, key: int) -> str:
    ordinal = ordinal_of(key)
    for number, part in enumerate(split(record.text)):
        if number == ordinal:
            return record.text[part.start : part.end]
    return record.text


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
        yield Found(number, ranking.WORDS_ALONE(overlap), key)


def _by_both(
    asked: Asked, text: TextView | None, overlaps: dict[int, float], meaning: Meaning
) -> Iterator[Found]:
    from jackfield_kb.vectors.reranking import Candidates

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

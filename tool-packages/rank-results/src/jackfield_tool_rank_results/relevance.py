"""Relevance of items to a query, word by word.

Not BM25: over a handful of short texts its length and frequency terms measure noise, and it ignores spelling.
rapidfuzz finds each word of the query in other spellings and forms (organisation, organization; design,
designs), in C and under the MIT licence. Its scorers for whole texts (WRatio, token_set_ratio) are not used:
they give unrelated texts 0.3 to 0.5, and the maximum for one common word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield_tool_rank_results.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from jackfield_tool_rank_results.items import Item

IN_TITLE, IN_TAGS, IN_SNIPPET = 1.0, 0.8, 0.6
# The similarity, in percent, above which two spellings count as one word.
SAME_WORD = 80


def relevance(query: str, items: Sequence[Item]) -> list[float] | None:
    """Return the relevance of each item, from 0 to 1, or None if the query has no words."""
    asked = tuple(dict.fromkeys(tokenize(query)))
    if not asked or not items:
        return None
    places = [_places(item) for item in items]
    others = list({word for place in places for word in place if _has_other_spellings(word)})
    matches = [_matches(word, others, places) for word in asked]
    weights = [_weight(match) for match in matches]
    return [
        sum(weight * match[at] for weight, match in zip(weights, matches, strict=True)) / sum(weights)
        for at in range(len(items))
    ]


def _places(item: Item) -> dict[str, float]:
    """Return each word of an item with the weight of its best position."""
    tag_words = [word for tag in item.tags for word in tag.split()]
    return {
        **dict.fromkeys(item.snippet_words, IN_SNIPPET),
        **dict.fromkeys(tag_words, IN_TAGS),
        **dict.fromkeys(item.title_words, IN_TITLE),
    }


def _matches(word: str, others: Collection[str], places: Sequence[Mapping[str, float]]) -> list[float]:
    similar = _similar(word, others)
    return [
        max((similar[found] * place[found] for found in similar.keys() & place.keys()), default=0.0)
        for place in places
    ]


def _has_other_spellings(word: str) -> bool:
    """Return whether similar spellings may match: not for numbers and short words (for, form; cat, cut)."""
    return len(word) >= 4 and not any(character.isdigit() for character in word)


def _similar(word: str, others: Collection[str]) -> dict[str, float]:
    if not _has_other_spellings(word):
        return {word: 1.0}
    from rapidfuzz import fuzz, process

    close = process.extract(word, others, scorer=fuzz.ratio, score_cutoff=SAME_WORD, limit=None)
    return {found: similarity / 100 for found, similarity, _ in close}


def _weight(match: Sequence[float]) -> float:
    """Return a weight that falls with the number of items that have the word, instead of stop word lists."""
    having = sum(value > 0 for value in match)
    return 1 - having / (len(match) + 1)

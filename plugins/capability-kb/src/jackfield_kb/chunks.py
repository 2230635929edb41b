"""Splits long texts into chunks that an embedding model can read whole, cut where a thought ends.

The title is not part of a chunk. The indexer puts it before the text, so that the third page of a document
still says what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MOST = 1_200
"""Characters of a passage at most: about 250 tokens of English, what the local model reads."""

_LEAST = 0.5
_BREAKS = (
    re.compile(r"\n\s*\n"),
    re.compile("[.!?…][\"')\\]]*\\s+|[\u3002\uff01\uff1f]"),
    re.compile(r"\n|[;:,]\s+"),
    re.compile(r"\s+"),
)
"""Where to cut, best first: between paragraphs, sentences, clauses or lines, words."""

_ORDINAL_BITS = 16


class Passage(NamedTuple):
    """A piece of a text, by where it begins and ends."""

    start: int
    end: int


def split(text: str) -> Iterator[Passage]:
    """The passages of a text, at least one, in order; together they hold all of it but blanks at the cuts."""
    start, length = 0, len(text)
    while length - start > MOST:
        # Pieces of about the same length: no orphan of a few words at the end.
        wanted = (length - start) // -(-(length - start) // MOST)
        end = start + _cut(text[start : start + MOST], wanted)
        yield Passage(start, end)
        start = end
    yield Passage(start, length)


def _cut(window: str, wanted: int) -> int:
    """Where the best break of a window ends, near what is wanted."""
    least = int(wanted * _LEAST)
    for breaks in _BREAKS:
        ends = [found.end() for found in breaks.finditer(window, least) if found.end() < len(window)]
        if ends:
            return min(ends, key=lambda end: abs(end - wanted))
    return wanted


def key_of(number: int, ordinal: int) -> int:
    """A passage of a record as one number, in the order of records and passages."""
    return number << _ORDINAL_BITS | ordinal


def number_of(key: int) -> int:
    """The number of a passage's record."""
    return key >> _ORDINAL_BITS


def ordinal_of(key: int) -> int:
    """Which passage of its record it is, counted from 0."""
    return key & ((1 << _ORDINAL_BITS) - 1)

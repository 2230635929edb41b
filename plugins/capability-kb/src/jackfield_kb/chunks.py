"""Splits long texts into chunks that fit an embedding model, if possible at ends of paragraphs or sentences.

The title is not part of a chunk. The indexer puts it before the text, so that every chunk of a long document
still shows what the document is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from jackfield_capability_types.knowledge import Record

MOST = 1_200
"""The maximum number of characters in a chunk: about 250 tokens of English, the local model's limit."""

_LEAST = 0.5
_BREAKS = (
    re.compile(r"\n\s*\n"),
    re.compile("[.!?…][\"')\\]]*\\s+|[\u3002\uff01\uff1f]"),
    re.compile(r"\n|[;:,]\s+"),
    re.compile(r"\s+"),
)
"""Where to cut, best first: after paragraphs, sentences, clauses or lines, words."""

_ORDINAL_BITS = 16


class ChunkSpan(NamedTuple):
    """The start and end of a chunk in its text."""

    start: int
    end: int


def split(text: str) -> Iterator[ChunkSpan]:
    """Yield the chunks of a text in order, at least one; together they cover the whole text."""
    start, length = 0, len(text)
    while length - start > MOST:
        # Chunks of similar length, so that the last one is not just a few words.
        wanted = (length - start) // -(-(length - start) // MOST)
        end = start + _cut(text[start : start + MOST], wanted)
        yield ChunkSpan(start, end)
        start = end
    yield ChunkSpan(start, length)


def passage_texts(record: Record) -> list[str]:
    """Return the texts to embed for a record: each chunk with the title before it."""
    return [f"{record.title}\n{record.text[part.start : part.end]}" for part in split(record.text)]


def _cut(window: str, wanted: int) -> int:
    """Return the end of the best break in a window, as close as possible to the wanted length."""
    least = int(wanted * _LEAST)
    for breaks in _BREAKS:
        ends = [found.end() for found in breaks.finditer(window, least) if found.end() < len(window)]
        if ends:
            return min(ends, key=lambda end: abs(end - wanted))
    return wanted


def key_of(number: int, ordinal: int) -> int:
    """Combine a record number and a chunk's ordinal into one sortable key."""
    return number << _ORDINAL_BITS | ordinal


def number_of(key: int) -> int:
    """Return the record number of a key."""
    return key >> _ORDINAL_BITS


def ordinal_of(key: int) -> int:
    """Return the ordinal of a key's chunk in its record, from 0."""
    return key & ((1 << _ORDINAL_BITS) - 1)

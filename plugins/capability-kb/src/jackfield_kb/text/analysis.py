"""From a text to the words that are looked up: lower case, no accents, no stop words, English stems."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import cache
from typing import NamedTuple

import tantivy

NAME = "jackfield_english"
"""Under which name the index knows the analysis; a new analysis takes a new name."""

_LONGEST_WORD = 60
_BEGINNING = 3
_WORD = re.compile(r"\w+")


class Word(NamedTuple):
    """A word of a text as it is looked up, and where it stands."""

    stem: str
    start: int
    end: int


@cache
def analyzer() -> tantivy.TextAnalyzer:
    """The analysis of texts and queries alike."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(_LONGEST_WORD))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
        .filter(tantivy.Filter.stopword("english"))
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


def stems(text: str) -> list[str]:
    """The words of a text, as they are looked up."""
    return analyzer().analyze(text)


def places(text: str, wanted: Collection[str]) -> list[Word]:
    """Where some words stand in a text."""
    if not wanted:
        return []
    # Analysing every word would take longer than the search did, so only those are that begin right.
    beginnings = {stem[:_BEGINNING] for stem in wanted}
    text = (text if text.isascii() else _folded(text)).lower()
    found = []
    for match in _WORD.finditer(text):
        word = match.group()
        if word[:_BEGINNING] in beginnings:
            found += [Word(stem, *match.span()) for stem in stems(word) if stem in wanted]
    return found


def _folded(text: str) -> str:
    """A text without its accents, every character in its place."""
    return "".join(c if c.isascii() else unicodedata.normalize("NFKD", c)[0].lower()[:1] for c in text)


def storable(text: str) -> str:
    """A text that every library takes: halves of a surrogate pair are no characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if unicodedata.category(c) == "Cs" else c for c in text)
    return text

"""From a text to the words that are looked up: lower case, no accents, no stop words, English stems."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from operator import attrgetter
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
    text = (text if text.isascii() else _folded(text)).lower()
    found = []
    for beginning in {stem[:_BEGINNING] for stem in wanted}:
        for match in _words_beginning(beginning, text):
            found += [Word(stem, *match.span()) for stem in _stems_of_word(match.group()) if stem in wanted]
    return sorted(found, key=attrgetter("start"))


def _words_beginning(beginning: str, text: str) -> Iterator[re.Match[str]]:
    """The words whose first characters are just these."""
    start = text.find(beginning)
    while start >= 0:
        before = text[start - 1 : start]
        if not (before.isalnum() or before == "_"):
            word = _WORD.match(text, start)
            if word is not None and word.group()[:_BEGINNING] == beginning:
                yield word
        start = text.find(beginning, start + 1)


@lru_cache(4_096)
def _stems_of_word(word: str) -> tuple[str, ...]:
    return tuple(stems(word))


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

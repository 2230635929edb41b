"""Words: their stems, function words, and the words in identifiers."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
STOP = frozenset(
    """
    a an the this that these those some any each every all both either neither i me my mine we us our
    ours you your yours he him his she her hers it its they them their one ones who whom whose which
    what when where why how is am are was were be been being do does did done doing have has had having
    can could will would shall should may might must let lets get got give given go goes going make made
    want wants wanted need needs like please just only also too very more most much many few several
    other another same such so than then there here now and or but not no nor if of to in on at by for
    from with without about into onto over under out up down off as per via between before after during
    until till while because say says said tell told know known don didn doesn isn aren wasn couldn
    wouldn called named titled entitled something anything somebody anybody someone anyone else again
    still already yes ok okay
    """.split()  # noqa: SIM905 - a list would take a line for each word
)
"""Function words, which say nothing about the subject of a sentence."""


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return [found.group().lower().replace("\u2019", "'") for found in WORD.finditer(text)]


@cache
def _stemmer() -> Any:
    # The import loads the stemmers of all languages, so it waits until the first use.
    import snowballstemmer  # type: ignore[import-untyped]

    return snowballstemmer.stemmer("english")


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return the part that a word shares with its other forms."""
    return str(_stemmer().stemWord(word.lower().removesuffix("'s")))


def stems(text: str) -> set[str]:
    """Return the stems of all words."""
    return {*map(stem, words(text))}


def content(text: str) -> list[str]:
    """Return the stems of the words that are not function words."""
    return [stem(word) for word in words(text) if word.split("'")[0] not in STOP and len(word) > 1]


def name_words(name: str) -> list[str]:
    """Return the words of an identifier such as `start_time` or `startTime`."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]


def spoken_name(name: str) -> str:
    """Return an identifier as a person would say it."""
    return " ".join(name_words(name))

"""Text: its words, sentences and spans, and verbatim parts such as addresses and quotes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import snowballstemmer  # type: ignore[import-untyped]
from markdown_it import MarkdownIt

GAP = "\x00"

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


# Words.


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return [found.group().lower().replace("\u2019", "'") for found in WORD.finditer(text)]


_stemmer = cache(lambda: snowballstemmer.stemmer("english"))


@cache
def stem(word: str) -> str:
    """Return the part that a word shares with its other forms."""
    found: str = _stemmer().stemWord(word.lower().removesuffix("'s"))
    return found


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


# Spans.


class Span(NamedTuple):
    """The positions of the first character and the one after the last."""

    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """Whether they share a character."""
        return self.start < other.end and other.start < self.end


def blanked(text: str, spans: Iterable[Span]) -> str:
    """Return the text with a gap of the same length in place of each span."""
    for span in spans:
        text = text[: span.start] + GAP * (span.end - span.start) + text[span.end :]
    return text


# Verbatim parts.

EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}")
URL = re.compile(r"\bhttps?://[^\s<>\"']+[^\s<>\"'.,;:!?)]")
ID = re.compile(
    r"(?<![\w/@.:])(?!(?i:https?|mailto):)[A-Za-z][\w-]*:[\w][\w./-]*[\w](?![\w@])"
    r"|(?i:\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b)"
)
"""An identifier such as `person:ada`, or a UUID."""

_QUOTED = re.compile(
    r"`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)'([^']{2,})'(?!\w)|\u2018([^\u2019]{2,})\u2019"
)
_NAMED = re.compile(r"\b(?:called|named|titled|entitled)\s+([^\x00,;.!?\n]+)", re.IGNORECASE)


def quoted(text: str) -> list[str]:
    """Return the texts in quotes, without the quotes."""
    return [next(filter(None, match.groups())).strip() for match in _QUOTED.finditer(text)]


def named_texts(text: str) -> list[str]:
    """Return the names that a text gives things, up to a gap or the end of the clause."""
    found = []
    for match in _NAMED.finditer(text):
        name = match.group(1).split()
        while name and not content(name[-1]):  # A name does not end with a function word.
            name.pop()
        found += [" ".join(name)] if name else []
    return found


# Sentences.

_END = re.compile(r"```(?:.|\n)*?(?:```|$)|(?<=[.!?…])[\"')\]*_\u2019\u201d]*\s+(?=[A-ZÀ-Þ0-9\"“*#-]|\Z)|\n")
_NO_END = re.compile(
    r"(?:^|\s)[(\"“]?(?:(?i:e\.g|i\.e|cf|vs|approx|no|dr|mr|mrs|ms|prof|st|fig|jr|sr)|[A-HJ-Z]|\d{1,2})\.$"
)
"""After "1.", "e.g." or an initial the sentence continues."""

_LABEL = re.compile(r"\s*(?:[-+•]\s+)?([*_]{1,3})[^*_]+\1[^\S\n]*")
"""An emphasised label such as "**State.**", which belongs to the sentence after it."""

MARKDOWN = MarkdownIt("commonmark")


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences, lines and code blocks without losing a character.

    The last element is what follows the last end; it may be empty.
    """
    found, start = [], 0
    for match in _END.finditer(text):
        part = text[start : match.end()]
        if part.strip() and not _NO_END.search(part.rstrip()) and not _LABEL.fullmatch(part):
            found.append(part)
            start = match.end()
    return [*found, text[start:]]


def sentences(text: str) -> list[str]:
    """Return the sentences of paragraphs and list items; headings only if there is nothing else."""
    blocks = [
        (before.type == "heading_open", " ".join(each.content.split()))
        for before, each in pairwise(MARKDOWN.parse(text))
        if each.type == "inline"
    ]
    body = [block for is_heading, block in blocks if not is_heading] or [block for _, block in blocks]
    return [each.strip() for block in body for each in split_sentences(block) if each.strip()]


def untitled(text: str, title: str) -> str:
    """Return a text without the title that it begins with, unless a sentence begins with it."""
    begins = re.match(rf"[\s#*]*{re.escape(title)}[\s*]*", text, re.IGNORECASE) if title else None
    rest = text[begins.end() :] if begins else ""
    is_sentence = not rest or rest[0].islower() or rest[0] in "',\u2019"
    return text if is_sentence else rest.lstrip(" :.\u2013\u2014-")

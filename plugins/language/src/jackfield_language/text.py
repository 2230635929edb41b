"""Text: its sentences and spans, and verbatim parts such as addresses and quotes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt

from jackfield_language.words import content

GAP = "\x00"

# Spans.


class Span(NamedTuple):
    """The positions of the first character and the one after the last."""

    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """Return whether both spans share a character."""
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
"""After "1.", "e.g." or an initial, the sentence continues."""

_LABEL = re.compile(r"\s*(?:[-+•]\s+)?([*_]{1,3})[^*_]+\1[^\S\n]*")
"""An emphasised label such as "**State.**", which belongs to the sentence after it."""

MARKDOWN = MarkdownIt("commonmark")


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences, lines and code blocks without losing a character.

    The last element is the text after the last end; it may be empty.
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


def shortened(text: str, most: int) -> str:
    """Return at most this many characters of a text, cut between words."""
    return text if len(text) <= most else f"{text[:most].rsplit(' ', 1)[0]} ..."

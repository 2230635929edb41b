"""What is written exactly: e-mail addresses, links, ids, and words in quotes."""

from __future__ import annotations

import re
from typing import NamedTuple

from jackfield_local.language.spans import Span
from jackfield_local.language.words import content

_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}")
_URL = re.compile(r"\bhttps?://[^\s<>\"']+[^\s<>\"'.,;:!?)]")
_ID = re.compile(r"(?<![\w/@.:])[A-Za-z][\w-]*:[\w][\w./-]*[\w](?![\w@])")
_UUID = re.compile(r"\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b", re.IGNORECASE)
_QUOTED = re.compile(
    r"`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)'([^']{2,})'(?!\w)|\u2018([^\u2019]{2,})\u2019"
)


_NAMED = re.compile(r"\b(?:called|named|titled|entitled)\s+([^\x00,;.!?\n]+)", re.IGNORECASE)


class Piece(NamedTuple):
    """A piece of the text, and where it stands."""

    text: str
    span: Span


def _all(pattern: re.Pattern[str], text: str) -> list[Piece]:
    return [Piece(match.group(), Span(*match.span())) for match in pattern.finditer(text)]


def emails(text: str) -> list[Piece]:
    """E-mail addresses."""
    return _all(_EMAIL, text)


def urls(text: str) -> list[Piece]:
    """Addresses on the web."""
    return _all(_URL, text)


def ids(text: str) -> list[Piece]:
    """Ids such as `person:ada`, and such as machines make."""
    return [
        each
        for each in [*_all(_ID, text), *_all(_UUID, text)]
        if not each.text.lower().startswith(("http:", "https:", "mailto:"))
    ]


def quoted(text: str) -> list[Piece]:
    """What stands in quotes, without them; the span has them."""
    return [
        Piece(next(filter(None, match.groups())).strip(), Span(*match.span()))
        for match in _QUOTED.finditer(text)
    ]


def named_texts(text: str) -> list[str]:
    """What something is said to be called, up to a gap or the end of the clause."""
    found = []
    for match in _NAMED.finditer(text):
        name = match.group(1).split()
        while name and not content(name[-1]):  # A function word leads on from the name.
            name.pop()
        found += [" ".join(name)] if name else []
    return found

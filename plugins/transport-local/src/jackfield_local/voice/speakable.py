"""Text as it is written, made into words that can be said aloud.

With each word goes how much of the text has been said with it, so that from how far a sentence was heard it
is known how much of the text was. What numbers, dates and units are called is left to the synthesiser.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple


class Script(NamedTuple):
    """The words of a sentence as they are said, and for each how many characters of the text it completes."""

    words: tuple[str, ...]
    reached: tuple[int, ...]


class _Stretch(NamedTuple):
    """A part of what is said, and the part of the text that it stands for."""

    said: int
    written: int
    end: int
    """Where in the text it ends; before it has been said whole, nothing of the text has been."""
    verbatim: bool


_Say = Callable[[str], str]

_READ_OUT = {
    "e.g.": "for example",
    "i.e.": "that is",
    "vs.": "versus",
    "cf.": "compare",
    "→": "to",
    "≤": "at most",
    "≥": "at least",
    "≈": "about",
}
_SPELLED = 4
"""So many characters of an id are said: enough to tell two apart."""


def script(sentence: str) -> Script:
    """How a sentence is said; without words when there is nothing in it to be said."""
    said = ""
    stretches: list[_Stretch] = []
    place = 0
    for found in _SPECIAL.finditer(sentence):
        stretches.append(_Stretch(len(said), place, found.start(), verbatim=True))
        said += sentence[place : found.start()]
        stretches.append(_Stretch(len(said), found.start(), found.end(), verbatim=False))
        said += _RULES[found.lastgroup or ""][1](found.group())
        place = found.end()
    stretches.append(_Stretch(len(said), place, len(sentence), verbatim=True))
    said += sentence[place:]
    if not any(each.isalnum() for each in said):
        return Script((), ())
    return _counted(said, stretches, len(sentence))


def _counted(said: str, stretches: list[_Stretch], length: int) -> Script:
    begins = [each.said for each in stretches]
    ends = [*begins[1:], len(said)]
    words: list[str] = []
    reached: list[int] = []
    for found in re.finditer(r"\S+", said):
        index = bisect_right(begins, found.end() - 1) - 1
        stretch = stretches[index]
        if stretch.verbatim:
            reached.append(stretch.written + found.end() - stretch.said)
        else:
            reached.append(
                stretch.end if found.end() >= len(said[: ends[index]].rstrip()) else stretch.written
            )
        words.append(found.group())
    reached[-1] = length
    if words[-1][-1].isalnum():
        words[-1] += (
            "."  # A heading or a point of a list ends like a sentence, or the voice stays up in the air.
        )
    return Script(tuple(words), tuple(reached))


def _label(link: str) -> str:
    return " ".join(script(link[link.index("[") + 1 : link.index("](")]).words).rstrip(".")


def _host(address: str) -> str:
    bare = re.sub(r"^<?(?:[a-z]+://)?(?:[^/@]*@)?(?:www\.)?", "", address, flags=re.IGNORECASE)
    return " dot ".join(re.split(r"[/:?#>]", bare, maxsplit=1)[0].split("."))


def _mail(address: str) -> str:
    name, host = address.split("@", 1)
    return f"{re.sub('[._+-]+', ' dot ', name).strip()} at {' dot '.join(host.split('.'))}"


def _id(name: str) -> str:
    ending = [each for each in name if each.isalnum()][-_SPELLED:]
    return f"id ending in {' '.join(ending).upper()}"


def _moment(written: str) -> str:
    return f"{written[:10]} at {written[11:16]}"


def _silent(_: str) -> str:
    return ""


_RULES: dict[str, tuple[str, _Say]] = {
    "code": (r"```(?:.|\n)*?(?:```|$)", lambda _: " a piece of code. "),
    "link": (r"!?\[[^\]\n]*\]\([^()\n]*\)", _label),
    "url": (r"<?(?:https?://|ftp://|www\.)[^\s<>()\[\]\"]*[^\s<>()\[\]\".,;:!?'*_`]>?", _host),
    "mail": (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", _mail),
    "source": (r"\s?\[[^\]\s]{1,80}\]", _silent),
    "moment": (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", _moment),
    "uuid": (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", _id),
    "id": (
        r"\b(?=[\w-]*[A-Za-z])(?:[A-Za-z]+[-_:](?=\w*\d)[A-Za-z0-9]{6,}|(?=\w*\d\w*\d\w*\d)\w{12,})\b",
        _id,
    ),
    "tag": (r"</?[a-zA-Z][^<>]{0,200}>", _silent),
    "start": (r"(?m:^[ \t]*(?:#{1,6}|[-*+•]|>+)[ \t]+)", _silent),
    "rule": (r"[|:=-]{3,}|[*_~`]{3,}", _silent),
    "bar": (r"\s*\|\s*", lambda _: " "),
    "mark": (r"`+|(?<!\d)\*+|\*+(?!\d)|~~|(?<!\w)_+(?=\w)|(?<=[\w.!?])_+(?!\w)", _silent),
    "joined": (r"(?<=[A-Za-z0-9])_+(?=[A-Za-z0-9])", lambda _: " "),
    "read_out": ("|".join(re.escape(each) for each in _READ_OUT), lambda text: _READ_OUT[text]),
    "picture": (r"[\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\ufe0f\u200d\U0001f000-\U0001faff]+", _silent),
}
"""By name: what is recognised, and how it is said. The first that fits counts."""

_SPECIAL = re.compile("|".join(f"(?P<{name}>{pattern})" for name, (pattern, _) in _RULES.items()))

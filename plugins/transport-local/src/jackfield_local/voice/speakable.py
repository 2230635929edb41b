"""Text as it is written, made into words that can be said aloud.

With each word goes how much of the text has been said with it, so that from how far a sentence was heard it
is known how much of the text was. What numbers, dates and units are called is left to the synthesiser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple


class Script(NamedTuple):
    """The words of a sentence as they are said, and for each how many characters of the text it completes."""

    words: tuple[str, ...]
    reached: tuple[int, ...]


_READ_OUT = {
    "e.g.": "for example",
    "i.e.": "that is",
    "≤": "at most",
    "≥": "at least",
    "≈": "about",
}
_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£"}
"""Currencies that the synthesiser reads with their cents, if the sign stands before the amount."""

_IN_ADDRESSES = {".": " dot ", "_": " underscore ", "-": " dash ", "+": " plus ", "@": " at "}

_SPELLED = 4
"""So many characters of an id are said: enough to tell two apart."""


def script(sentence: str) -> Script:
    """How a sentence is said; without words when there is nothing in it to be said."""
    said = ""
    reached: list[int] = []  # With each character that is said, how much of the sentence is.
    place = 0
    for found in _SPECIAL.finditer(sentence):
        start, end = found.span()
        stands_for = _RULES[found.lastgroup or ""][1](found.group())
        said += sentence[place:start] + stands_for
        reached += range(place + 1, start + 1)
        # Before the last word has been said, nothing of what it stands for has been.
        before = max(len(stands_for.rstrip()) - 1, 0)
        reached += [start] * before + [end] * (len(stands_for) - before)
        place = end
    said += sentence[place:]
    reached += range(place + 1, len(sentence) + 1)
    if not any(each.isalnum() for each in said):
        return Script((), ())
    found_words = list(re.finditer(r"\S+", said))
    words = [each.group() for each in found_words]
    if words[-1][-1].isalnum():
        # A heading or a point of a list ends like a sentence, or the voice stays up in the air.
        words[-1] += "."
    return Script(tuple(words), (*(reached[each.end() - 1] for each in found_words[:-1]), len(sentence)))


def _label(link: str) -> str:
    label = link[link.index("[") + 1 : link.index("](")]
    if not any(each.isalpha() for each in label):
        return ""  # The number of a source.
    start = " " if link[0].isspace() else ""
    return start + " ".join(script(label).words).rstrip(".")


def _address(written: str) -> str:
    return re.sub(r"[._+@-]", lambda found: _IN_ADDRESSES[found.group()], written).strip()


def _host(address: str) -> str:
    bare = re.sub(r"^<?(?:[a-z]+://)?(?:[^/@]*@)?(?:www\.)?", "", address, flags=re.IGNORECASE)
    return _address(re.split(r"[/:?#>]", bare, maxsplit=1)[0])


def _id(name: str) -> str:
    ending = [each for each in name if each.isalnum()][-_SPELLED:]
    return f"id ending in {' '.join(ending).upper()}"


def _amount(written: str) -> str:
    sign = re.sub(r"[\d.,\s]", "", written)
    return _SIGNS.get(sign, sign) + re.sub(r"[^\d.,]", "", written)


def _silent(_: str) -> str:
    return ""


_NUMBER = r"\d+(?:[.,]\d+)*"
_TOKEN = r"[^\]\s]{1,80}"  # noqa: S105 - of a text, not a secret

_RULES: dict[str, tuple[str, Callable[[str], str]]] = {
    "code": (r"```(?:.|\n)*?(?:```|$)", lambda _: " a piece of code. "),
    "link": (r"\s?!?\[[^\]\n]*\]\([^()\n]*\)", _label),
    "url": (r"<?(?:https?://|ftp://|www\.)[^\s<>()\[\]\"]*[^\s<>()\[\]\".,;:!?'*_`]>?", _host),
    "mail": (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", _address),
    "page": (r"\b(?:[A-Za-z0-9-]+\.)+[a-z]{2,}/(?:[^\s<>()\[\]\"]*[^\s<>()\[\]\".,;:!?'*_`])?", _host),
    "source": (
        rf"\s?(?:\[{_TOKEN}(?:(?<=[,;])\s{_TOKEN}|(?<=:)\s(?=\S*[\d._/-]){_TOKEN})*\]|【[^】\n]*】)",
        _silent,
    ),
    "moment": (
        r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z\b|[+-]\d\d:?\d\d)?",
        lambda text: f"{text[:10]} at {text[11:16]}",
    ),
    "minute": (r"\b\d{1,2}:\d\d:00\b", lambda text: text[:-3]),
    "uuid": (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", _id),
    "id": (
        r"\b(?=[\w-]*[A-Za-z])(?:[A-Za-z]+[-_:](?=\w*\d)[A-Za-z0-9]{6,}|(?=\w*\d\w*\d\w*\d)\w{12,})\b",
        _id,
    ),
    "amount": (
        rf"(?<![\w.,$€£¥]){_NUMBER}\s?(?:[$€£¥](?![\d])|(?:USD|EUR|GBP)\b)|\b(?:USD|EUR|GBP)\s?{_NUMBER}",
        _amount,
    ),
    "range": (
        r"(?<=\d)\s?[\u2013\u2014]\s?(?=[$€£¥]?\d)|(?<=:\d\d)-(?=\d)|(?<=\d)-(?=[$€£¥]\d)",
        lambda _: " to ",
    ),
    "dotted": (r"\b[A-Za-z]?\d+(?:\.\d+){2,}\b", _address),
    "digits": (
        r"(?<![\w.,-])(?!\d{4}-\d\d-\d\d\b)"
        r"(?:(?:0\d{2,}|(?:\d+[-/])*\d{7,})(?:[-/]\d+)*|\d+(?:-\d+){2,})(?![.,]?\d)",
        lambda text: ", ".join(map(" ".join, re.split("[-/]", text))),
    ),
    "tag": (r"</?[a-zA-Z][^<>]{0,200}>", _silent),
    "start": (r"(?m:^[ \t]*(?:(?:#{1,6}|[-*+•]|>+)[ \t]+(?:\[[ xX]\][ \t]+)?|\|))", _silent),
    "rule": (r"[|:=-]{3,}|[*_~`]{3,}", _silent),
    "bar": (r"\s*\|\s*(?=\S)", lambda _: ", "),
    "last_bar": (r"\s*\|", _silent),
    "mark": (r"`+|(?<!\d)\*+|\*+(?!\d)|~~|(?<!\w)_+(?=\w)|(?<=[\w.!?])_+(?!\w)", _silent),
    "read_out": ("|".join(re.escape(each) for each in _READ_OUT), lambda text: _READ_OUT[text]),
    "name": (r"(?<=\w)\.(?=[a-z][a-z0-9])", lambda _: " dot "),
    "picture": (r"[\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\ufe0f\u200d\U0001f000-\U0001faff]+", _silent),
}
"""By name: what is recognised, and how it is said. The first that fits counts."""

_SPECIAL = re.compile("|".join(f"(?P<{name}>{pattern})" for name, (pattern, _) in _RULES.items()))

"""Turns written text into text that a speech synthesiser reads well: Markdown, addresses, ids, amounts.

The synthesiser itself handles numbers, dates and units.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_READ_OUT = {
    "e.g.": "for example",
    "i.e.": "that is",
    "≤": "at most",
    "≥": "at least",
    "≈": "about",
}
_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£"}
"""Currencies that the synthesiser reads with their cents if the sign precedes the amount."""

_IN_ADDRESSES = {".": " dot ", "_": " underscore ", "-": " dash ", "+": " plus ", "@": " at "}

_SPELLED = 4  # Number of characters of an id that are spoken: enough to tell two apart.


def pronounceable(text: str) -> str:
    """Return a sentence as it is spoken; empty if nothing in it can be spoken."""
    said = _SPECIAL.sub(lambda found: _RULES[found.lastgroup or ""][1](found.group()), text)
    said = " ".join(said.split())
    if not any(each.isalnum() for each in said):
        return ""
    # A heading or list item must end like a sentence, or the voice would not fall.
    return f"{said}." if said[-1].isalnum() else said


def _label(link: str) -> str:
    label = link[link.index("[") + 1 : link.index("](")]
    if not any(each.isalpha() for each in label):
        return ""  # The number of a source.
    start = " " if link[0].isspace() else ""
    return start + pronounceable(label).rstrip(".")


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
"""By name: a pattern, and how a match is spoken. The first pattern that matches wins."""

_SPECIAL = re.compile("|".join(f"(?P<{name}>{pattern})" for name, (pattern, _) in _RULES.items()))

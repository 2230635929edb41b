"""A guide that says what the schema says: the model reads both, so it pays for the same words twice.

A line of a list that begins with the name of an argument is compared with everything the schema says of
that argument: descriptions, values, limits, defaults, names of members. It repeats the schema when at least
80 % of its words are among those. The guide does when such lines hold at least half of the words of all
lines about arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jackfield_builder.drafts import GUIDE, Draft
from jackfield_builder.findings import Code

_WORD = re.compile(r"\w+")
_BULLETS = ("- ", "* ")

LINE_SHARE = 0.8
"""From this share of known words on, a line repeats the schema."""

GUIDE_SHARE = 0.5
"""From this share of words in such lines on, the guide does."""


def check(draft: Draft) -> None:
    """Note a guide most of whose lines about arguments say what the schema says already."""
    if draft.guide is None or not isinstance(draft.parameters, Mapping):
        return
    arguments = draft.parameters.get("properties")
    if not isinstance(arguments, Mapping):
        return
    total, repeated, names = 0, 0, []
    for argument, words in _lines(draft.guide.text, arguments):
        known = set(_words(argument)).union(_said(arguments[argument]))
        total += len(words)
        if words and sum(word in known for word in words) >= LINE_SHARE * len(words):
            repeated += len(words)
            names.append(argument)
    if repeated and repeated >= GUIDE_SHARE * total:
        message = f"{repeated} of {total} words about arguments are in schema.json too: {', '.join(names)}"
        draft.report(Code.REPEATED_SCHEMA, message, file=GUIDE)


def _lines(guide: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The lines of lists that are about one argument, each with its words behind the colon."""
    for line in guide.splitlines():
        if not line.startswith(_BULLETS):
            continue
        head, _, rest = line[2:].partition(":")
        named = [name for name in arguments if name in set(_WORD.findall(head))]
        if len(named) == 1:
            yield named[0], _words(rest)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _said(schema: Any) -> Iterator[str]:
    """The words of a schema, and the names of what is in it; keywords are no words."""
    if isinstance(schema, Mapping):
        for keyword, value in schema.items():
            if keyword in {"properties", "$defs"} and isinstance(value, Mapping):
                for name, member in value.items():
                    yield from _words(name)
                    yield from _said(member)
            else:
                yield from _said(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _said(each)
    else:
        # JSON writes true, Python True; a guide writes either, and in lower case they are the same.
        yield from _words(str(schema))

"""What is wrong with a setting, a body or a message, as sentences: the library's findings in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

LONGEST = 200
"""Characters of a sentence about something that a client has sent."""

_WANTED = MappingProxyType(
    {
        "string": "a text",
        "int": "a whole number",
        "float": "a number",
        "finite_number": "a number that is not infinite",
        "bool": "true or false",
        "list": "a list",
        "tuple": "a list",
        "dict": "a table (in JSON an object)",
        "model": "a table (in JSON an object)",
    }
)
"""What should have been there, by how the library's name of the finding begins."""

_SENTENCES: Mapping[str, Callable[[Mapping[str, Any]], str]] = MappingProxyType(
    {
        "missing": lambda _: "it is missing",
        "union_tag_not_found": lambda _: "it is missing",
        "less_than": lambda told: f"less than {_number(told['lt'])} is wanted",
        "less_than_equal": lambda told: f"at most {_number(told['le'])} is wanted",
        "greater_than": lambda told: f"more than {_number(told['gt'])} is wanted",
        "greater_than_equal": lambda told: f"at least {_number(told['ge'])} is wanted",
        "string_too_short": lambda told: f"at least {_many(told['min_length'], 'character')} wanted",
        "string_too_long": lambda told: f"at most {_many(told['max_length'], 'character')} wanted",
        "too_short": lambda told: f"at least {_many(told['min_length'], 'entry')} wanted",
        "too_long": lambda told: f"at most {_many(told['max_length'], 'entry')} wanted",
        "string_pattern_mismatch": lambda told: f"it has to look like {told['pattern']}",
        "literal_error": lambda told: f"{told['expected']} is wanted",
        "json_invalid": lambda told: f"this is no JSON: {told['error']}",
        "value_error": lambda told: str(told["error"]),
    }
)
"""The sentence of every finding that people meet, made of what the library tells of it."""


def meant(name: str, known: Iterable[str]) -> str:
    """What somebody may have meant by a name that is not known."""
    known = list(known)
    close = get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"


def plainly(finding: Mapping[str, Any]) -> str:
    """What one finding of the library says, in plain words and without the value, which may be a secret."""
    kind = str(finding["type"])
    if sentence := _SENTENCES.get(kind):
        return sentence(finding.get("ctx", {}))
    # Such as int_type, int_parsing and int_from_float: whatever it is, it is no whole number.
    for begin, wanted in _WANTED.items():
        if kind.startswith(begin):
            return f"{wanted} is wanted"
    return str(finding["msg"])


def explained(
    error: ValidationError, members: Callable[[str], Iterable[str]], *, tagged: bool = False
) -> str:
    """The first thing that is wrong with what a client sent, and where.

    `members` are those a message of some type may have; `tagged` where the type stands before every place.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    where = [str(step)[:100] for step in first["loc"]]
    kind = where.pop(0) if tagged and where else ""
    told = first.get("ctx", {})
    match first["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            sentence = f"there is no such member; {meant(where[-1], members(kind))}"
        case "union_tag_invalid":
            where, known = ["type"], [each.strip("' ") for each in str(told["expected_tags"]).split(",")]
            sentence = f"there is no such type here; {meant(str(told['tag'])[:100], known)}"
        case "union_tag_not_found":
            where, sentence = ["type"], plainly(first)
        case _:
            sentence = plainly(first)
    place = ".".join(where)[:100]
    return f"{place}: {sentence[:LONGEST]}" if place else sentence[:LONGEST]


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _many(number: int, thing: str) -> str:
    plural = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"
    return f"{number} {thing} is" if number == 1 else f"{number} {plural} are"

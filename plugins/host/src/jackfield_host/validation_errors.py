"""Describes what is wrong with a body or a message in plain sentences, from pydantic's validation errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

MAX_LENGTH = 200
"""Maximum length of a description, which may quote what a client sent."""

_EXPECTED = MappingProxyType(
    {
        "string": "a string",
        "int": "an integer",
        "float": "a number",
        "finite_number": "a finite number",
        "bool": "true or false",
        "list": "a list",
        "tuple": "a list",
        "dict": "an object",
        "model": "an object",
    }
)
"""What was expected, by the prefix of pydantic's error type."""

_DESCRIPTIONS: Mapping[str, Callable[[Mapping[str, Any]], str]] = MappingProxyType(
    {
        "missing": lambda _: "it is missing",
        "union_tag_not_found": lambda _: "it is missing",
        "less_than": lambda ctx: f"expected less than {_number(ctx['lt'])}",
        "less_than_equal": lambda ctx: f"expected at most {_number(ctx['le'])}",
        "greater_than": lambda ctx: f"expected more than {_number(ctx['gt'])}",
        "greater_than_equal": lambda ctx: f"expected at least {_number(ctx['ge'])}",
        "string_too_short": lambda ctx: f"expected at least {_count(ctx['min_length'], 'character')}",
        "string_too_long": lambda ctx: f"expected at most {_count(ctx['max_length'], 'character')}",
        "too_short": lambda ctx: f"expected at least {_count(ctx['min_length'], 'entry')}",
        "too_long": lambda ctx: f"expected at most {_count(ctx['max_length'], 'entry')}",
        "string_pattern_mismatch": lambda ctx: f"it must match {ctx['pattern']}",
        "literal_error": lambda ctx: f"expected {ctx['expected']}",
        "json_invalid": lambda ctx: f"this is not JSON: {ctx['error']}",
        "value_error": lambda ctx: str(ctx["error"]),
    }
)
"""Functions that describe pydantic's error types from the error's context."""


def describe_error(
    error: ValidationError, members: Callable[[str], Iterable[str]], *, tagged: bool = False
) -> str:
    """Describe the first fault in a client's message or body, with its location.

    `members` returns the members that a message of a given type may have; `tagged` says that every location
    begins with the type of the message.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    location = [str(step)[:100] for step in first["loc"]]
    kind = location.pop(0) if tagged and location else ""
    context = first.get("ctx", {})
    match first["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            description = f"there is no such member; {did_you_mean(location[-1], members(kind))}"
        case "union_tag_invalid":
            known = [each.strip("' ") for each in str(context["expected_tags"]).split(",")]
            location = ["type"]
            description = f"there is no such type here; {did_you_mean(str(context['tag'])[:100], known)}"
        case "union_tag_not_found":
            location, description = ["type"], _describe(first)
        case _:
            description = _describe(first)
    place = ".".join(location)[:100]
    return f"{place}: {description[:MAX_LENGTH]}" if place else description[:MAX_LENGTH]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that is closest to an unknown one, or list the known names."""
    known = list(known)
    close = get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else f"known names: {', '.join(known)}"


def _describe(error: Mapping[str, Any]) -> str:
    """Describe one of pydantic's errors, without the value, which may be a secret."""
    kind = str(error["type"])
    if description := _DESCRIPTIONS.get(kind):
        return description(error.get("ctx", {}))
    # Several error types begin alike, such as int_type, int_parsing and int_from_float.
    for prefix, expected in _EXPECTED.items():
        if kind.startswith(prefix):
            return f"expected {expected}"
    return str(error["msg"])


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"

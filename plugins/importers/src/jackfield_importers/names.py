"""Names for tools, arguments, definitions and packages, derived from untrusted names in a source."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Container

MAX_TOOL_ID = 64

_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER = re.compile(r"[^A-Za-z0-9]+")
_NOT_ARGUMENT = re.compile(r"[^A-Za-z0-9_]+")


def snake_case(text: str, fallback: str) -> str:
    """Return a tool id, family name or argument for a text: lower case, words joined by one underscore."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    words = _OTHER.sub("_", _CAPITALS.sub("_", plain)).strip("_").lower()
    if not words:
        return fallback
    name = words if words[0].isalpha() else f"{fallback}_{words}"
    return name[:MAX_TOOL_ID].rstrip("_")


def python_name(name: str) -> str:
    """Return a snake_case name that a function can have: `import` becomes `call_import`."""
    return f"call_{name}"[:MAX_TOOL_ID].rstrip("_") if keyword.iskeyword(name) else name


def argument_name(text: str, fallback: str = "value") -> str:
    """Return a name that every provider accepts for an argument; `X-Request-ID` becomes `X_Request_ID`."""
    name = _NOT_ARGUMENT.sub("_", text).strip("_")[:MAX_TOOL_ID]
    return name if name and not name[0].isdigit() else f"{fallback}_{name}".rstrip("_")[:MAX_TOOL_ID]


def unique(name: str, taken: Container[str]) -> str:
    """Return the name, with a number if it is taken."""
    if name not in taken:
        return name
    number = 2
    while (numbered := f"{name[: MAX_TOOL_ID - 1 - len(str(number))].rstrip('_')}_{number}") in taken:
        number += 1
    return numbered


def words(name: str) -> str:
    """Return a name as words in lower case: `petId` becomes `pet id`."""
    return snake_case(name, "value").replace("_", " ")

"""How large a strict schema may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DEEPEST = 10
MOST_MEMBERS = 5_000
_MOST_VALUES = 1_000
_MOST_LETTERS = 120_000
LONG_ENUM = 250
MOST_LETTERS_OF_LONG_ENUM = 15_000


def beyond(schema: dict[str, Any]) -> str:
    """Why a written schema is too large, or an empty string."""
    members = values = letters = deepest = 0
    for node, depth in _nodes(schema, 1):
        deepest = max(deepest, depth)
        names = node.get("properties", {})
        enum = node.get("enum", ())
        written = sum(len(value) for value in enum if isinstance(value, str))
        members, values = members + len(names), values + len(enum)
        letters += written + sum(map(len, names)) + sum(map(len, node.get("$defs", ())))
    for what, found, most in (
        ("levels", deepest, DEEPEST),
        ("members", members, MOST_MEMBERS),
        ("enumerated values", values, _MOST_VALUES),
        ("letters in names and values", letters, _MOST_LETTERS),
    ):
        if found > most:
            return f"written out, the schema has {found} {what}, and at most {most} are taken"
    return ""


def _nodes(schema: dict[str, Any], depth: int) -> Iterator[tuple[dict[str, Any], int]]:
    yield schema, depth
    for name in ("properties", "$defs"):
        for inside in schema.get(name, {}).values():
            yield from _nodes(inside, depth + 1)
    if "items" in schema:
        yield from _nodes(schema["items"], depth + 1)
    for inside in schema.get("anyOf", ()):
        yield from _nodes(inside, depth + 1)

"""Size limits of strict schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 10
MAX_PROPERTIES = 5_000
_MAX_VALUES = 1_000
_MAX_CHARACTERS = 120_000
LONG_ENUM = 250
LONG_ENUM_MAX_CHARACTERS = 15_000


def beyond(schema: dict[str, Any]) -> str:
    """Return why a written schema is too large, or an empty string."""
    members = values = letters = deepest = 0
    for node, depth in _nodes(schema, 1):
        deepest = max(deepest, depth)
        names = node.get("properties", {})
        enum = node.get("enum", ())
        written = sum(len(value) for value in enum if isinstance(value, str))
        members, values = members + len(names), values + len(enum)
        letters += written + sum(map(len, names)) + sum(map(len, node.get("$defs", ())))
    for what, found, most in (
        ("levels", deepest, MAX_DEPTH),
        ("members", members, MAX_PROPERTIES),
        ("enumerated values", values, _MAX_VALUES),
        ("letters in names and values", letters, _MAX_CHARACTERS),
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

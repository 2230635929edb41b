"""Resolution of references inside one schema, and whether a schema accepts null."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from jackfield_schemas.shapes import Path


class UnresolvedReferenceError(LookupError):
    """A reference that leads out of the schema or to nothing."""


def follow(root: Any, reference: Any) -> tuple[Path, Any]:
    """Resolve a reference such as `#/$defs/range`; return its path and the schema there."""
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        raise UnresolvedReferenceError(f"{reference!r} is outside this schema")
    path: list[str | int] = []
    target = root
    for part in reference.split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        try:
            key: str | int = int(name) if isinstance(target, list) else name
            target = target[key]
        except (LookupError, ValueError, TypeError):
            raise UnresolvedReferenceError(f"{reference!r} does not exist") from None
        path.append(key)
        if has_own_base(target):
            raise UnresolvedReferenceError(f"{reference!r} points into a schema with an $id of its own")
    if not isinstance(target, dict | bool):
        raise UnresolvedReferenceError(f"{reference!r} is not a schema")
    return tuple(path), target


def has_own_base(schema: Any) -> bool:
    """Return whether a subschema has an `$id`, so that references inside it start there."""
    return isinstance(schema, dict) and isinstance(schema.get("$id"), str)


def listed(schema: dict[str, Any], keyword: str) -> list[Any]:
    """Return a keyword's array; empty if it is missing or not an array."""
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


class NullAcceptance:
    """Decides exactly whether a schema accepts null; only a few keywords matter for that."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[int, bool] = {}

    def accepted(self, schema: Any) -> bool:
        """Return whether null is valid; a circular schema counts as accepting it."""
        if not isinstance(schema, dict):
            return schema is not False
        if has_own_base(schema) and schema is not self._root:
            return True
        known = self._known.get(id(schema))
        if known is None:
            self._known[id(schema)] = True
            known = self._known[id(schema)] = all(self._verdicts(schema))
        return known

    def _verdicts(self, schema: dict[str, Any]) -> Iterator[bool]:
        yield _type_accepts_null(schema.get("type"))
        if isinstance(schema.get("enum"), list):
            yield None in schema["enum"]
        if "const" in schema:
            yield schema["const"] is None
        if "$ref" in schema:
            try:
                yield self.accepted(follow(self._root, schema["$ref"])[1])
            except UnresolvedReferenceError:
                yield True
        yield from self._combined(schema)

    def _combined(self, schema: dict[str, Any]) -> Iterator[bool]:
        yield all(self._each(schema, "allOf"))
        if listed(schema, "anyOf"):
            yield any(self._each(schema, "anyOf"))
        if listed(schema, "oneOf"):
            yield sum(self._each(schema, "oneOf")) == 1
        if "not" in schema:
            yield not self.accepted(schema["not"])
        if "if" in schema:
            yield self.accepted(schema.get("then" if self.accepted(schema["if"]) else "else", True))

    def _each(self, schema: dict[str, Any], keyword: str) -> Iterable[bool]:
        return [self.accepted(branch) for branch in listed(schema, keyword)]


TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")


def _type_accepts_null(given: Any) -> bool:
    names = given if isinstance(given, list) else [given]
    known = [name for name in names if name in TYPES]
    return "null" in known if known and len(known) == len(names) else True

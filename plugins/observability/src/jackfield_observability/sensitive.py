"""Which arguments a tool's schema marks as sensitive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jackfield.registry.arguments import resolve

MARKS = ("writeOnly", "x-sensitive")
"""A schema with one of these set to true describes a value that no record may show."""

_ONE = (
    "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPS = ("dependentSchemas", "patternProperties")


class Sensitive(NamedTuple):
    """What a schema marks: properties by name, or the arguments as a whole."""

    names: frozenset[str]
    everything: bool


def sensitive(parameters: Mapping[str, Any]) -> Sensitive:
    """Read the marks of a schema.

    A name counts wherever it appears, because arguments that break the schema are recorded too and may hold
    it in another place. A mark that belongs to no property of its own, on the items of a list or in a branch
    of `anyOf`, counts for the property that holds the list or the branches.
    """
    return _Marks(parameters).read()


def property_names(schema: Any) -> set[str]:
    """Every name that a schema gives a property, at any depth."""
    if isinstance(schema, list):
        return {name for item in schema for name in property_names(item)}
    if not isinstance(schema, Mapping):
        return set()
    named = set(_mapping(schema.get("properties")))
    return named.union(*(property_names(value) for value in schema.values()))


class _Marks:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._names: set[str] = set()
        self._marked: set[str] = set()
        self._visited: set[str] = set()

    def read(self) -> Sensitive:
        # References may be circular, and one be judged before what it leads to: repeat until nothing changes.
        while True:
            known = len(self._marked)
            self._visited.clear()
            everything = self._holds_mark(self._root)
            if len(self._marked) == known:
                return Sensitive(frozenset(self._names), everything)

    def _holds_mark(self, schema: Any) -> bool:
        if not isinstance(schema, Mapping):
            return False
        marked = any(schema.get(mark) is True for mark in MARKS)
        for name, member in _mapping(schema.get("properties")).items():
            if self._holds_mark(member):
                self._names.add(name)
        for branch in _branches(schema):
            marked |= self._holds_mark(branch)
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in schema:
                marked |= self._reference_holds_mark(schema[keyword])
        return marked

    def _reference_holds_mark(self, reference: Any) -> bool:
        if reference not in self._visited:
            self._visited.add(reference)
            if self._holds_mark(self._target(reference)):
                self._marked.add(reference)
        return reference in self._marked

    def _target(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return _UNKNOWN
        try:
            return resolve(self._root, reference)
        except (LookupError, ValueError, TypeError):
            return _UNKNOWN


# A reference that cannot be followed may lead to anything, so it is taken for a mark.
_UNKNOWN = {MARKS[1]: True}


def _branches(schema: Mapping[str, Any]) -> Iterator[Any]:
    for keyword in _ONE:
        yield schema.get(keyword)
    for keyword in _LISTS:
        members = schema.get(keyword)
        yield from members if isinstance(members, list) else ()
    for keyword in _MAPS:
        yield from _mapping(schema.get(keyword)).values()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

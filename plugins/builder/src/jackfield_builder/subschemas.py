"""Walks the subschemas of a JSON Schema, with their paths and roles."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

# Keywords whose value is one schema, an array of schemas, or an object of schemas.
_ONE = {
    "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties",
    "if", "then", "else", "not",
}  # fmt: skip
_MANY = {"prefixItems", "allOf", "anyOf", "oneOf"}
_NAMED = {"properties", "patternProperties", "dependentSchemas", "$defs"}

KEYWORDS = frozenset(
    {
        *_ONE, *_MANY, *_NAMED,
        "$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary", "$comment",
        "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
        "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "maxContains",
        "minContains",
        "maxProperties", "minProperties", "required", "dependentRequired", "format", "contentEncoding",
        "contentMediaType", "contentSchema", "title", "description", "default", "deprecated", "readOnly",
        "writeOnly", "examples",
    }
)  # fmt: skip
"""Every keyword that draft 2020-12 defines."""

FORMATS = (
    "date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6",
    "uri", "uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer",
    "relative-json-pointer", "regex",
)  # fmt: skip
"""Every format that draft 2020-12 defines."""

# These describe the same value as the enclosing schema.
_SAME_VALUE = {"allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas"}
# These test the value of the enclosing schema.
_CONDITION = {"if", "not"}


class SubschemaRole(Enum):
    """Which value a subschema describes."""

    CHILD = "a part of the value, or another value"
    IN_PLACE = "the same value as the enclosing schema"
    CONDITION = "the same value, as a condition"


class Subschema(NamedTuple):
    """A schema, its path from the root, and its role in the enclosing schema."""

    path: tuple[str | int, ...]
    schema: dict[str, Any]
    role: SubschemaRole


def children(schema: dict[str, Any], path: tuple[str | int, ...] = ()) -> Iterator[Subschema]:
    """Yield the direct subschemas of a schema, without `true` and `false`."""
    for keyword, value in schema.items():
        if keyword in _ONE:
            inner: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
        elif keyword in _MANY and isinstance(value, list):
            inner = [((index,), item) for index, item in enumerate(value)]
        elif keyword in _NAMED and isinstance(value, dict):
            inner = [((name,), item) for name, item in value.items()]
        else:
            continue
        role = (
            SubschemaRole.IN_PLACE
            if keyword in _SAME_VALUE
            else SubschemaRole.CONDITION
            if keyword in _CONDITION
            else SubschemaRole.CHILD
        )
        for tail, item in inner:
            if isinstance(item, dict):
                yield Subschema((*path, keyword, *tail), item, role)


def walk(schema: dict[str, Any], path: tuple[str | int, ...] = ()) -> Iterator[Subschema]:
    """Yield the schema and all its subschemas, outermost first."""
    yield Subschema(path, schema, SubschemaRole.CHILD)
    yield from _descendants(schema, path)


def _descendants(schema: dict[str, Any], path: tuple[str | int, ...]) -> Iterator[Subschema]:
    for child in children(schema, path):
        yield child
        yield from _descendants(child.schema, child.path)

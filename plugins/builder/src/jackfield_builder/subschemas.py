"""Every schema inside a schema, with where it stands and how it applies."""

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
"""Every keyword that draft 2020-12 gives a meaning."""

# These speak about the value that the schema around them speaks about.
_SAME_VALUE = {"allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas"}
# These only ask a question about it.
_CONDITION = {"if", "not"}


class Applies(Enum):
    """What a subschema speaks about."""

    TO_A_PART = "a part of the value, or a value of its own"
    IN_PLACE = "the same value as the schema around it"
    AS_CONDITION = "the same value, as a question"


class Subschema(NamedTuple):
    """A schema, its path from the root, and how it relates to the schema around it."""

    path: tuple[str | int, ...]
    schema: dict[str, Any]
    applies: Applies


def children(schema: dict[str, Any], path: tuple[str | int, ...] = ()) -> Iterator[Subschema]:
    """The schemas directly inside one schema; `true` and `false` are passed over."""
    for keyword, value in schema.items():
        if keyword in _ONE:
            inner: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
        elif keyword in _MANY and isinstance(value, list):
            inner = [((index,), item) for index, item in enumerate(value)]
        elif keyword in _NAMED and isinstance(value, dict):
            inner = [((name,), item) for name, item in value.items()]
        else:
            continue
        applies = (
            Applies.IN_PLACE
            if keyword in _SAME_VALUE
            else Applies.AS_CONDITION
            if keyword in _CONDITION
            else Applies.TO_A_PART
        )
        for tail, item in inner:
            if isinstance(item, dict):
                yield Subschema((*path, keyword, *tail), item, applies)


def walk(schema: dict[str, Any], path: tuple[str | int, ...] = ()) -> Iterator[Subschema]:
    """The schema itself and every schema inside it, outermost first."""
    yield Subschema(path, schema, Applies.TO_A_PART)
    yield from _inside(schema, path)


def _inside(schema: dict[str, Any], path: tuple[str | int, ...]) -> Iterator[Subschema]:
    for child in children(schema, path):
        yield child
        yield from _inside(child.schema, child.path)

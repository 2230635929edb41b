"""Reads the keywords of one type, annotations, and constraints that no shape can hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from jackfield_schemas import descriptions
from jackfield_schemas.references import TYPES
from jackfield_schemas.shapes import (
    ABSENT,
    NEVER,
    NO_ANNOTATIONS,
    Annotations,
    ArrayShape,
    BooleanShape,
    NumberShape,
    ObjectShape,
    Option,
    Path,
    Shape,
    StringShape,
)

ReadInside = Callable[[Any, Path], Shape]
"""Parses a subschema of the current schema."""


def types_of(schema: dict[str, Any]) -> frozenset[str] | None:
    """Return the types a schema names; `None` if it names none or an unknown one."""
    given = schema.get("type")
    names = given if isinstance(given, list) else [given]
    if not names or any(name not in TYPES for name in names):
        return None
    return frozenset(names)


def options_of(schema: dict[str, Any], path: Path, inside: ReadInside) -> list[Option]:
    """Return one option for each type of the schema, in the order of `shapes`."""
    named = types_of(schema)
    types = named or frozenset(TYPES)
    options: list[Option] = []
    if "string" in types:
        options.append(_string_shape(schema, path))
    if "number" in types or "integer" in types:
        options.append(_number(schema, path, integer="number" not in types))
    if "boolean" in types:
        options.append(BooleanShape(path=path))
    if "array" in types:
        options.append(_array(schema, path, inside))
    if "object" in types:
        options.append(_object(schema, path, inside))
    return options if named else [replace(option, untyped=True) for option in options]


def _string_shape(schema: dict[str, Any], path: Path) -> StringShape:
    return StringShape(
        path=path,
        min_length=_count(schema, "minLength"),
        max_length=_count(schema, "maxLength"),
        pattern=_string(schema, "pattern"),
        format=_string(schema, "format"),
    )


def _number(schema: dict[str, Any], path: Path, *, integer: bool) -> NumberShape:
    return NumberShape(
        path=path,
        integer=integer,
        minimum=_amount(schema, "minimum"),
        maximum=_amount(schema, "maximum"),
        exclusive_minimum=_amount(schema, "exclusiveMinimum"),
        exclusive_maximum=_amount(schema, "exclusiveMaximum"),
        multiple_of=_amount(schema, "multipleOf"),
        format=_string(schema, "format"),
    )


def _array(schema: dict[str, Any], path: Path, inside: ReadInside) -> ArrayShape:
    first = schema.get("prefixItems")
    items = schema.get("items")
    return ArrayShape(
        path=path,
        prefix_items=tuple(inside(each, (*path, "prefixItems", index)) for index, each in enumerate(first))
        if isinstance(first, list)
        else (),
        items=inside(items, (*path, "items")) if isinstance(items, dict | bool) else None,
        min_items=_count(schema, "minItems"),
        max_items=_count(schema, "maxItems"),
        unique=schema.get("uniqueItems") is True,
    )


def _object(schema: dict[str, Any], path: Path, inside: ReadInside) -> ObjectShape:
    given = schema.get("properties")
    members = {
        name: inside(member, (*path, "properties", name))
        for name, member in (given.items() if isinstance(given, dict) else ())
    }
    required = schema.get("required")
    others = schema.get("additionalProperties")
    return ObjectShape(
        path=path,
        properties=members,
        required=frozenset(name for name in required if isinstance(name, str))
        if isinstance(required, list)
        else frozenset(),
        additional=inside(others, (*path, "additionalProperties"))
        if isinstance(others, dict | bool)
        else None,
        min_properties=_count(schema, "minProperties"),
        max_properties=_count(schema, "maxProperties"),
    )


def shape_of_values(values: list[Any], path: Path) -> Shape:
    """Return a shape that accepts exactly these values."""
    options: list[Option] = []
    texts = tuple(dict.fromkeys(value for value in values if isinstance(value, str)))
    if texts:
        options.append(StringShape(path=path, values=texts))
    numbers = tuple(dict.fromkeys(_plain(value) for value in values if is_number(value)))
    if numbers:
        options.append(NumberShape(path=path, values=numbers))
    flags = {value for value in values if isinstance(value, bool)}
    if flags:
        options.append(BooleanShape(path=path, const=None if len(flags) == 2 else flags.pop()))
    for value in values:
        if isinstance(value, list):
            parts = tuple(shape_of_values([each], path) for each in value)
            size = len(parts)
            options.append(
                ArrayShape(path=path, prefix_items=parts, items=NEVER, min_items=size, max_items=size)
            )
        elif isinstance(value, dict):
            members = {name: shape_of_values([each], path) for name, each in value.items()}
            options.append(
                ObjectShape(path=path, properties=members, required=frozenset(members), additional=NEVER)
            )
    return Shape(tuple(options), null=any(value is None for value in values), path=path)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _plain(value: Any) -> int | float:
    # 1.0 and 1 are the same number in JSON Schema; the shorter one is easier to read.
    return int(value) if float(value).is_integer() else float(value)


def _count(schema: dict[str, Any], keyword: str) -> int | None:
    value = _amount(schema, keyword)
    return None if value is None or value < 0 else int(value)


def _amount(schema: dict[str, Any], keyword: str) -> int | float | None:
    value = schema.get(keyword)
    return value if is_number(value) else None


def _string(schema: dict[str, Any], keyword: str) -> str | None:
    value = schema.get(keyword)
    return value if isinstance(value, str) else None


_DESCRIBED = (
    "not",
    "propertyNames",
    "patternProperties",
    "dependentSchemas",
    "unevaluatedItems",
    "$dynamicRef",
)


def read_annotations(schema: dict[str, Any]) -> Annotations:
    """Return title, description, default, examples and notes of a schema."""
    title, description = schema.get("title"), schema.get("description")
    examples = schema.get("examples")
    annotations = Annotations(
        title if isinstance(title, str) else "",
        description if isinstance(description, str) else "",
        schema.get("default", ABSENT),
        tuple(examples) if isinstance(examples, list) else (),
        tuple(_notes(schema)),
    )
    return NO_ANNOTATIONS if annotations == NO_ANNOTATIONS else annotations


def _notes(schema: dict[str, Any]) -> Iterator[str]:
    if schema.get("deprecated") is True:
        yield "Deprecated."
    if isinstance(schema.get("contentEncoding"), str):
        yield f"Encoded as {schema['contentEncoding']}."
    if isinstance(schema.get("contentMediaType"), str):
        yield f"Of the media type {schema['contentMediaType']}."


def undeclarable(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the constraints that no shape can hold: keyword and sentence."""
    for keyword in _DESCRIBED:
        if not _has_no_effect(keyword, schema.get(keyword)):
            yield keyword, descriptions.rule(keyword, schema[keyword])
    if "if" in schema and ("then" in schema or "else" in schema):
        parts = {keyword: schema[keyword] for keyword in ("if", "then", "else") if keyword in schema}
        yield "if", descriptions.rule("if", parts)
    if sentence := descriptions.members_together(schema.get("dependentRequired")):
        yield "dependentRequired", sentence
    yield from _contained(schema)
    rest = schema.get("unevaluatedProperties")
    if rest is False:
        yield "unevaluatedProperties", "No other members are accepted."
    elif not _has_no_effect("unevaluatedProperties", rest):
        yield "unevaluatedProperties", descriptions.rule("unevaluatedProperties", rest)


def _contained(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if "contains" not in schema:
        return
    yield "contains", descriptions.rule("contains", schema["contains"])
    if "minContains" in schema:
        yield "minContains", f"At least {descriptions.shown(schema['minContains'])} such items."
    if "maxContains" in schema:
        yield "maxContains", f"At most {descriptions.shown(schema['maxContains'])} such items."


def _has_no_effect(keyword: str, value: Any) -> bool:
    return value is None or (value is False if keyword == "not" else value is True or value == {})

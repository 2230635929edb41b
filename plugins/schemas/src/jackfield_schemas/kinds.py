"""The keywords that speak about values of one type, read into options."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jackfield_schemas.references import TYPES
from jackfield_schemas.shapes import NEVER, Flag, Listing, Number, Option, Path, Record, Shape, Text

ReadInside = Callable[[Any, Path], Shape]
"""Reads a schema inside the one at hand."""


def types_of(schema: dict[str, Any]) -> frozenset[str] | None:
    """The types a schema names; `None` when it names none, or one that does not exist."""
    given = schema.get("type")
    names = given if isinstance(given, list) else [given]
    if not names or any(name not in TYPES for name in names):
        return None
    return frozenset(names)


def options_of(schema: dict[str, Any], path: Path, inside: ReadInside) -> list[Option]:
    """What each type that the schema names may look like, in the order of `shapes`."""
    named = types_of(schema)
    types = named or frozenset(TYPES)
    options: list[Option] = []
    if "string" in types:
        options.append(_text(schema, path))
    if "number" in types or "integer" in types:
        options.append(_number(schema, path, whole="number" not in types))
    if "boolean" in types:
        options.append(Flag(path=path))
    if "array" in types:
        options.append(_listing(schema, path, inside))
    if "object" in types:
        options.append(_record(schema, path, inside))
    return options if named else [replace(option, untyped=True) for option in options]


def _text(schema: dict[str, Any], path: Path) -> Text:
    return Text(
        path=path,
        min_length=_count(schema, "minLength"),
        max_length=_count(schema, "maxLength"),
        pattern=_string(schema, "pattern"),
        format=_string(schema, "format"),
    )


def _number(schema: dict[str, Any], path: Path, *, whole: bool) -> Number:
    return Number(
        path=path,
        whole=whole,
        minimum=_amount(schema, "minimum"),
        maximum=_amount(schema, "maximum"),
        above=_amount(schema, "exclusiveMinimum"),
        below=_amount(schema, "exclusiveMaximum"),
        multiple_of=_amount(schema, "multipleOf"),
        format=_string(schema, "format"),
    )


def _listing(schema: dict[str, Any], path: Path, inside: ReadInside) -> Listing:
    first = schema.get("prefixItems")
    items = schema.get("items")
    return Listing(
        path=path,
        first=tuple(inside(each, (*path, "prefixItems", index)) for index, each in enumerate(first))
        if isinstance(first, list)
        else (),
        items=inside(items, (*path, "items")) if isinstance(items, dict | bool) else None,
        min_items=_count(schema, "minItems"),
        max_items=_count(schema, "maxItems"),
        unique=schema.get("uniqueItems") is True,
    )


def _record(schema: dict[str, Any], path: Path, inside: ReadInside) -> Record:
    given = schema.get("properties")
    members = {
        name: inside(member, (*path, "properties", name))
        for name, member in (given.items() if isinstance(given, dict) else ())
    }
    required = schema.get("required")
    others = schema.get("additionalProperties")
    return Record(
        path=path,
        members=members,
        required=frozenset(name for name in required if isinstance(name, str))
        if isinstance(required, list)
        else frozenset(),
        others=inside(others, (*path, "additionalProperties")) if isinstance(others, dict | bool) else None,
        min_members=_count(schema, "minProperties"),
        max_members=_count(schema, "maxProperties"),
    )


def shape_of_values(values: list[Any], path: Path) -> Shape:
    """Exactly these values."""
    options: list[Option] = []
    texts = tuple(dict.fromkeys(value for value in values if isinstance(value, str)))
    if texts:
        options.append(Text(path=path, values=texts))
    numbers = tuple(dict.fromkeys(_plain(value) for value in values if is_number(value)))
    if numbers:
        options.append(Number(path=path, values=numbers))
    flags = {value for value in values if isinstance(value, bool)}
    if flags:
        options.append(Flag(path=path, only=None if len(flags) == 2 else flags.pop()))
    for value in values:
        if isinstance(value, list):
            parts = tuple(shape_of_values([each], path) for each in value)
            size = len(parts)
            options.append(Listing(path=path, first=parts, items=NEVER, min_items=size, max_items=size))
        elif isinstance(value, dict):
            members = {name: shape_of_values([each], path) for name, each in value.items()}
            options.append(Record(path=path, members=members, required=frozenset(members), others=NEVER))
    return Shape(tuple(options), null=any(value is None for value in values), path=path)


def is_number(value: Any) -> bool:
    """Whether a value is a finite JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _plain(value: Any) -> int | float:
    # 1.0 and 1 are one number in JSON Schema; the shorter one is easier to read.
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

"""Compares two parameter schemas: which calls are newly accepted or rejected, and the required bump."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

from jackfield_builder.schema_references import UnresolvableSchemaError, resolved


class VersionBump(IntEnum):
    """The part of a semantic version that a change requires raising."""

    PATCH = 1
    MINOR = 2
    MAJOR = 3


_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_TIGHTENING = ("pattern", "format", "multipleOf", "uniqueItems", "additionalProperties")
_ANNOTATIONS = ("description", "title", "examples", "$comment", "deprecated")
_CLASSIFIED = {
    *_LOWER,
    *_UPPER,
    *_TIGHTENING,
    *_ANNOTATIONS,
    "type",
    "enum",
    "const",
    "default",
    "properties",
    "required",
    "items",
}

_Changes = Iterator[tuple[str, VersionBump]]


def argument_changes(before: Any, after: Any) -> _Changes:
    """Yield the changes for callers; a call that is no longer accepted requires a major version."""
    yield from _schema_changes(*in_place(before, after), "")


def in_place(before: Any, after: Any) -> tuple[Any, Any]:
    """Return both schemas with their references resolved, or both as they are if that is not possible."""
    try:
        old, new = (resolved(each) if isinstance(each, dict) else each for each in (before, after))
    except UnresolvableSchemaError:
        # A changed definition then counts as a change of `$defs`, with the bump for an unknown keyword.
        return before, after
    return old, new


def _schema_changes(before: Any, after: Any, name: str) -> _Changes:
    if before == after:
        return
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        yield f"{name or 'schema'} changed", VersionBump.MAJOR
        return
    yield from _properties(before, after, name)
    yield from _values(before, after, name)
    yield from _bounds(before, after, name)
    yield from _annotations(before, after, name)
    if "items" in before or "items" in after:
        yield from _schema_changes(before.get("items", {}), after.get("items", {}), f"{name}[]")
    yield from _other_keywords(before, after, name)


def _properties(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> _Changes:
    old, new = before.get("properties", {}), after.get("properties", {})
    was_required, is_required = set(before.get("required", ())), set(after.get("required", ()))
    for each in sorted({*old, *new}):
        argument = f"{name}.{each}" if name else each
        if each not in old:
            if each in is_required:
                yield f"required argument {argument} added", VersionBump.MAJOR
            else:
                yield f"optional argument {argument} added", VersionBump.MINOR
        elif each not in new:
            yield f"argument {argument} removed", VersionBump.MAJOR
        else:
            if each in is_required - was_required:
                yield f"argument {argument} became required", VersionBump.MAJOR
            elif each in was_required - is_required:
                yield f"argument {argument} became optional", VersionBump.MINOR
            yield from _schema_changes(old[each], new[each], argument)


def _values(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> _Changes:
    old, new = _types(before), _types(after)
    if old != new:
        widened = not new or (bool(old) and old <= new)
        yield (
            f"{name or 'schema'} takes {_listed(new)} instead of {_listed(old)}",
            VersionBump.MINOR if widened else VersionBump.MAJOR,
        )
    was, now = _choices(before), _choices(after)
    if was == now:
        return
    if now is None:
        yield f"{name} is no longer limited to certain values", VersionBump.MINOR
    elif was is None:
        yield f"{name} is now limited to certain values", VersionBump.MAJOR
    else:
        for value in sorted(was - now):
            yield f"{name} no longer takes {value}", VersionBump.MAJOR
        for value in sorted(now - was):
            yield f"{name} also takes {value}", VersionBump.MINOR


def _types(schema: Mapping[str, Any]) -> set[str]:
    declared = schema.get("type", ())
    types = {declared} if isinstance(declared, str) else set(declared)
    # Every integer is a number, so a change from integer to number accepts more.
    return types | {"integer"} if "number" in types else types


def _listed(types: set[str]) -> str:
    shown = types - {"integer"} if "number" in types else types
    return " or ".join(sorted(shown)) or "anything"


def _choices(schema: Mapping[str, Any]) -> set[str] | None:
    if "const" in schema:
        return {repr(schema["const"])}
    return {repr(value) for value in schema["enum"]} if "enum" in schema else None


def _bounds(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> _Changes:
    for keywords, tighter in ((_LOWER, 1), (_UPPER, -1)):
        for keyword in keywords:
            old, new = before.get(keyword), after.get(keyword)
            if old == new:
                continue
            tightened = new is not None and (old is None or (new - old) * tighter > 0)
            yield (
                f"{name}: {keyword} {value_change(old, new)}",
                VersionBump.MAJOR if tightened else VersionBump.MINOR,
            )
    for keyword in _TIGHTENING:
        old, new = before.get(keyword), after.get(keyword)
        if old != new:
            yield (
                f"{name}: {keyword} {value_change(old, new)}",
                VersionBump.MINOR if new in (None, True) else VersionBump.MAJOR,
            )


def value_change(old: Any, new: Any) -> str:
    """Return `OLD -> NEW` with both values as JSON; a missing value is `none`."""
    return " -> ".join(
        "none" if value is None else json.dumps(value, ensure_ascii=False) for value in (old, new)
    )


def _annotations(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> _Changes:
    if before.get("default") != after.get("default") or ("default" in before) != ("default" in after):
        yield (
            f"default of {name}: {value_change(before.get('default'), after.get('default'))}",
            VersionBump.MINOR,
        )
    if any(before.get(word) != after.get(word) for word in _ANNOTATIONS):
        yield f"description of {name or 'the parameters'} changed", VersionBump.PATCH


def _other_keywords(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> _Changes:
    """Yield changes of all other keywords; they may reject calls, so each requires a major version."""
    for keyword in sorted({*before, *after} - _CLASSIFIED):
        if before.get(keyword) != after.get(keyword):
            yield f"{name or 'schema'}: {keyword} changed", VersionBump.MAJOR

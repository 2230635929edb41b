"""How a schema changed, in terms of the calls it accepts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple


class Bump(IntEnum):
    """The part of a semantic version that a change asks to raise."""

    PATCH = 1
    MINOR = 2
    MAJOR = 3


class Change(NamedTuple):
    """One difference in product terms; `bump` is None where no tool's version is concerned."""

    subject: str
    what: str
    bump: Bump | None = None


_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_TIGHTENING = ("pattern", "format", "multipleOf", "uniqueItems", "additionalProperties")
_WORDS = ("description", "title", "examples", "$comment", "deprecated")
_JUDGED = {
    *_LOWER,
    *_UPPER,
    *_TIGHTENING,
    *_WORDS,
    "type",
    "enum",
    "const",
    "default",
    "properties",
    "required",
    "items",
}

_Changes = Iterator[tuple[str, Bump]]


def argument_changes(before: Any, after: Any, name: str = "") -> _Changes:
    """What a caller has to know: a call that was accepted and no longer is asks for a major version."""
    if before == after:
        return
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        yield f"{name or 'schema'} changed", Bump.MAJOR
        return
    yield from _properties(before, after, name)
    yield from _values(before, after, name)
    yield from _bounds(before, after, name)
    yield from _words(before, after, name)
    if "items" in before or "items" in after:
        yield from argument_changes(before.get("items", {}), after.get("items", {}), f"{name}[]")
    yield from _rest(before, after, name)


def _properties(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> _Changes:
    old, new = before.get("properties", {}), after.get("properties", {})
    was_required, is_required = set(before.get("required", ())), set(after.get("required", ()))
    for each in sorted({*old, *new}):
        argument = f"{name}.{each}" if name else each
        if each not in old:
            if each in is_required:
                yield f"required argument {argument} added", Bump.MAJOR
            else:
                yield f"optional argument {argument} added", Bump.MINOR
        elif each not in new:
            yield f"argument {argument} removed", Bump.MAJOR
        else:
            if each in is_required - was_required:
                yield f"argument {argument} became required", Bump.MAJOR
            elif each in was_required - is_required:
                yield f"argument {argument} became optional", Bump.MINOR
            yield from argument_changes(old[each], new[each], argument)


def _values(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> _Changes:
    old, new = _types(before), _types(after)
    if old != new:
        widened = not new or (bool(old) and old <= new)
        yield (
            f"{name or 'schema'} takes {_listed(new)} instead of {_listed(old)}",
            Bump.MINOR if widened else Bump.MAJOR,
        )
    was, now = _choices(before), _choices(after)
    if was == now:
        return
    if now is None:
        yield f"{name} is no longer limited to certain values", Bump.MINOR
    elif was is None:
        yield f"{name} is now limited to certain values", Bump.MAJOR
    else:
        for value in sorted(was - now):
            yield f"{name} no longer takes {value}", Bump.MAJOR
        for value in sorted(now - was):
            yield f"{name} also takes {value}", Bump.MINOR


def _types(schema: Mapping[str, Any]) -> set[str]:
    declared = schema.get("type", ())
    types = {declared} if isinstance(declared, str) else set(declared)
    # Every integer is a number, so a parameter that goes from integer to number is widened.
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
            yield f"{name}: {keyword} {spelled(old, new)}", Bump.MAJOR if tightened else Bump.MINOR
    for keyword in _TIGHTENING:
        old, new = before.get(keyword), after.get(keyword)
        if old != new:
            yield f"{name}: {keyword} {spelled(old, new)}", Bump.MINOR if new in (None, True) else Bump.MAJOR


def spelled(old: Any, new: Any) -> str:
    """Two values as their author wrote them in schema.json, or none."""
    return " -> ".join(
        "none" if value is None else json.dumps(value, ensure_ascii=False) for value in (old, new)
    )


def _words(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> _Changes:
    if before.get("default") != after.get("default") or ("default" in before) != ("default" in after):
        yield f"default of {name}: {spelled(before.get('default'), after.get('default'))}", Bump.MINOR
    if any(before.get(word) != after.get(word) for word in _WORDS):
        yield f"description of {name or 'the parameters'} changed", Bump.PATCH


def _rest(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> _Changes:
    """Keywords not judged one by one: whether they narrow what is accepted cannot be told in general."""
    for keyword in sorted({*before, *after} - _JUDGED):
        if before.get(keyword) != after.get(keyword):
            yield f"{name or 'schema'}: {keyword} changed", Bump.MAJOR

"""Merges the branches of `allOf` into one schema: closed objects cannot be combined in any other way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jackfield_importers.errors import SourceError

_LARGEST = {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}
_SMALLEST = {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}
_ANNOTATIONS = {
    "title",
    "description",
    "example",
    "examples",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
    "discriminator",
    "externalDocs",
    "xml",
}


class UnmergeableError(Exception):
    """Two schemas cannot be written as one."""


def is_annotated_reference(schema: dict[str, Any]) -> bool:
    """Return whether a schema only adds annotations to a single reference in `allOf`."""
    branches = schema.get("allOf")
    return (
        isinstance(branches, list)
        and len(branches) == 1
        and isinstance(branches[0], dict)
        and "$ref" in branches[0]
        and not schema.keys() - _ANNOTATIONS - {"allOf", "nullable"}
    )


def flattened(schema: Any, dereference: Callable[[Any], Any], open_: tuple[int, ...] = ()) -> dict[str, Any]:
    """Return a schema without `$ref` and `allOf` at the top level."""
    target = dereference(schema)
    if not isinstance(target, dict):
        raise UnmergeableError("a branch is not an object schema")
    if id(target) in open_:
        raise SourceError("a schema contains itself through allOf")
    merged: dict[str, Any] = {}
    for source in (target,) if target is schema else (target, schema):
        for branch in source.get("allOf", ()):
            merged = merge(merged, flattened(branch, dereference, (*open_, id(target))))
        merged = merge(merged, {key: value for key, value in source.items() if key not in {"$ref", "allOf"}})
    return merged


def merge(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that accepts what both accept; the second one's annotations take precedence."""
    merged = dict(first)
    for key, value in second.items():
        merged[key] = _merge_keyword(key, merged[key], value) if key in merged else value
    return merged


def _merge_keyword(key: str, first: Any, second: Any) -> Any:  # noqa: PLR0911 - one rule per keyword
    if key in _ANNOTATIONS or key.startswith("x-") or first == second:
        return second
    if key == "properties":
        both = {name: {"allOf": [first[name], second[name]]} for name in first.keys() & second.keys()}
        return {**first, **second, **both}
    if key == "required":
        return list(dict.fromkeys([*first, *second]))
    if key == "enum":
        return [each for each in first if each in second]
    if key == "nullable":
        return first and second
    if key == "additionalProperties":
        # Written to close one branch, it would forbid the members of the others.
        return second if first in (True, False) else first
    if key in _LARGEST | _SMALLEST and _are_numbers(first, second):
        return max(first, second) if key in _LARGEST else min(first, second)
    if key == "type" and isinstance(first, list | str) and isinstance(second, list | str):
        return _common_type(first, second)
    raise UnmergeableError(f"both branches define {key!r}, with different values")


def _common_type(first: list[str] | str, second: list[str] | str) -> list[str] | str:
    left, right = ([each] if isinstance(each, str) else each for each in (first, second))
    common = [each for each in left if each in right]
    if not common:
        raise UnmergeableError("the branches have different types")
    return common[0] if len(common) == 1 else common


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)

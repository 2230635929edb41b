"""Resolves the references in a schema, so that two schemas can be compared by what they say."""

from __future__ import annotations

from typing import Any

from jackfield.registry.arguments import resolve
from jackfield.strict_json import pointer

from jackfield_builder.subschemas import children

_MAX_SCHEMAS = 5_000
"""Maximum number of subschemas after resolving, because definitions that use others twice multiply."""

_MAX_DEPTH = 100

_ANNOTATIONS = frozenset({"title", "description", "examples", "$comment", "deprecated", "default"})

# What these accept depends on other keywords in the same schema.
_DEPENDENT = frozenset(
    {
        "additionalProperties", "unevaluatedProperties", "properties", "patternProperties", "items",
        "prefixItems", "unevaluatedItems", "contains", "minContains", "maxContains", "if", "then", "else",
    }
)  # fmt: skip

_Path = tuple[str | int, ...]


class UnresolvableSchemaError(ValueError):
    """A schema's references cannot be resolved: they have no target, or the result would be too large."""


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with each definition in the place of its references, and without `$defs`.

    In a recursive schema, a reference to an enclosing schema becomes a reference to its place. Raises
    `UnresolvableSchemaError`.
    """
    return _Resolution(schema).resolved(schema, (), {"#": ()})


class _Resolution:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._remaining = _MAX_SCHEMAS

    def resolved(self, schema: dict[str, Any], path: _Path, around: dict[str, _Path]) -> dict[str, Any]:
        """Resolve the schema at `path` in the result; `around` has the places of the enclosing targets."""
        self._remaining -= 1
        if self._remaining < 0 or len(path) + len(around) > _MAX_DEPTH:
            raise UnresolvableSchemaError("too large")
        if "$dynamicRef" in schema or (path and "$id" in schema):
            raise UnresolvableSchemaError("relative to another schema")
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return self._inside(schema, path, around)
        if reference in around:
            return self._inside({**schema, "$ref": f"#{pointer(*around[reference])}"}, path, around)
        siblings = {name: value for name, value in schema.items() if name != "$ref"}
        return self.resolved(_joined(self._target(reference), siblings), path, {**around, reference: path})

    def _target(self, reference: str) -> dict[str, Any]:
        try:
            target = resolve(self._root, reference) if reference.startswith("#/") else None
        except (LookupError, ValueError, TypeError):
            target = None
        if isinstance(target, bool):
            return {} if target else {"not": {}}
        if not isinstance(target, dict):
            raise UnresolvableSchemaError(reference)
        return target

    def _inside(self, schema: dict[str, Any], path: _Path, around: dict[str, _Path]) -> dict[str, Any]:
        result = {name: value for name, value in schema.items() if name != "$defs"}
        copied: set[str | int] = set()
        for child in children(result):
            keyword, *rest = child.path
            inner = self.resolved(child.schema, (*path, *child.path), around)
            if not rest:
                result[str(keyword)] = inner
                continue
            if keyword not in copied:
                container = result[str(keyword)]
                result[str(keyword)] = dict(container) if isinstance(container, dict) else list(container)
                copied.add(keyword)
            result[str(keyword)][rest[0]] = inner
        return result


def _joined(target: dict[str, Any], siblings: dict[str, Any]) -> dict[str, Any]:
    """Return one schema for a definition and the keywords next to the reference, which apply as well."""
    if (target.keys() & siblings.keys()) <= _ANNOTATIONS and siblings.keys().isdisjoint(_DEPENDENT):
        # A description next to the reference is more specific.
        return {**target, **siblings}
    return {**siblings, "allOf": [*siblings.get("allOf", ()), target]}

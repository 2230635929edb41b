"""Completes a manifest: adds every field that its author may omit because the others imply it.

The snapshot contains the complete manifest, so its readers do not need to know these rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jackfield.registry.arguments import resolve
from packaging.version import InvalidVersion, Version

from jackfield_builder.subschemas import Subschema, SubschemaRole, children

LATENCY_BUDGETS_MS = {"retrieval": 800, "utility": 200, "action": 3000}

SIDE_EFFECTS = {"utility": "none", "retrieval": "read_only"}
"""The side effects that a category implies; those of an action must be stated."""

UNKNOWN_VERSION = "0.0.0"
"""The version of a project whose build backend computes it."""


def complete_manifest(
    written: Mapping[str, Any], *, tool_id: str, version: str, summary: str
) -> dict[str, Any]:
    """Return the manifest with all implied fields; a field that is stated stays as it is.

    A field that neither the author nor a rule provides stays absent, and the manifest check reports it.
    """
    fields: dict[str, Any] = {"toolId": tool_id, "version": version, "allowedModes": ["text", "voice"]}
    if summary:
        fields["description"] = summary
    category = written.get("category")
    if isinstance(category, str) and category in LATENCY_BUDGETS_MS:
        fields["latencyBudgetMs"] = LATENCY_BUDGETS_MS[category]
    effects = written.get("sideEffects", SIDE_EFFECTS.get(category) if isinstance(category, str) else None)
    if effects is not None:
        fields["sideEffects"] = effects
        if effects != "writes":
            fields |= {"idempotent": True, "requiresConfirmation": False}
    fields |= written
    parameters = written.get("parameters", {})
    if isinstance(parameters, dict):
        fields["parameters"] = close_objects({"type": "object", **parameters})
    return fields


def is_version(version: str) -> bool:
    """Return whether a distribution may have this version."""
    try:
        Version(version)
    except InvalidVersion:
        return False
    return True


def semantic_version(version: str) -> str:
    """Return a distribution's version as a semantic version; unchanged if there is no equivalent."""
    if not version:
        return UNKNOWN_VERSION
    try:
        parsed = Version(version)
    except InvalidVersion:
        return version
    if parsed.epoch or parsed.post is not None or len(parsed.release) > 3:
        return version
    release = ".".join(str(part) for part in (*parsed.release, 0, 0)[:3])
    labels = [*(parsed.pre or ()), *(("dev", parsed.dev) if parsed.dev is not None else ())]
    early = f"-{'.'.join(map(str, labels))}" if labels else ""
    return f"{release}{early}{f'+{parsed.local}' if parsed.local else ''}"


def close_objects(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in which every object that does not state `additionalProperties` is closed.

    An object stays open if closing it would refuse a property that a subschema declares for it. The author
    has to decide in that case, and the parameters check says so.
    """
    return _closed(schema, schema, closed=False)


def _closed(root: dict[str, Any], schema: dict[str, Any], *, closed: bool) -> dict[str, Any]:
    result = dict(schema)
    if not closed and "additionalProperties" not in schema and describes_object(schema):
        declared = set(_declared_elsewhere(root, schema, frozenset()))
        if declared <= set(_members(schema)):
            result["additionalProperties"] = False
    closed = closed or result.get("additionalProperties") is False
    for child in children(schema):
        if child.role is not SubschemaRole.CONDITION:
            inside = closed and child.role is SubschemaRole.IN_PLACE
            _put(result, child, _closed(root, child.schema, closed=inside))
    return result


def describes_object(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema describes an object, by its type or its keywords."""
    kind = schema.get("type")
    if kind is None:
        return not schema.keys().isdisjoint({"properties", "patternProperties", "additionalProperties"})
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _declared_elsewhere(
    root: dict[str, Any], schema: dict[str, Any], followed: frozenset[str]
) -> Iterator[str]:
    """Yield the properties that other schemas of the same value declare: in place or by reference."""
    others = [child.schema for child in children(schema) if child.role is SubschemaRole.IN_PLACE]
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in followed:
        followed |= {reference}
        try:
            target = resolve(root, reference)
        except (LookupError, ValueError, TypeError):
            target = None
        others += [target] if isinstance(target, dict) else []
    for other in others:
        yield from _members(other)
        yield from _declared_elsewhere(root, other, followed)


def _members(schema: Mapping[str, Any]) -> list[str]:
    properties = schema.get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _put(result: dict[str, Any], child: Subschema, schema: dict[str, Any]) -> None:
    """Replace a direct subschema; the containers on its path are copied, so the original stays unchanged."""
    keyword, *tail = child.path
    if not tail:
        result[str(keyword)] = schema
        return
    container = result[str(keyword)]
    copied = list(container) if isinstance(container, list) else dict(container)
    copied[tail[0]] = schema  # type: ignore[index]
    result[str(keyword)] = copied

"""Values inside objects: where they stand, and which of them are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.tool import Parameter

_ANSWERABLE = frozenset((Kind.AMOUNT, Kind.COUNT, Kind.LENGTH, Kind.CHOICE, Kind.TEXT, Kind.NAME))


def put(args: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set what stands at a path, with the objects that lead to it."""
    for step in path[:-1]:
        inner = args.get(step)
        args[step] = dict(inner) if isinstance(inner, Mapping) else {}
        args = args[step]
    args[path[-1]] = value


def merged(known: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """What is known with what is new, which wins; objects are put together member by member."""
    both = dict(known)
    for name, value in new.items():
        old = both.get(name)
        inside = isinstance(old, Mapping) and isinstance(value, Mapping)
        both[name] = merged(old, value) if inside else value  # type: ignore[arg-type]
    return both


def lacking(parameter: Parameter, value: Any) -> list[Parameter]:
    """The members that an object still needs, if a person can be asked for each; else the whole."""
    if parameter.kind is not Kind.OBJECT or parameter.many:
        return [parameter]
    given = value if isinstance(value, Mapping) else {}
    found: list[Parameter] = []
    for child in parameter.children:
        inner = given.get(child.name)
        if child.required and not (inner is not None and fits(child, inner)):
            found += lacking(child, inner)
    asked = bool(found) and all(each.kind in _ANSWERABLE and not each.many for each in found)
    return found if asked else [parameter]


def fits(parameter: Parameter, value: Any) -> bool:
    """Whether the schema takes a value."""
    return bool(jsonschema_rs.is_valid(dict(parameter.schema), value, validate_formats=True))

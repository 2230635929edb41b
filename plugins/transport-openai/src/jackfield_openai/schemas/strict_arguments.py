"""Restores strict arguments: removes the nulls that stand for absent properties.

The declaration says which properties are optional: they have null before their own type (see `strict`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jackfield import strict_json

Restore = Callable[[str], str]
"""Converts returned arguments into those of the tool's schema; other text is returned unchanged."""


_PARTED = {"properties", "items", "anyOf", "$ref"}


@dataclass(slots=True)
class _Members:
    names: frozenset[str]
    droppable: frozenset[str]
    inner: dict[str, _Plan] = field(default_factory=dict)
    marks: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Properties whose values distinguish this alternative from others."""

    def fits(self, value: dict[str, Any]) -> bool:
        return self.names == value.keys() and all(value[name] in marks for name, marks in self.marks.items())


@dataclass(slots=True)
class _Plan:
    objects: list[_Members] = field(default_factory=list)
    items: _Plan | None = None


def argument_restorer(declaration: Mapping[str, Any]) -> Restore | None:
    """Return the function that restores a tool's arguments; `None` if they need no change."""
    function = declaration.get("function")
    if not isinstance(function, Mapping) or not function.get("strict"):
        return None
    planning = _PlanReader(function["parameters"])
    if not planning.drops:
        return None
    return _Restorer(planning.plan).restore


class _Restorer:
    def __init__(self, plan: _Plan) -> None:
        self._plan = plan

    def restore(self, text: str) -> str:
        if "null" not in text:
            return text
        try:
            arguments = strict_json.loads(text)
        except strict_json.StrictJsonError:
            return text
        if not _dropped(self._plan, arguments):
            return text
        return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _dropped(plan: _Plan, value: Any) -> bool:
    """Remove absent properties in place; return whether there were any."""
    changed = False
    if isinstance(value, dict):
        members = _chosen(plan.objects, value)
        if members is None:
            return False
        for name in members.droppable:
            if name in value and value[name] is None:
                del value[name]
                changed = True
        for name, inner in members.inner.items():
            if name in value and _dropped(inner, value[name]):
                changed = True
    elif isinstance(value, list) and plan.items is not None:
        for item in value:
            changed = _dropped(plan.items, item) or changed
    return changed


def _chosen(objects: list[_Members], value: dict[str, Any]) -> _Members | None:
    if len(objects) == 1:
        return objects[0]
    return next((members for members in objects if members.fits(value)), None)


class _PlanReader:
    """Reads plans from a strict schema; a recursive schema gives a plan that contains itself."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._definitions = schema.get("$defs", {})
        self._known: dict[str, _Plan] = {}
        self.drops = False
        self.plan = _Plan()
        self._fill(self.plan, schema)

    def _plan_of(self, node: dict[str, Any]) -> _Plan:
        name = _referred(node)
        if name is None:
            plan = _Plan()
            self._fill(plan, node)
            return plan
        while (further := _referred(self._definitions[name])) is not None:
            name = further
        if name not in self._known:
            self._known[name] = _Plan()
            self._fill(self._known[name], self._definitions[name])
        return self._known[name]

    def _fill(self, plan: _Plan, node: dict[str, Any]) -> None:
        for branch in node.get("anyOf", (node,)):
            if "properties" in branch:
                plan.objects.append(self._members(branch))
            elif "items" in branch:
                # Alternatives with different plans for their items are not declared as strict.
                plan.items = plan.items or self._plan_of(branch["items"])

    def _members(self, node: dict[str, Any]) -> _Members:
        inside = node["properties"]
        droppable = frozenset(name for name, member in inside.items() if null_in_front(member))
        self.drops = self.drops or bool(droppable)
        members = _Members(frozenset(inside), droppable)
        for name, member in inside.items():
            if not _PARTED.isdisjoint(member):
                members.inner[name] = self._plan_of(member)
            if name not in droppable and "enum" in member:
                members.marks[name] = tuple(member["enum"])
        return members


def _referred(node: dict[str, Any]) -> str | None:
    """Return the definition a node refers to; alternatives are inlined, so there is at most one."""
    for branch in node.get("anyOf", (node,)):
        if "$ref" in branch:
            return str(branch["$ref"]).removeprefix("#/$defs/")
    return None


def null_in_front(node: dict[str, Any]) -> bool:
    """True if null was added because the property is optional."""
    kinds = node.get("type")
    if isinstance(kinds, list):
        return bool(kinds[0] == "null")
    branches = node.get("anyOf", ())
    return len(branches) > 1 and branches[0] == {"type": "null"}


def ambiguous(branches: list[dict[str, Any]]) -> bool:
    """True if a returned value could belong to two alternatives with different optional properties."""
    objects = [branch for branch in branches if "properties" in branch]
    arrays = [branch for branch in branches if "items" in branch]
    if any(_differ(arrays[0], other) for other in arrays[1:]):
        return True
    return any(
        _confusable(one, other)
        for index, one in enumerate(objects)
        for other in objects[index + 1 :]
        if _differ(one, other)
    )


def _differ(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """True if it matters which of two alternatives a value belongs to."""
    return (_leaves_out(one) or _leaves_out(other)) and _signature(one) != _signature(other)


def _leaves_out(node: dict[str, Any]) -> bool:
    """True if a property anywhere inside may be absent; a reference counts as one that may."""
    members = node.get("properties", {}).values()
    inside = [*members, *node.get("anyOf", ()), *([node["items"]] if "items" in node else ())]
    return "$ref" in node or any(map(null_in_front, members)) or any(map(_leaves_out, inside))


def _confusable(one: dict[str, Any], other: dict[str, Any]) -> bool:
    ones, others = one["properties"], other["properties"]
    if ones.keys() != others.keys():
        return False
    for name, member in ones.items():
        values, other_values = member.get("enum"), others[name].get("enum")
        if values and other_values and not any(value in other_values for value in values):
            return null_in_front(member) or null_in_front(others[name])
    return True


def _signature(node: dict[str, Any]) -> Any:
    """Return what is removed where; alternatives with the same signature need not be distinguished."""
    if "anyOf" in node:
        return [_signature(branch) for branch in node["anyOf"]]
    if "properties" in node:
        return {
            name: (null_in_front(member), _signature(member)) for name, member in node["properties"].items()
        }
    if "items" in node:
        return [_signature(node["items"])]
    return node.get("$ref")

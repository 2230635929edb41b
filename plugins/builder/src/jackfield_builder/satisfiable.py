"""Schemas that no value can satisfy, found without trying values.

The search is sound, not complete: it reports a schema only if it has a proof, and takes everything it does
not understand (`pattern`, `format`, most of `not`) to accept any value. A schema is split into conjunctions:
sets of schemas that all speak about one value, with `$ref` and `allOf` followed and one branch chosen of each
`anyOf` and `oneOf`. A conjunction is empty if every type it allows is contradictory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import Any
from urllib.parse import quote, unquote

import jsonschema_rs
from jackfield.registry.arguments import compile_schema
from jackfield.strict_json import pointer

from jackfield_builder.subschemas import Applies, children

Path = tuple[str | int, ...]
Atoms = frozenset[Path]
"""Schemas that speak about the same value, by their paths."""

_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_MOST_STEPS = 2_000
_MOST_WORK = 100_000
"""How many schemas are looked at for one schema inside, and for all of them together."""
_MOST_BRANCHES = 64
_DEEPEST = 40
_MOST_POSITIONS = 32
_EXACT = 2**53
"""Beyond this, numbers are compared as floats, and no proof about whole numbers holds."""

_URI = "urn:jackfield:schema"


def unsatisfiable(
    root: Mapping[str, Any], excused: frozenset[Path] = frozenset()
) -> Iterator[tuple[Path, str]]:
    """The path of every schema that no value satisfies, innermost first, with the reason.

    A schema that is empty only because of one that was reported or is `excused` is passed over, and so are
    conditions, `false` and `{"not": {}}`, with which an author says on purpose that nothing is accepted.
    """
    search = _Search(root, excused)
    for path in _innermost_first(dict(root), ()):
        if not search.is_on_purpose(path) and (reason := search.reason(path)):
            search.excuse(path)
            yield path, reason


def _innermost_first(schema: dict[str, Any], path: Path) -> Iterator[Path]:
    # Definitions first: what refers to one fails because of it.
    for each in sorted(children(schema, path), key=lambda each: each.path[len(path)] != "$defs"):
        if each.applies is not Applies.AS_CONDITION:
            yield from _innermost_first(each.schema, each.path)
    yield path


class _GiveUpError(Exception):
    """The search has become too long for a proof."""


class _Search:
    """Looks for proofs that schemas are empty."""

    def __init__(self, root: Mapping[str, Any], excused: frozenset[Path]) -> None:
        self._root = root
        self._excused = excused
        self._under_way: list[Atoms] = []
        self._steps = 0
        self._work = _MOST_WORK
        self._validators: dict[Path, jsonschema_rs.Draft202012Validator] = {}
        self._registry = jsonschema_rs.Registry([(_URI, dict(root))])

    def excuse(self, path: Path) -> None:
        """Take a schema to accept any value from here on."""
        self._excused |= {path}

    def is_on_purpose(self, path: Path) -> bool:
        """Whether the author says outright that nothing is accepted, or the schema is excused."""
        if path in self._excused:
            return True
        schema = self._at(path)
        return isinstance(schema, Mapping) and schema.get("not") in (True, {}) and len(schema) == 1

    def reason(self, path: Path) -> str:
        """Why no value satisfies a schema; empty if there may be one."""
        self._steps, self._under_way = min(_MOST_STEPS, self._work), []
        try:
            return self._reason(frozenset([path]))
        except (_GiveUpError, RecursionError):
            return ""

    def _spend(self) -> None:
        self._steps -= 1
        self._work -= 1
        if self._steps < 0:
            raise _GiveUpError

    def _reason(self, atoms: Atoms) -> str:
        if len(self._under_way) > _DEEPEST:
            raise _GiveUpError
        if atoms in self._under_way:
            # The smallest value of a conjunction has no value of the same conjunction inside it.
            return "it contains itself without end"
        self._under_way.append(atoms)
        try:
            reasons = []
            for branch in self._branches(atoms):
                reason = self._of_branch(branch, atoms)
                if not reason:
                    return ""
                reasons.append(reason)
        finally:
            self._under_way.pop()
        return reasons[0] if len(set(reasons)) == 1 else f"no alternative can be satisfied: {reasons[0]}"

    def _branches(self, atoms: Atoms) -> Iterator[list[Path]]:
        """The conjunctions that the schemas stand for together; a value satisfies at least one of them."""
        plain, choices = self._flattened(atoms)
        if math.prod(map(len, choices)) > _MOST_BRANCHES:
            raise _GiveUpError
        for chosen in product(*choices):
            extra = frozenset(path for path in chosen if path is not None)
            if not extra:
                yield plain
                continue
            # A choice inside a choice is left open: that accepts more, never less.
            inner, _ = self._flattened(extra)
            yield list(dict.fromkeys([*plain, *inner]))

    def _flattened(self, atoms: Atoms) -> tuple[list[Path], list[list[Path | None]]]:
        """All that holds together, and the alternatives of which one holds."""
        plain: dict[Path, None] = {}
        choices: list[list[Path | None]] = []
        waiting = sorted(atoms, key=str, reverse=True)
        while waiting:
            self._spend()
            path = waiting.pop()
            schema = self._at(path)
            if path in plain or path in self._excused or schema is True:
                continue
            plain[path] = None
            if not isinstance(schema, Mapping):
                continue
            if isinstance(reference := schema.get("$ref"), str):
                waiting.append(_target(self._root, reference))
            waiting += [(*path, "allOf", index) for index in range(len(schema.get("allOf", ())))]
            choices += [
                [(*path, keyword, index) for index in range(len(schema[keyword]))]
                for keyword in ("anyOf", "oneOf")
                if keyword in schema
            ]
            if "if" in schema:
                then, otherwise = ((*path, word) if word in schema else None for word in ("then", "else"))
                choices.append([then, otherwise])
        return list(plain), choices

    def _of_branch(self, paths: list[Path], whole: Atoms) -> str:
        schemas = [self._at(path) for path in paths]
        if False in [schema for schema in schemas if isinstance(schema, bool)]:
            return "`false` accepts nothing"
        atoms = [schema for schema in schemas if isinstance(schema, Mapping)]
        if any(schema.get("not") in (True, {}) for schema in atoms if "not" in schema):
            return "`not` excludes every value"
        listed = next((_listed(schema) for schema in atoms if _listed(schema) is not None), None)
        if listed is not None:
            return self._of_values(listed, whole)
        types = _types(atoms)
        if not types:
            return "no type is left that all of it allows"
        reasons = []
        for kind in types:
            reason = self._of_type(kind, atoms, paths)
            if not reason:
                return ""
            reasons.append(reason)
        return reasons[0]

    def _of_values(self, values: list[Any], whole: Atoms) -> str:
        """Values that are listed can be tried, all of them."""
        if any(path[: len(outer)] == outer for path in self._excused for outer in whole):
            return ""
        if any(all(self._validator(path).is_valid(value) for path in whole) for value in values):
            return ""
        return "none of the values that `enum` or `const` allow fits the rest of the schema"

    def _of_type(self, kind: str, atoms: list[Mapping[str, Any]], paths: list[Path]) -> str:
        if kind in ("integer", "number"):
            return _of_numbers(atoms, whole=kind == "integer")
        if kind == "string":
            return _crossed(atoms, "minLength", "maxLength")
        if kind == "array":
            return self._of_arrays(atoms, paths)
        if kind == "object":
            return self._of_objects(atoms, paths)
        return ""

    def _of_arrays(self, atoms: list[Mapping[str, Any]], paths: list[Path]) -> str:
        placed = [(path, schema) for path in paths if isinstance(schema := self._at(path), Mapping)]
        least = max([schema.get("minItems", 0) for schema in atoms], default=0)
        for path, schema in placed:
            needed = schema.get("minContains", 1) if "contains" in schema else 0
            if needed > schema.get("maxContains", math.inf):
                return f"minContains {needed} is greater than maxContains {schema['maxContains']}"
            if needed and (reason := self._reason(frozenset([(*path, "contains")]))):
                return f"an item that `contains` asks for accepts no value: {reason}"
            least = max(least, needed)
        most = min([schema.get("maxItems", math.inf) for schema in atoms], default=math.inf)
        if least > most:
            return (
                _crossed(atoms, "minItems", "maxItems")
                or "`contains` asks for more items than maxItems allows"
            )
        for index in range(min(math.ceil(least), _MOST_POSITIONS)):
            items = frozenset(_item(placed, index))
            if items and (reason := self._reason(items)):
                return f"item {index} must be given and accepts no value: {reason}"
        return self._of_unique_items(placed, least)

    def _of_unique_items(self, placed: list[tuple[Path, Mapping[str, Any]]], least: float) -> str:
        unique = any(schema.get("uniqueItems") is True for _, schema in placed)
        if not unique or any("prefixItems" in schema for _, schema in placed):
            return ""
        counts = [self._count((*path, "items")) for path, schema in placed if "items" in schema]
        most = min((count for count in counts if count is not None), default=None)
        if most is None or least <= most:
            return ""
        return f"minItems is {least}, and there are only {most} different items"

    def _count(self, path: Path) -> int | None:
        """How many different values a schema accepts at most, where that is plain to see."""
        schema = self._at(path)
        values = _listed(schema) if isinstance(schema, Mapping) and path not in self._excused else None
        return None if values is None else len({json.dumps(value, sort_keys=True) for value in values})

    def _of_objects(self, atoms: list[Mapping[str, Any]], paths: list[Path]) -> str:
        placed = [(path, schema) for path in paths if isinstance(schema := self._at(path), Mapping)]
        required = _required(atoms)
        if triggered := self._triggered(placed, required):
            # What depends on a member that must be given speaks about the object itself.
            return self._reason(frozenset([*paths, *triggered]))
        if reason := _crossed(atoms, "minProperties", "maxProperties"):
            return reason
        most = min([schema.get("maxProperties", math.inf) for schema in atoms], default=math.inf)
        if len(required) > most:
            return f"{len(required)} members are required, and maxProperties is {most}"
        for name in sorted(required):
            if reason := self._of_member(placed, name):
                return f"{name!r} is required and accepts no value: {reason}"
        least = max([schema.get("minProperties", 0) for schema in atoms], default=0)
        names = _closed_names(atoms)
        if names is not None and len(names) < least:
            return f"minProperties is {least}, and only {len(names)} members are allowed"
        return ""

    def _triggered(self, placed: list[tuple[Path, Mapping[str, Any]]], required: set[str]) -> list[Path]:
        known = {path for path, _ in placed}
        found = [
            (*path, "dependentSchemas", name)
            for path, schema in placed
            for name in schema.get("dependentSchemas", {})
            if name in required
        ]
        return [path for path in found if path not in known | self._excused and self._at(path) is not True]

    def _of_member(self, placed: list[tuple[Path, Mapping[str, Any]]], name: str) -> str:
        inside: list[Path] = []
        for path, schema in placed:
            here: list[Path] = [(*path, "properties", name)] if name in schema.get("properties", {}) else []
            here += [
                (*path, "patternProperties", pattern)
                for pattern in schema.get("patternProperties", {})
                if compile_schema({"pattern": pattern}).is_valid(name)
            ]
            if not here and "additionalProperties" in schema:
                here.append((*path, "additionalProperties"))
            inside += here
            names = (*path, "propertyNames")
            judged = "propertyNames" in schema and names not in self._excused
            if judged and not self._validator(names).is_valid(name):
                return "`propertyNames` does not allow its name"
        return self._reason(frozenset(inside)) if inside else ""

    def _validator(self, path: Path) -> jsonschema_rs.Draft202012Validator:
        if path not in self._validators:
            fragment = quote(pointer(*path)) if path else ""
            schema = {"$ref": f"{_URI}#{fragment}"}
            self._validators[path] = compile_schema(schema, registry=self._registry)
        return self._validators[path]

    def _at(self, path: Path) -> Any:
        found: Any = self._root
        for part in path:
            found = found[part]
        return found


def _target(root: Mapping[str, Any], reference: str) -> Path:
    path: list[str | int] = []
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        path.append(int(name) if isinstance(found, list) else name)
        found = found[path[-1]]
    return tuple(path)


def _listed(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return list(schema["enum"]) if "enum" in schema else None


def _types(atoms: list[Mapping[str, Any]]) -> list[str]:
    """The types that all of the schemas allow; whole numbers apart from others."""
    left = set(_TYPES)
    for schema in atoms:
        if "type" in schema:
            left &= _named(schema["type"])
        excluded = schema.get("not")
        if isinstance(excluded, Mapping) and excluded.keys() == {"type"}:
            left -= _named(excluded["type"])
    return [kind for kind in _TYPES if kind in left]


def _named(given: str | list[str]) -> set[str]:
    """The types behind `type`; `number` stands for whole numbers too."""
    names = {given} if isinstance(given, str) else set(given)
    return names | {"integer"} if "number" in names else names


def _crossed(atoms: list[Mapping[str, Any]], low: str, high: str) -> str:
    least = max([schema[low] for schema in atoms if low in schema], default=0)
    most = min([schema[high] for schema in atoms if high in schema], default=math.inf)
    return f"{low} {least} is greater than {high} {most}" if least > most else ""


def _of_numbers(atoms: list[Mapping[str, Any]], *, whole: bool) -> str:
    lows = _bounds(atoms, "minimum", "exclusiveMinimum")
    highs = _bounds(atoms, "maximum", "exclusiveMaximum")
    if not lows or not highs or any(abs(bound) > _EXACT for bound, _, _ in (*lows, *highs)):
        return ""
    low, above, low_name = max(lows)
    high, below, high_name = min(highs, key=lambda each: (each[0], not each[1]))
    told = f"{low_name} {_shown(low)} and {high_name} {_shown(high)} leave no number"
    if low > high or (low == high and (above or below)):
        return told
    if not whole:
        return ""
    first = math.floor(low) + 1 if above else math.ceil(low)
    last = math.ceil(high) - 1 if below else math.floor(high)
    step = _step(atoms)
    if first <= last and -(-first // step) * step <= last:
        return ""
    return f"{told}{' that is whole' if step == 1 else f' that is a multiple of {step}'}"


def _bounds(
    atoms: list[Mapping[str, Any]], open_name: str, exclusive: str
) -> list[tuple[Fraction, bool, str]]:
    found = [(Fraction(schema[open_name]), False, open_name) for schema in atoms if open_name in schema]
    return [
        *found,
        *((Fraction(schema[exclusive]), True, exclusive) for schema in atoms if exclusive in schema),
    ]


def _step(atoms: list[Mapping[str, Any]]) -> int:
    """What whole numbers have to be a multiple of, as far as it is whole itself."""
    steps = [schema["multipleOf"] for schema in atoms if "multipleOf" in schema]
    return math.lcm(*(int(step) for step in steps if step < _EXACT and float(step).is_integer()))


def _shown(bound: Fraction) -> str:
    return str(bound if bound.denominator == 1 else float(bound))


def _item(placed: list[tuple[Path, Mapping[str, Any]]], index: int) -> Iterator[Path]:
    for path, schema in placed:
        if index < len(schema.get("prefixItems", ())):
            yield (*path, "prefixItems", index)
        elif "items" in schema:
            yield (*path, "items")


def _required(atoms: list[Mapping[str, Any]]) -> set[str]:
    """The members that must be given, those among them that others ask for."""
    required = {name for schema in atoms for name in schema.get("required", ())}
    waiting = list(required)
    while waiting:
        name = waiting.pop()
        for schema in atoms:
            more = set(schema.get("dependentRequired", {}).get(name, ())) - required
            required |= more
            waiting += more
    return required


def _closed_names(atoms: list[Mapping[str, Any]]) -> set[str] | None:
    """The only names that members may have, if there is such a list."""
    closed = [
        {name for name, member in schema.get("properties", {}).items() if member is not False}
        for schema in atoms
        if schema.get("additionalProperties") is False and not schema.get("patternProperties")
    ]
    return set.intersection(*closed) if closed else None

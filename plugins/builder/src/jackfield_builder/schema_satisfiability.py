"""Finds schemas that no value can satisfy, without trying values.

The search is sound but not complete: it reports a schema only with a proof, and assumes that every keyword it
does not interpret (`pattern`, most of `not`, and `format` except for lengths) accepts any value. It splits a
schema into conjunctions: sets of schemas that all describe one value, with `$ref` and `allOf` followed and
one branch chosen from each `anyOf` and `oneOf`. A conjunction is empty if every type it allows is
contradictory.
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

from jackfield_builder.subschemas import SubschemaRole, children

Path = tuple[str | int, ...]
Atoms = frozenset[Path]
"""The paths of schemas that describe the same value."""

_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_MAX_STEPS = 2_000
_MAX_WORK = 100_000
"""Limits on the number of visited schemas: for one subschema, and for the whole search."""
_MAX_BRANCHES = 64
_MAX_DEPTH = 40
_MAX_POSITIONS = 32
_EXACT = 2**53
"""Validators compare larger numbers as floats, so no proof about integers is possible there."""

_URI = "urn:jackfield:schema"

_FORMAT_LENGTHS: Mapping[str, tuple[int, float]] = {
    "date": (10, 10), "date-time": (20, math.inf), "time": (9, math.inf), "uuid": (36, 36),
    "email": (3, math.inf), "ipv4": (7, 15), "ipv6": (2, 45),
}  # fmt: skip
"""The minimum and maximum number of characters of a text in each format."""


def unsatisfiable_schemas(
    root: Mapping[str, Any], ignored: frozenset[Path] = frozenset()
) -> Iterator[tuple[Path, str]]:
    """Yield the path of every schema that no value satisfies, innermost first, with the reason.

    Skips a schema that is empty only because of a reported or `ignored` one. Also skips conditions, and
    `false` and `{"not": {}}`, which an author uses to accept nothing on purpose.
    """
    search = _EmptinessSearch(root, ignored)
    for path in _innermost_first(dict(root), ()):
        if not search.is_intended(path) and (reason := search.reason(path)):
            search.ignore(path)
            yield path, reason


def _innermost_first(schema: dict[str, Any], path: Path) -> Iterator[Path]:
    # Definitions first, because a schema that refers to an empty definition is empty because of it.
    for each in sorted(children(schema, path), key=lambda each: each.path[len(path)] != "$defs"):
        if each.role is not SubschemaRole.CONDITION:
            yield from _innermost_first(each.schema, each.path)
    yield path


class _GiveUpError(Exception):
    """The search exceeded its limits without a proof."""


class _EmptinessSearch:
    """Searches for proofs that schemas accept no value."""

    def __init__(self, root: Mapping[str, Any], ignored: frozenset[Path]) -> None:
        self._root = root
        self._ignored = ignored
        self._active: list[Atoms] = []
        self._steps = 0
        self._work = _MAX_WORK
        self._validators: dict[Path, jsonschema_rs.Draft202012Validator] = {}
        self._registry = jsonschema_rs.Registry([(_URI, dict(root))])

    def ignore(self, path: Path) -> None:
        """Treat a schema as accepting any value from now on."""
        self._ignored |= {path}

    def is_intended(self, path: Path) -> bool:
        """Return whether the schema accepts nothing on purpose, or is ignored."""
        if path in self._ignored:
            return True
        schema = self._at(path)
        return isinstance(schema, Mapping) and schema.get("not") in (True, {}) and len(schema) == 1

    def reason(self, path: Path) -> str:
        """Return why no value satisfies a schema; empty if a value may exist."""
        self._steps, self._active = min(_MAX_STEPS, self._work), []
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
        if len(self._active) > _MAX_DEPTH:
            raise _GiveUpError
        if atoms in self._active:
            # The smallest value of a conjunction cannot contain another value of the same conjunction.
            return "it contains itself endlessly"
        self._active.append(atoms)
        try:
            reasons = []
            for branch in self._branches(atoms):
                reason = self._branch_reason(branch, atoms)
                if not reason:
                    return ""
                reasons.append(reason)
        finally:
            self._active.pop()
        return reasons[0] if len(set(reasons)) == 1 else f"no alternative can be satisfied: {reasons[0]}"

    def _branches(self, atoms: Atoms) -> Iterator[list[Path]]:
        """Yield the conjunctions of the schemas; every accepted value satisfies at least one of them."""
        plain, choices = self._flattened(atoms)
        if math.prod(map(len, choices)) > _MAX_BRANCHES:
            raise _GiveUpError
        for chosen in product(*choices):
            extra = frozenset(path for path in chosen if path is not None)
            if not extra:
                yield plain
                continue
            # Nested choices are ignored; the result can only accept more values.
            inner, _ = self._flattened(extra)
            yield list(dict.fromkeys([*plain, *inner]))

    def _flattened(self, atoms: Atoms) -> tuple[list[Path], list[list[Path | None]]]:
        """Return the schemas that apply together, and the lists of alternatives of which one applies."""
        plain: dict[Path, None] = {}
        choices: list[list[Path | None]] = []
        waiting = sorted(atoms, key=str, reverse=True)
        while waiting:
            self._spend()
            path = waiting.pop()
            schema = self._at(path)
            if path in plain or path in self._ignored or schema is True:
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

    def _branch_reason(self, paths: list[Path], whole: Atoms) -> str:
        schemas = [self._at(path) for path in paths]
        if False in [schema for schema in schemas if isinstance(schema, bool)]:
            return "`false` accepts nothing"
        atoms = [schema for schema in schemas if isinstance(schema, Mapping)]
        if any(schema.get("not") in (True, {}) for schema in atoms if "not" in schema):
            return "`not` excludes every value"
        listed = next((_listed(schema) for schema in atoms if _listed(schema) is not None), None)
        if listed is not None:
            return self._values_reason(listed, whole)
        types = _types(atoms)
        if not types:
            return "no type is allowed by all of its keywords"
        reasons = []
        for kind in types:
            reason = self._type_reason(kind, atoms, paths)
            if not reason:
                return ""
            reasons.append(reason)
        return reasons[0]

    def _values_reason(self, values: list[Any], whole: Atoms) -> str:
        """Return why no listed value is accepted, after trying each of them; empty if one is."""
        if any(path[: len(outer)] == outer for path in self._ignored for outer in whole):
            return ""
        if any(all(self._validator(path).is_valid(value) for path in whole) for value in values):
            return ""
        return "no value of `enum` or `const` satisfies the rest of the schema"

    def _type_reason(self, kind: str, atoms: list[Mapping[str, Any]], paths: list[Path]) -> str:
        if kind in ("integer", "number"):
            return _number_reason(atoms, whole=kind == "integer")
        if kind == "string":
            return _crossed(atoms, "minLength", "maxLength") or _format_reason(atoms)
        if kind == "array":
            return self._array_reason(atoms, paths)
        if kind == "object":
            return self._object_reason(atoms, paths)
        return ""

    def _array_reason(self, atoms: list[Mapping[str, Any]], paths: list[Path]) -> str:
        placed = [(path, schema) for path in paths if isinstance(schema := self._at(path), Mapping)]
        least = max([schema.get("minItems", 0) for schema in atoms], default=0)
        for path, schema in placed:
            needed = schema.get("minContains", 1) if "contains" in schema else 0
            if needed > schema.get("maxContains", math.inf):
                return f"minContains {needed} is greater than maxContains {schema['maxContains']}"
            if needed and (reason := self._reason(frozenset([(*path, "contains")]))):
                return f"`contains` requires an item that no value can satisfy: {reason}"
            least = max(least, needed)
        most = min([schema.get("maxItems", math.inf) for schema in atoms], default=math.inf)
        if least > most:
            return (
                _crossed(atoms, "minItems", "maxItems")
                or "`contains` requires more items than maxItems allows"
            )
        for index in range(min(math.ceil(least), _MAX_POSITIONS)):
            items = frozenset(_item(placed, index))
            if items and (reason := self._reason(items)):
                return f"item {index} is required and accepts no value: {reason}"
        return self._unique_items_reason(placed, least)

    def _unique_items_reason(self, placed: list[tuple[Path, Mapping[str, Any]]], least: float) -> str:
        unique = any(schema.get("uniqueItems") is True for _, schema in placed)
        if not unique or any("prefixItems" in schema for _, schema in placed):
            return ""
        counts = [self._count((*path, "items")) for path, schema in placed if "items" in schema]
        most = min((count for count in counts if count is not None), default=None)
        if most is None or least <= most:
            return ""
        return f"minItems is {least}, but there are only {most} different items"

    def _count(self, path: Path) -> int | None:
        """Return the maximum number of different values, if `enum` or `const` limits it."""
        schema = self._at(path)
        values = _listed(schema) if isinstance(schema, Mapping) and path not in self._ignored else None
        return None if values is None else len({json.dumps(value, sort_keys=True) for value in values})

    def _object_reason(self, atoms: list[Mapping[str, Any]], paths: list[Path]) -> str:
        placed = [(path, schema) for path in paths if isinstance(schema := self._at(path), Mapping)]
        required = _required(atoms)
        if triggered := self._triggered(placed, required):
            # The schemas that a required member triggers describe the object itself.
            return self._reason(frozenset([*paths, *triggered]))
        if reason := _crossed(atoms, "minProperties", "maxProperties"):
            return reason
        most = min([schema.get("maxProperties", math.inf) for schema in atoms], default=math.inf)
        if len(required) > most:
            return f"{len(required)} members are required, but maxProperties is {most}"
        for name in sorted(required):
            if reason := self._member_reason(placed, name):
                return f"{name!r} is required and accepts no value: {reason}"
        least = max([schema.get("minProperties", 0) for schema in atoms], default=0)
        names = _closed_names(atoms)
        if names is not None and len(names) < least:
            return f"minProperties is {least}, but only {len(names)} members are allowed"
        return ""

    def _triggered(self, placed: list[tuple[Path, Mapping[str, Any]]], required: set[str]) -> list[Path]:
        known = {path for path, _ in placed}
        found = [
            (*path, "dependentSchemas", name)
            for path, schema in placed
            for name in schema.get("dependentSchemas", {})
            if name in required
        ]
        return [path for path in found if path not in known | self._ignored and self._at(path) is not True]

    def _member_reason(self, placed: list[tuple[Path, Mapping[str, Any]]], name: str) -> str:
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
            applies = "propertyNames" in schema and names not in self._ignored
            if applies and not self._validator(names).is_valid(name):
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
    """Return the types that all schemas allow; `integer` and `number` are separate."""
    left = set(_TYPES)
    for schema in atoms:
        if "type" in schema:
            left &= _named(schema["type"])
        excluded = schema.get("not")
        if isinstance(excluded, Mapping) and excluded.keys() == {"type"}:
            left -= _named(excluded["type"])
    return [kind for kind in _TYPES if kind in left]


def _named(given: str | list[str]) -> set[str]:
    """Return the types in `type`; `number` includes `integer`."""
    names = {given} if isinstance(given, str) else set(given)
    return names | {"integer"} if "number" in names else names


def _crossed(atoms: list[Mapping[str, Any]], low: str, high: str) -> str:
    least = max([schema[low] for schema in atoms if low in schema], default=0)
    most = min([schema[high] for schema in atoms if high in schema], default=math.inf)
    return f"{low} {least} is greater than {high} {most}" if least > most else ""


def _format_reason(atoms: list[Mapping[str, Any]]) -> str:
    """Return why no text in the required formats has an allowed length; empty if one may have."""
    least, low = max(((schema.get("minLength", 0), "minLength") for schema in atoms), default=(0, ""))
    most, high = min(
        ((schema.get("maxLength", math.inf), "maxLength") for schema in atoms), default=(math.inf, "")
    )
    for schema in atoms:
        name = schema.get("format")
        shortest, longest = (
            _FORMAT_LENGTHS.get(name, (0, math.inf)) if isinstance(name, str) else (0, math.inf)
        )
        if shortest > most:
            return f"the format {name} needs at least {shortest} characters, but {high} is {most}"
        if longest < least:
            return f"the format {name} allows at most {longest} characters, but {low} is {least}"
        least, low = max((least, low), (shortest, f"the minimum length of the format {name}"))
        most, high = min((most, high), (longest, f"the maximum length of the format {name}"))
    return ""


def _number_reason(atoms: list[Mapping[str, Any]], *, whole: bool) -> str:
    lows = _bounds(atoms, "minimum", "exclusiveMinimum")
    highs = _bounds(atoms, "maximum", "exclusiveMaximum")
    if not lows or not highs or any(abs(bound) > _EXACT for bound, _, _ in (*lows, *highs)):
        return ""
    low, above, low_name = max(lows)
    high, below, high_name = min(highs, key=lambda each: (each[0], not each[1]))
    message = f"{low_name} {_shown(low)} and {high_name} {_shown(high)} allow no number"
    if low > high or (low == high and (above or below)):
        return message
    if not whole:
        return ""
    first = math.floor(low) + 1 if above else math.ceil(low)
    last = math.ceil(high) - 1 if below else math.floor(high)
    step = _step(atoms)
    if first <= last and -(-first // step) * step <= last:
        return ""
    return f"{message}{' that is an integer' if step == 1 else f' that is a multiple of {step}'}"


def _bounds(
    atoms: list[Mapping[str, Any]], open_name: str, exclusive: str
) -> list[tuple[Fraction, bool, str]]:
    found = [(Fraction(schema[open_name]), False, open_name) for schema in atoms if open_name in schema]
    return [
        *found,
        *((Fraction(schema[exclusive]), True, exclusive) for schema in atoms if exclusive in schema),
    ]


def _step(atoms: list[Mapping[str, Any]]) -> int:
    """Return the integer that every allowed integer must be a multiple of."""
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
    """Return the required members, including those that `dependentRequired` adds."""
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
    """Return the member names if only these are allowed; None if other names are allowed."""
    closed = [
        {name for name, member in schema.get("properties", {}).items() if member is not False}
        for schema in atoms
        if schema.get("additionalProperties") is False and not schema.get("patternProperties")
    ]
    return set.intersection(*closed) if closed else None

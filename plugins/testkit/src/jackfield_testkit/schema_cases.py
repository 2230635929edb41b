"""Hypothesis strategies for JSON Schemas and valid values, with every construct that adapters encounter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs
from hypothesis import assume
from hypothesis import strategies as st


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the values of a JSON Lines file."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def validator(schema: Any) -> jsonschema_rs.Draft202012Validator:
    """Return a validator for a schema."""
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, offline=True)


def closed(schema: Any) -> Any:
    """Return a schema in which every object is closed, as the build requires."""
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    if isinstance(made.get("properties"), dict):
        made["properties"] = {name: closed(member) for name, member in made["properties"].items()}
        made.setdefault("additionalProperties", False)
    if "items" in made:
        made["items"] = closed(made["items"])
    return made


class SchemaCase(NamedTuple):
    """A schema and values for it; `cases` drops values that a combination of schemas excludes."""

    schema: Any
    values: st.SearchStrategy[Any]


_NAMES = st.sampled_from(
    [
        "type",
        "properties",
        "$ref",
        "enum",
        "required",
        "items",
        "default",
        "null",
        "anyOf",
        "a",
        "b",
        "c",
        "größe",
    ]
)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-50, 50), st.text("abcé", max_size=4))
_FREE = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(_SCALARS, max_size=2), st.dictionaries(_NAMES, inner, max_size=2)),
    max_leaves=5,
)
_SAMPLES = {
    "date": ["2025-02-28"], "date-time": ["2025-02-28T10:00:00Z"], "email": ["ada@example.com"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000"], "uri": ["https://example.com/x"], "ipv4": ["192.0.2.7"],
}  # fmt: skip
_PATTERNS = {"^[a-c]+$": ["a", "abc"], "^(?=a).+$": ["ab"], "b": ["b", "abc"], r"^\d{2,3}$": ["12", "123"]}


@st.composite
def _texts(draw: st.DrawFn) -> SchemaCase:
    schema: dict[str, Any] = {"type": "string"}
    match draw(st.integers(0, 4)):
        case 0:
            least = draw(st.integers(0, 2))
            schema |= {"minLength": least, "maxLength": least + 3}
            return SchemaCase(schema, st.text("abé", min_size=least, max_size=least + 3))
        case 1:
            name = draw(st.sampled_from(sorted(_SAMPLES)))
            return SchemaCase(schema | {"format": name}, st.sampled_from(_SAMPLES[name]))
        case 2:
            pattern = draw(st.sampled_from(sorted(_PATTERNS)))
            return SchemaCase(schema | {"pattern": pattern}, st.sampled_from(_PATTERNS[pattern]))
        case 3:
            values = draw(
                st.lists(st.sampled_from(["", "red", "green", "blue", "1", "null"]), min_size=1, unique=True)
            )
            return SchemaCase(schema | {"enum": values}, st.sampled_from(values))
        case _:
            return SchemaCase(schema, st.text("abcé", max_size=5))


@st.composite
def _numbers(draw: st.DrawFn) -> SchemaCase:
    whole = draw(st.booleans())
    schema: dict[str, Any] = {"type": "integer" if whole else "number"}
    number = (
        st.integers(-20, 20) if whole else st.one_of(st.integers(-20, 20), st.sampled_from([0.5, -2.25, 3.0]))
    )
    low = draw(st.integers(-20, 10))
    match draw(st.integers(0, 4)):
        case 0:
            schema |= {"minimum": low, "exclusiveMaximum": low + 8}
        case 1:
            schema |= {"exclusiveMinimum": low - 0.5 if not whole else low, "maximum": low + 8}
        case 2:
            schema |= {"multipleOf": draw(st.sampled_from([1, 2, 5, 0.5]))}
        case 3:
            values = draw(st.lists(number, min_size=1, max_size=4, unique=True))
            return SchemaCase(
                {"enum": values} if draw(st.booleans()) else schema | {"enum": values},
                st.sampled_from(values),
            )
    return SchemaCase(schema, number)


@st.composite
def _constants(draw: st.DrawFn) -> SchemaCase:
    values = draw(st.lists(_FREE, min_size=1, max_size=3))
    if draw(st.booleans()):
        return SchemaCase({"const": values[0]}, st.just(values[0]))
    return SchemaCase({"enum": values}, st.sampled_from(values))


@st.composite
def _untyped(draw: st.DrawFn) -> SchemaCase:
    schema = draw(
        st.sampled_from(
            [True, {}, {"description": "any"}, {"minLength": 1}, {"maximum": 100}, {"not": False}]
        )
    )
    return SchemaCase(schema, _FREE)


@st.composite
def _lists(draw: st.DrawFn, inner: st.SearchStrategy[SchemaCase], *, simple: bool) -> SchemaCase:
    schema: dict[str, Any] = {"type": "array"}
    item = draw(inner)
    match draw(st.integers(0, 3)):
        case 0:
            first = draw(st.lists(inner, min_size=1, max_size=2))
            schema["prefixItems"] = [kind.schema for kind in first]
            rest = draw(st.sampled_from(["none", "kind"] if simple else ["none", "free", "kind"]))
            if rest != "free":
                schema["items"] = False if rest == "none" else item.schema
            more = {
                "none": st.just([]),
                "free": st.lists(_SCALARS, max_size=2),
                "kind": st.lists(item.values, max_size=2),
            }
            values = st.tuples(st.tuples(*(kind.values for kind in first)), more[rest])
            return SchemaCase(schema, values.map(lambda parts: [*parts[0], *parts[1]]))
        case 1:
            schema |= {"items": item.schema, "uniqueItems": True, "maxItems": 3}
        case 2:
            schema |= {
                "items": item.schema,
                "contains": draw(st.sampled_from([True, {"type": "string"}])),
                "minItems": 1,
            }
        case _:
            if not simple and draw(st.booleans()):
                return SchemaCase(schema, st.lists(_SCALARS, max_size=3))
            schema["items"] = item.schema
    return SchemaCase(schema, st.lists(item.values, max_size=3))


_OPENNESS = ["closed", "closed", "closed", "closed", "unsaid", "unevaluated", "patterns", "others"]


@st.composite
def _objects(draw: st.DrawFn, inner: st.SearchStrategy[SchemaCase], *, simple: bool) -> SchemaCase:
    members = draw(st.dictionaries(_NAMES, inner, max_size=3))
    required = [name for name in members if draw(st.booleans())]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: kind.schema for name, kind in members.items()},
    }
    if required:
        schema["required"] = required
    for name, kind in members.items():
        if name not in required and isinstance(kind.schema, dict) and draw(st.booleans()):
            schema["properties"][name] = kind.schema | {"default": None}
    values: st.SearchStrategy[Any] = st.fixed_dictionaries(
        {name: members[name].values for name in required},
        optional={name: kind.values for name, kind in members.items() if name not in required},
    )
    match "closed" if simple else draw(st.sampled_from(_OPENNESS)):
        case "others":
            extra = draw(inner)
            schema["additionalProperties"] = extra.schema
            values = st.tuples(st.dictionaries(st.sampled_from(["x", "y"]), extra.values, max_size=2), values)
            return SchemaCase(schema, values.map(lambda parts: {**parts[0], **parts[1]}))
        case "patterns":
            extra = draw(inner)
            schema |= {"additionalProperties": False, "patternProperties": {"^x": extra.schema}}
            values = st.tuples(
                st.dictionaries(st.sampled_from(["x1", "x2"]), extra.values, max_size=2), values
            )
            return SchemaCase(schema, values.map(lambda parts: {**parts[0], **parts[1]}))
        case "unevaluated":
            schema["unevaluatedProperties"] = False
        case "closed":
            schema["additionalProperties"] = False
    return SchemaCase(schema | draw(_rules(list(members))), values)


def _rules(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Return constraints on a whole object that few providers support."""
    name = names[0] if names else "a"
    last = names[-1] if names else "b"
    return st.sampled_from(
        [
            *[{}] * 8,
            {"minProperties": 1},
            {"maxProperties": 2},
            {"propertyNames": {"minLength": 1}},
            {"dependentRequired": {name: [last]}},
            {"dependentSchemas": {name: {"required": [last]}}},
            {"not": {"required": sorted({name, last})}},
            {"if": {"required": [name]}, "then": {"required": [last]}, "else": {"maxProperties": 1}},
            {"anyOf": [{"required": [name]}, {"required": [last]}]},
        ]
    )


@st.composite
def _combined(draw: st.DrawFn, inner: st.SearchStrategy[SchemaCase]) -> SchemaCase:
    kinds = draw(st.lists(inner, min_size=1, max_size=3))
    either = st.one_of(*(kind.values for kind in kinds))
    match draw(st.integers(0, 4)):
        case 0:
            return SchemaCase({"anyOf": [kind.schema for kind in kinds]}, either)
        case 1:
            return SchemaCase({"oneOf": [kind.schema for kind in kinds]}, either)
        case 2:
            return SchemaCase({"allOf": [kinds[0].schema, True, {"description": "told"}]}, kinds[0].values)
        case 3:
            return SchemaCase({"allOf": [kind.schema for kind in kinds]}, either)
        case _:
            first = kinds[0]
            if isinstance(first.schema, dict) and first.schema.get("type") in (
                "string",
                "integer",
                "object",
                "array",
            ):
                nullable = first.schema | {"type": [first.schema["type"], "null"]}
                return SchemaCase(nullable, st.one_of(st.none(), first.values))
            return SchemaCase({"anyOf": [first.schema, {"type": "null"}]}, st.one_of(st.none(), first.values))


_SIMPLE = st.one_of(
    _texts(),
    _numbers(),
    st.just(SchemaCase({"type": "boolean"}, st.booleans())),
    st.just(SchemaCase({"type": "null"}, st.none())),
)
_ANY = st.one_of(_SIMPLE, _constants(), _untyped())


def _kinds(*, simple: bool) -> st.SearchStrategy[SchemaCase]:
    def wider(inner: st.SearchStrategy[SchemaCase]) -> st.SearchStrategy[SchemaCase]:
        objects = _objects(inner, simple=simple)
        return st.one_of(objects, objects, _lists(inner, simple=simple), _combined(inner))

    return st.recursive(_SIMPLE if simple else _ANY, wider, max_leaves=6)


@st.composite
def cases(draw: st.DrawFn, *, simple: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw the parameters of a tool and valid arguments; `simple` excludes open and untyped schemas."""
    kinds = _kinds(simple=simple)
    kind = draw(_objects(kinds, simple=simple))
    schema, values = dict(kind.schema), kind.values
    defined = draw(kinds)
    match draw(st.integers(0, 3)):
        case 0:
            schema["$defs"] = {"of/kind": defined.schema}
            schema["properties"] = schema["properties"] | {
                "ref": {"$ref": "#/$defs/of~1kind", "description": "d"}
            }
            extra: st.SearchStrategy[Any] = st.fixed_dictionaries({"ref": defined.values})
        case 1:
            schema["$defs"] = {"tree": _tree(defined.schema, extra_null=draw(st.booleans()))}
            schema["properties"] = schema["properties"] | {"ref": {"$ref": "#/$defs/tree"}}
            extra = st.fixed_dictionaries({"ref": _tree_values(defined.values)})
        case _:
            extra = st.just({})
    arguments = draw(st.tuples(values, extra).map(lambda parts: {**parts[0], **parts[1]}))
    assume(validator(schema).is_valid(arguments))
    return schema, arguments


def _tree(label: Any, *, extra_null: bool) -> dict[str, Any]:
    next_tree: dict[str, Any] = {"$ref": "#/$defs/tree"}
    if extra_null:
        next_tree = {"anyOf": [next_tree, {"type": "null"}], "default": None}
    return {
        "type": "object",
        "description": "A tree.",
        "properties": {
            "label": label,
            "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            "next": next_tree,
        },
        "required": ["children"],
        "additionalProperties": False,
    }


def _tree_values(label: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.fixed_dictionaries({"children": st.just([])}, optional={"label": label}),
        lambda inner: st.fixed_dictionaries(
            {"children": st.lists(inner, max_size=2)}, optional={"label": label, "next": inner}
        ),
        max_leaves=5,
    )


def malformed() -> st.SearchStrategy[dict[str, Any]]:
    """Return objects that look like schemas: keywords with values of any type."""
    keywords = st.sampled_from(
        ["type", "properties", "required", "items", "prefixItems", "enum", "const", "anyOf", "oneOf", "allOf",
         "not", "if", "then", "$ref", "$defs", "$id", "additionalProperties", "patternProperties",
         "minLength", "pattern", "format", "multipleOf", "minimum", "exclusiveMaximum", "default", "examples",
         "title", "description", "contains", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
         "uniqueItems", "maxItems"]
    )  # fmt: skip
    words = st.sampled_from(
        ["string", "object", "array", "number", "null", "#", "#/$defs/type", "#/properties/type"]
    )
    inside: st.SearchStrategy[Any] = st.recursive(
        st.one_of(_SCALARS, words),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keywords, inner, max_size=4)),
        max_leaves=25,
    )
    return st.dictionaries(keywords, inside)

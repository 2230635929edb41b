"""The search finds schemas that no value satisfies, and no others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from jackfield.registry.arguments import compile_schema
from jackfield.strict_json import pointer
from jackfield_builder.schema_satisfiability import unsatisfiable_schemas
from jackfield_testkit import schema_cases


def found(schema: dict[str, Any]) -> dict[str, str]:
    return {pointer(*path): reason for path, reason in unsatisfiable_schemas(schema)}


def member(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "additionalProperties": False, **more}


NOTHING = {"type": "integer", "enum": ["a"]}
EMPTY: dict[str, dict[str, Any]] = {
    "an integer among texts": NOTHING,
    "minimum above maximum": {"type": "number", "minimum": 5, "maximum": 3},
    "minimum at exclusive maximum": {"type": "number", "minimum": 5, "exclusiveMaximum": 5},
    "no whole number between": {"type": "integer", "minimum": 1.2, "maximum": 1.8},
    "no multiple between": {"type": "integer", "minimum": 6, "maximum": 9, "multipleOf": 5},
    "no common multiple": {
        "type": "integer", "minimum": 1, "maximum": 11, "allOf": [{"multipleOf": 3}], "multipleOf": 4
    },
    "const outside enum": {"enum": [1, 2], "const": 3},
    "two consts": {"allOf": [{"const": 1}, {"const": 2}]},
    "const of another type": {"type": "string", "const": 1},
    "enum that breaks a pattern": {"enum": ["a", "b"], "pattern": "^c"},
    "enum that breaks a format": {"enum": ["tomorrow"], "format": "date"},
    "enum that is excluded": {"enum": ["a"], "not": {"const": "a"}},
    "empty types": {"type": "string", "allOf": [{"type": "integer"}]},
    "a type that is excluded": {"type": "integer", "not": {"type": "number"}},
    "everything is excluded": {"type": "string", "not": {}},
    "minLength above maxLength": {"type": "string", "minLength": 3, "maxLength": 2},
    "a date that is too short": {"type": "string", "format": "date", "maxLength": 9},
    "a UUID that is too long": {"type": "string", "format": "uuid", "minLength": 37},
    "two formats of different lengths": {"type": "string", "format": "date", "allOf": [{"format": "uuid"}]},
    "minItems above maxItems": {"type": "array", "minItems": 3, "maxItems": 2},
    "minProperties above maxProperties": {"type": "object", "minProperties": 3, "maxProperties": 2},
    "minContains above maxContains": {"type": "array", "contains": True, "minContains": 3, "maxContains": 2},
    "more contained than there may be": {"type": "array", "contains": True, "minContains": 3, "maxItems": 2},
    "an item that cannot be": {"type": "array", "items": False, "minItems": 1},
    "a first item that cannot be": {"type": "array", "prefixItems": [True, False], "minItems": 2},
    "too few different items": {
        "type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3
    },
    "too many required": {"type": "object", "required": ["a", "b"], "maxProperties": 1},
    "required and forbidden": {"type": "object", "required": ["a"], "properties": {"a": False}},
    "required and unknown": {"type": "object", "required": ["b"], "additionalProperties": False},
    "required of two types": {
        "type": "object", "required": ["a"], "properties": {"a": {"type": "string"}},
        "patternProperties": {"^a": {"type": "integer"}},
    },
    "required with a wrong name": {"type": "object", "required": ["a"], "propertyNames": {"minLength": 2}},
    "required by another": {
        "type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]}, "properties": {"b": False}
    },
    "forbidden by another": {"type": "object", "required": ["a"], "dependentSchemas": {"a": False}},
    "more members than names": member(True, minProperties=2),
    "no branch": {"type": "string", "anyOf": [{"type": "integer"}, {"maxLength": 1, "minLength": 2}]},
    "no branch of a condition": {
        "type": "string", "if": True, "then": {"type": "null"}, "else": {"const": 1}
    },
    "recursion without end": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
    "bounds in two places": {
        "type": "integer", "minimum": 5, "allOf": [{"$ref": "#/$defs/few"}], "$defs": {"few": {"maximum": 3}}
    },
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_a_contradiction_is_found_at_any_place_of_the_schema(name: str) -> None:
    schema = EMPTY[name]
    assert found(schema)
    if "#" not in json.dumps(schema):
        assert any(path.startswith("/properties/a") for path in found(member(schema)))
        assert any(path.startswith("/properties/a/items") for path in found(member({"items": schema})))


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        (member(NOTHING, required=["a"]), ["/properties/a"]),
        (member({"type": "array", "items": NOTHING, "minItems": 1}, required=["a"]), ["/properties/a/items"]),
        (member({"$ref": "#/$defs/n"}, required=["a"], **{"$defs": {"n": NOTHING}}), ["/$defs/n"]),
        (member({"anyOf": [NOTHING, {"type": "string"}]}), ["/properties/a/anyOf/0"]),
        (member({"type": "string", "maxLength": 1, "allOf": [{"minLength": 2}]}), ["/properties/a"]),
        (member(False, required=["a"]), ["/"]),
        (
            {"allOf": [member({"type": "string"}), member({"type": "null"}, required=["a"])]},
            ["/"],
        ),
    ],
)
def test_the_innermost_unsatisfiable_schema_is_reported(schema: dict[str, Any], paths: list[str]) -> None:
    assert list(found(schema)) == paths


@pytest.mark.parametrize(
    "schema",
    [
        member(False),
        member({"not": {}}),
        member({"not": NOTHING}),
        member({"if": NOTHING, "then": {"type": "string"}}),
        {"type": "integer", "minimum": 2**60 + 1, "maximum": 2**60},
        {"type": "number", "minimum": 1, "maximum": 2, "multipleOf": 5},
        {"type": ["integer", "string"], "minimum": 5, "maximum": 3},
        {"minimum": 5, "maximum": 3},
        {"type": "array", "items": False},
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 0},
        {"type": "array", "contains": False, "minContains": 0},
        {"enum": [1.0], "type": "integer"},
        {
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        },
    ],
)
def test_satisfiable_and_intentionally_empty_schemas_are_not_reported(schema: Any) -> None:
    assert found(schema) == {}


def test_the_reason_names_the_keywords() -> None:
    assert found({"type": "string", "minLength": 3, "maxLength": 2}) == {
        "/": "minLength 3 is greater than maxLength 2"
    }
    assert found({"type": "integer", "minimum": 1.2, "maximum": 1.8}) == {
        "/": "minimum 1.2 and maximum 1.8 allow no number that is an integer"
    }


def test_a_schema_with_thousands_of_subschemas_is_checked_quickly() -> None:
    defined = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(3000)} | {"d3000": {"type": "string"}}
    wide = {"anyOf": [{"anyOf": [{"type": "string", "minLength": n}] * 20} for n in range(20)]}
    begin = time.process_time()
    assert (
        found({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}, "b": wide}, "$defs": defined})
        == {}
    )
    assert time.process_time() - begin < 5


NAMES = st.sampled_from(["a", "b", "c"])
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
SCALARS = st.sampled_from([None, True, False, -1, 0, 1, 2, 3, 1.0, 1.5, 2.5, "", "a", "b", "ab", "abc"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
SIZES = st.integers(0, 3)
BOUNDS = st.sampled_from([-1, 0, 1, 1.5, 2, 2.5, 3])


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw a combination of keywords, contradictory ones included."""
    schemas = st.lists(inner, min_size=1, max_size=2)
    named = st.dictionaries(NAMES, inner, max_size=2)
    known: dict[str, st.SearchStrategy[Any]] = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), BOUNDS),
        "multipleOf": st.sampled_from([1, 2, 3, 0.5, 2.0]),
        **dict.fromkeys(
            ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), SIZES
        ),
        **dict.fromkeys(("minContains", "maxContains"), SIZES),
        "uniqueItems": st.booleans(),
        "pattern": st.sampled_from(["^a", "b$", "^$"]),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), schemas),
        **dict.fromkeys(("propertyNames", "not", "if", "then", "else"), inner),
        **dict.fromkeys(("items", "contains", "additionalProperties"), inner | st.just({"$ref": "#"})),
        "properties": st.dictionaries(NAMES, inner | st.just({"$ref": "#"}), max_size=2),
        "dependentSchemas": named,
        "patternProperties": st.dictionaries(st.sampled_from(["a", "^b$"]), inner, max_size=2),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
        "unevaluatedProperties": inner,
        "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
    }
    chosen = st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=4, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: known[name] for name in names}))


SCHEMAS = st.recursive(st.booleans() | TYPES.map(lambda name: {"type": name}), keywords, max_leaves=6)


SAMPLES: list[Any] = [
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    3,
    4,
    6,
    1.5,
    2.5,
    0.5,
    "",
    "a",
    "b",
    "ab",
    "abc",
    "aaaa",
]
SAMPLES += [[], {}, *([each] for each in SAMPLES), *({name: each} for name in "abc" for each in SAMPLES)]
SAMPLES += [[one, two] for one in SAMPLES[:19] for two in SAMPLES[:19]]
SAMPLES += [{"a": one, "b": two} for one in SAMPLES[:19] for two in SAMPLES[:19]]
SAMPLES += [{"a": each, "b": each, "c": each} for each in SAMPLES[:19]]
SAMPLES += [
    [1, 2, 3],
    [1, 1, 1],
    ["a", "b", "ab"],
    [None, 0, "a"],
    [[], {}, 1],
    {"a": {"a": {"a": {}}}},
    [[[[]]]],
]


def constants(schema: Any) -> Iterator[Any]:
    """Return every value in a schema."""
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield each
        yield from constants(each)


@given(keywords(SCHEMAS), SCHEMAS, SCHEMAS, st.lists(VALUES, min_size=20, max_size=20))
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_value_satisfies_a_reported_schema(schema: Any, one: Any, other: Any, values: list[Any]) -> None:
    # References in place go one way: one that leads back to the same value is refused before this is asked.
    one = json.loads(json.dumps(one).replace("#/$defs/x", "#/$defs/y"))
    other = json.loads(json.dumps(other).replace('"#/$defs/x"', '"#/$defs/z"').replace("$defs/y", "$defs/z"))
    root = {**schema, "$defs": {"x": one, "y": other, "z": {"type": ["string", "integer"]}}}
    reported = list(unsatisfiable_schemas(root))
    event(f"reported: {bool(reported)}")
    registry = jsonschema_rs.Registry([("urn:root", root)])
    for path, reason in reported:
        fragment = quote(pointer(*path)) if path else ""
        judge = compile_schema({"$ref": f"urn:root#{fragment}"}, registry=registry)
        for value in (*SAMPLES, *values, *constants(root)):
            assert not judge.is_valid(value), (pointer(*path), reason, value)


@given(schema_cases.cases())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_schema_with_a_value_is_never_reported(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    schema, arguments = case
    assert compile_schema(schema).is_valid(arguments)
    assert "/" not in found(schema)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("date", "2026-05-01"), ("date-time", "2026-05-01T19:00:00Z"), ("time", "19:00:00Z"),
        ("uuid", "6f1c2f0e-98a1-4e7b-9a53-0d3c7b0f6f11"), ("email", "a@b"), ("ipv4", "1.1.1.1"),
        ("ipv4", "255.255.255.255"), ("ipv6", "::"),
        ("ipv6", "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255"),
    ],
)  # fmt: skip
def test_the_shortest_and_the_longest_text_of_a_format_are_not_reported(name: str, text: str) -> None:
    schema = {"type": "string", "format": name, "minLength": len(text), "maxLength": len(text)}
    assert compile_schema(schema).is_valid(text)
    assert found(schema) == {}

"""Schemas of OpenAPI become closed draft 2020-12 schemas, and the handler restores the original shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield_builder.implied_fields import close_objects
from jackfield_importers.definitions import Definitions
from jackfield_importers.runtime import wire_arguments as wire_module
from jackfield_importers.samples import NoSampleError, Sampler
from jackfield_importers.schema_conversion import SchemaConverter, accepts
from jsonschema import Draft202012Validator


def converted(schema: Any, *, results: bool = False, **schemas: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    definitions = Definitions()
    document = {"components": {"schemas": schemas}}
    made = SchemaConverter(document, definitions, results=results).convert(schema)
    definitions.convert_waiting()
    return made, definitions.schemas


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            {"type": "integer", "exclusiveMinimum": 1},
        ),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": False}, {"type": "integer", "maximum": 9}),
        ({"type": "integer", "format": "int64"}, {"type": "integer"}),
        ({"type": "string", "format": "password"}, {"type": "string", "x-sensitive": True}),
        ({"type": "string", "pattern": "("}, {"type": "string"}),
        ({"type": "string", "example": "x"}, {"type": "string", "examples": ["x"]}),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        ),
        ({"items": {"type": "string"}}, {"type": "array", "items": {"type": "string"}}),
        (
            {
                "allOf": [
                    {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"properties": {"b": {}}},
                ]
            },
            {
                "type": "object",
                "properties": {"a": {"type": "string", "description": "A."}, "b": {"description": "B."}},
                "required": ["a"],
            },
        ),
        (
            {
                "properties": {"id": {"type": "string", "readOnly": True}, "n": {"type": "string"}},
                "required": ["id"],
            },
            {"type": "object", "properties": {"n": {"type": "string", "description": "N."}}},
        ),
    ],
)
def test_keywords_of_openapi_are_converted(schema: Any, expected: dict[str, Any]) -> None:
    assert converted(schema)[0] == expected


def test_results_stay_open_and_keep_what_only_the_service_sets() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "string", "readOnly": True}, "pw": {"writeOnly": True}},
    }
    assert converted(schema, results=True)[0] == {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "additionalProperties": True,
    }


def test_a_recursive_schema_refers_to_its_definition() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    made, definitions = converted({"$ref": "#/components/schemas/Node"}, Node=node)
    assert made == {"$ref": "#/$defs/Node"}
    assert definitions["Node"]["properties"]["next"] == {"$ref": "#/$defs/Node"}


def test_members_beside_alternatives_belong_to_each_alternative() -> None:
    schema = {
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "oneOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}],
    }
    first, second = converted(schema)[0]["anyOf"]
    assert set(first["properties"]) == {"kind", "a"}
    assert set(second["properties"]) == {"kind", "b"}


def test_maps_and_free_objects_are_converted_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {
        "type": "object",
        "properties": {
            "map": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Inner"}},
            "free": {"type": "object", "nullable": True},
            "list": {"type": "array", "items": {"type": "object"}},
            "text": {"type": "string"},
        },
    }
    inner = {
        "type": "object",
        "properties": {"more": {"type": "object", "additionalProperties": {"type": "integer"}}},
    }
    made, definitions = converted(schema, Inner=inner)
    arguments = {
        "map": [{"name": "a", "value": {"more": [{"name": "x", "value": 1}]}}],
        "free": '{"b": [1, {"c": null}]}',
        "list": ["{}", '{"d": 1}'],
        "text": '{"not": "parsed"}',
    }
    assert accepts(close_objects(made), definitions, [arguments])
    (tmp_path / "schema.json").write_text(
        json.dumps({"$defs": definitions, "tools": {"t": {"parameters": made}}})
    )
    monkeypatch.setattr(wire_module, "__file__", str(tmp_path / "wire_arguments.py"))
    wire_module._family.cache_clear()
    try:
        assert wire_module.wire_arguments("t", arguments) == {
            "map": {"a": {"more": {"x": 1}}},
            "free": {"b": [1, {"c": None}]},
            "list": [{}, {"d": 1}],
            "text": '{"not": "parsed"}',
        }
    finally:
        wire_module._family.cache_clear()


names = st.sampled_from(["a", "b", "petId", "X-y"])
scalars: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("integer")},
        optional={
            "minimum": st.integers(-50, 50),
            "exclusiveMinimum": st.booleans(),
            "nullable": st.booleans(),
            "default": st.integers(-9, 9),
            "format": st.sampled_from(["int32", "int64"]),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "minLength": st.integers(0, 20),
            "format": st.sampled_from(["date", "uuid", "binary", "odd"]),
            "pattern": st.sampled_from(["^[a-z]{3}$", "(", "^\\d+$"]),
            "nullable": st.booleans(),
            "example": st.text(max_size=5),
        },
    ),
    st.fixed_dictionaries({"enum": st.lists(st.text(max_size=4), min_size=1, max_size=3)}),
    st.just({"type": "boolean"}),
)


def compound(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(names, inner, max_size=3)},
            optional={
                "required": st.lists(names, unique=True, max_size=3),
                "additionalProperties": st.one_of(st.booleans(), inner),
                "nullable": st.booleans(),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner}, optional={"minItems": st.integers(0, 2)}
        ),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=3)}),
    )


@settings(max_examples=150, deadline=None)
@given(st.recursive(scalars, compound, max_leaves=8))
def test_every_schema_becomes_a_valid_closed_schema(schema: dict[str, Any]) -> None:
    made, definitions = converted(schema)
    Draft202012Validator.check_schema(made)
    assert open_objects(close_objects({"type": "object", "properties": {"value": made}})) == []
    try:
        value = Sampler(definitions).value(made)
    except NoSampleError:
        return
    if '"pattern"' not in json.dumps(made) and "allOf" not in json.dumps(schema):
        assert accepts(made, definitions, [value]) or has_limits(made)


def has_limits(schema: Any) -> bool:
    """A sample may miss the combination of a format or an example with other limits."""
    text = json.dumps(schema)
    return any(word in text for word in ('"format"', '"examples"', '"default"'))


def open_objects(schema: Any) -> list[Any]:
    if isinstance(schema, list):
        return [found for each in schema for found in open_objects(each)]
    if not isinstance(schema, dict):
        return []
    found = (
        [schema] if schema.get("type") == "object" and schema.get("additionalProperties") is not False else []
    )
    return found + [inner for each in schema.values() for inner in open_objects(each)]

"""Parsing of schemas into shapes: exact if possible, otherwise wider and reported."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jackfield_schemas.combinations import union_objects
from jackfield_schemas.names import ToolNames, provider_tool_name
from jackfield_schemas.parser import parse_schema
from jackfield_schemas.references import NullAcceptance
from jackfield_schemas.schema_writer import LoweringReport
from jackfield_schemas.shapes import ArrayShape, NumberShape, ObjectShape, RecursiveRef, Shape, StringShape
from jackfield_testkit import schema_cases as shared


def shape_of(schema: Any) -> tuple[Shape, dict[str, str]]:
    report = LoweringReport()
    parsed = parse_schema(schema, report)
    return parsed.shape, dict(report.lowerings())


def test_a_reference_is_resolved_with_its_sibling_keywords() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/a~1b", "description": "Here.", "minLength": 2}},
        "$defs": {"a/b": {"type": "string", "description": "There.", "maxLength": 9}},
        "type": "object",
    }
    shape, lost = shape_of(schema)
    record = shape.options[0]
    assert isinstance(record, ObjectShape)
    member = record.properties["a"]
    assert member.options == (StringShape(min_length=2, max_length=9),)
    assert member.annotations.description == "Here."
    assert lost == {}


@pytest.mark.parametrize(
    ("schema", "place", "why"),
    [
        ({"$ref": "#/$defs/missing"}, "/$ref", "does not exist"),
        ({"$ref": "https://example.com/x"}, "/$ref", "outside this schema"),
        ({"$ref": "#/const", "const": 1}, "/$ref", "is not a schema"),
        ({"$ref": "#"}, "", "the reference is circular"),
        ({"anyOf": [{"type": "string"}, {"$ref": "#"}]}, "", "the reference is circular"),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            "/$defs/a",
            "circular",
        ),
        ({"allOf": [{"$id": "https://example.com/x", "$ref": "#/type"}]}, "/allOf/0", "$id of its own"),
        ({"type": "dict"}, "/type", "is not a type"),
    ],
)
def test_an_unresolvable_part_accepts_any_value_and_is_reported(schema: Any, place: str, why: str) -> None:
    report = LoweringReport()
    parsed = parse_schema(schema, report)
    assert why in dict(report.lowerings())[place]
    assert parsed.unparsed is not None


def test_a_recursive_schema_is_parsed_once_and_refers_to_itself() -> None:
    tree = {"type": "array", "items": {"$ref": "#/$defs/tree"}}
    parsed = parse_schema({"$ref": "#/$defs/tree", "$defs": {"tree": tree}}, LoweringReport())
    key = ("$defs", "tree")
    assert parsed.shape.options == (RecursiveRef(key=key),)
    assert parsed.definitions[key].options == (ArrayShape(items=Shape((RecursiveRef(key=key),))),)


def test_all_of_is_the_intersection() -> None:
    schema = {
        "type": "object",
        "allOf": [
            {"properties": {"n": {"type": "number", "minimum": 1}}, "additionalProperties": False},
            {"properties": {"n": {"type": "integer", "maximum": 5}, "gone": {"type": "string"}}},
        ],
    }
    shape, lost = shape_of(schema)
    (record,) = shape.options
    assert isinstance(record, ObjectShape)
    assert {name: member.options for name, member in record.properties.items()} == {
        "n": (NumberShape(integer=True, minimum=1, maximum=5),)
    }
    assert record.additional is not None
    assert record.additional.accepts_none
    assert lost == {}


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "string", "allOf": [{"type": "integer"}]},
        {"const": 1, "enum": [2]},
        {"const": True, "allOf": [{"const": 1}]},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "array", "minItems": 3, "allOf": [{"maxItems": 2}]},
    ],
)
def test_a_contradictory_schema_accepts_no_value(schema: Any) -> None:
    assert shape_of(schema)[0].accepts_none


def test_one_equals_one_point_zero_but_not_true() -> None:
    assert shape_of({"const": 1.0, "allOf": [{"const": 1}]})[0].options == (NumberShape(values=(1,)),)


def test_unevaluated_properties_close_an_object_made_of_parts() -> None:
    schema = {
        "type": "object",
        "allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}],
        "unevaluatedProperties": False,
    }
    shape, lost = shape_of(schema)
    (record,) = shape.options
    assert isinstance(record, ObjectShape)
    assert set(record.properties) == {"a", "b"}
    assert record.additional is not None
    assert record.additional.accepts_none
    assert lost == {}
    choice = schema | {"anyOf": [{"properties": {"c": {"type": "string"}}}, {"required": ["a"]}]}
    assert "/unevaluatedProperties" in shape_of(choice)[1]


def test_the_union_of_objects_accepts_what_each_of_them_accepts() -> None:
    text, never = Shape((StringShape(),)), Shape(())
    one = ObjectShape(properties={"a": text}, required=frozenset({"a"}), additional=never, max_properties=1)
    two = ObjectShape(properties={"a": Shape((), null=True), "b": text}, additional=never, max_properties=2)
    both = union_objects([one, two])
    assert both == ObjectShape(
        properties={"a": Shape((StringShape(),), null=True), "b": text}, additional=never, max_properties=2
    )
    silent = union_objects([one, ObjectShape()])
    assert silent.properties["a"].accepts_any
    assert silent.additional is None


def test_the_tighter_of_two_bounds_holds() -> None:
    schema = {"minimum": 1, "maximum": 9, "type": "number", "allOf": [{"minimum": 3}, {"maximum": 5}]}
    assert shape_of(schema)[0].options == (NumberShape(minimum=3, maximum=5),)


def test_null_in_two_branches_of_one_of_is_not_accepted() -> None:
    schema = {"oneOf": [{"type": ["string", "null"]}, {"type": ["integer", "null"]}]}
    assert not shape_of(schema)[0].null


def test_too_many_combinations_are_left_out_and_reported() -> None:
    many = [{"properties": {f"p{number}": {"const": number}}} for number in range(20)]
    schema = {"type": "object", "allOf": [{"anyOf": many}, {"anyOf": many}, {"anyOf": many}]}
    shape, lost = shape_of(schema)
    assert not shape.accepts_none
    assert any("too many alternatives" in what for what in lost.values())


def test_a_schema_is_cut_at_the_maximum_depth() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = {"type": "array", "items": schema}
    assert any("nested too deeply" in what for what in shape_of(schema)[1].values())


def test_a_legal_name_is_kept_and_other_names_stay_unique() -> None:
    def name(tool_id: str) -> str:
        return provider_tool_name(tool_id, legal=r"[a-z_][a-z0-9_]*", letters="a-z0-9_", longest=20)

    ids = ["ok_1", "a.b", "a-b", "a_b", "1st", "x" * 20, "x" * 21, "", "\ud800", "ok_1\n"]
    names = [name(tool_id) for tool_id in ids]
    assert len(set(names)) == len(ids)
    assert all(re.fullmatch(r"[a-z_][a-z0-9_]{0,19}", each) for each in names)
    assert (name("ok_1"), name("x" * 20)) == ("ok_1", "x" * 20)
    assert name("a.b") == "a_b_2e7336dc"


def test_tool_names_are_mapped_both_ways_and_undeclared_ones_stay() -> None:
    flat = {"name": "a_b_2e7336dc"}
    nested = {"type": "function", "function": {"name": "c_d"}}
    names = ToolNames({"a.b": flat, "c.d": nested})
    assert (names.provider_name("c.d"), names.tool_id("c_d")) == ("c_d", "c.d")
    assert (names.provider_name("a.b"), names.tool_id("a_b_2e7336dc")) == ("a_b_2e7336dc", "a.b")
    assert (names.provider_name("other"), names.tool_id("other")) == ("other", "other")


@given(shared.cases())
@settings(max_examples=75, deadline=None, suppress_health_check=list(HealthCheck))
def test_whether_null_is_accepted_is_known_exactly(case: tuple[dict[str, Any], Any]) -> None:
    root = case[0]
    nulls = NullAcceptance(root)
    for schema in root["properties"].values():
        judge = shared.validator({"$defs": root.get("$defs", {}), "allOf": [schema]})
        assert nulls.accepted(schema) == judge.is_valid(None), schema


@given(shared.malformed())
@settings(max_examples=75, deadline=None, suppress_health_check=list(HealthCheck))
def test_parsing_never_fails_and_is_deterministic(schema: dict[str, Any]) -> None:
    assert repr(shape_of(schema)) == repr(shape_of(json.loads(json.dumps(schema))))

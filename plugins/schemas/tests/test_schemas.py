"""Reading schemas into shapes: exact where that is possible, else wider and reported, and never stuck."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jackfield_schemas import read, wire_name
from jackfield_schemas.joining import one_record
from jackfield_schemas.losses import Losses
from jackfield_schemas.references import Nulls
from jackfield_schemas.shapes import Again, Listing, Number, Record, Shape, Text
from jackfield_testkit import schema_cases as shared


def shape_of(schema: Any) -> tuple[Shape, dict[str, str]]:
    losses = Losses()
    reading = read(schema, losses)
    return reading.shape, dict(losses.found())


def test_references_are_followed_with_what_stands_beside_them() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/a~1b", "description": "Here.", "minLength": 2}},
        "$defs": {"a/b": {"type": "string", "description": "There.", "maxLength": 9}},
        "type": "object",
    }
    shape, lost = shape_of(schema)
    record = shape.options[0]
    assert isinstance(record, Record)
    member = record.members["a"]
    assert member.options == (Text(min_length=2, max_length=9),)
    assert member.about.description == "Here."
    assert lost == {}


@pytest.mark.parametrize(
    ("schema", "place", "why"),
    [
        ({"$ref": "#/$defs/missing"}, "/$ref", "does not exist"),
        ({"$ref": "https://example.com/x"}, "/$ref", "outside this schema"),
        ({"$ref": "#/const", "const": 1}, "/$ref", "is not a schema"),
        ({"$ref": "#"}, "", "refers back to itself"),
        ({"anyOf": [{"type": "string"}, {"$ref": "#"}]}, "", "refers back to itself"),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            "/$defs/a",
            "back",
        ),
        ({"allOf": [{"$id": "https://example.com/x", "$ref": "#/type"}]}, "/allOf/0", "$id of its own"),
        ({"type": "dict"}, "/type", "is not a type"),
    ],
)
def test_what_is_out_of_reach_accepts_anything_and_is_reported(schema: Any, place: str, why: str) -> None:
    losses = Losses()
    reading = read(schema, losses)
    assert why in dict(losses.found())[place]
    assert reading.missed is not None


def test_a_recursive_schema_is_read_once_and_refers_to_itself() -> None:
    tree = {"type": "array", "items": {"$ref": "#/$defs/tree"}}
    reading = read({"$ref": "#/$defs/tree", "$defs": {"tree": tree}}, Losses())
    key = ("$defs", "tree")
    assert reading.shape.options == (Again(key=key),)
    assert reading.definitions[key].options == (Listing(items=Shape((Again(key=key),))),)


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
    assert isinstance(record, Record)
    assert {name: member.options for name, member in record.members.items()} == {
        "n": (Number(whole=True, minimum=1, maximum=5),)
    }
    assert record.others is not None
    assert record.others.never
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
def test_what_cannot_be_is_known_to_be_nothing(schema: Any) -> None:
    assert shape_of(schema)[0].never


def test_one_and_true_are_two_values_but_one_and_one_point_zero_are_not() -> None:
    assert shape_of({"const": 1.0, "allOf": [{"const": 1}]})[0].options == (Number(values=(1,)),)


def test_unevaluated_members_close_an_object_that_is_put_together_of_parts() -> None:
    schema = {
        "type": "object",
        "allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}],
        "unevaluatedProperties": False,
    }
    shape, lost = shape_of(schema)
    (record,) = shape.options
    assert isinstance(record, Record)
    assert set(record.members) == {"a", "b"}
    assert record.others is not None
    assert record.others.never
    assert lost == {}
    choice = schema | {"anyOf": [{"properties": {"c": {"type": "string"}}}, {"required": ["a"]}]}
    assert "/unevaluatedProperties" in shape_of(choice)[1]


def test_one_object_accepts_what_each_of_its_alternatives_accepts() -> None:
    text, never = Shape((Text(),)), Shape(())
    one = Record(members={"a": text}, required=frozenset({"a"}), others=never, max_members=1)
    two = Record(members={"a": Shape((), null=True), "b": text}, others=never, max_members=2)
    both = one_record([one, two])
    assert both == Record(members={"a": Shape((Text(),), null=True), "b": text}, others=never, max_members=2)
    silent = one_record([one, Record()])
    assert silent.members["a"].free
    assert silent.others is None


def test_the_tighter_of_two_bounds_holds() -> None:
    schema = {"minimum": 1, "maximum": 9, "type": "number", "allOf": [{"minimum": 3}, {"maximum": 5}]}
    assert shape_of(schema)[0].options == (Number(minimum=3, maximum=5),)


def test_null_in_two_branches_of_one_of_is_not_accepted() -> None:
    schema = {"oneOf": [{"type": ["string", "null"]}, {"type": ["integer", "null"]}]}
    assert not shape_of(schema)[0].null


def test_alternatives_that_multiply_are_given_up_in_time() -> None:
    many = [{"properties": {f"p{number}": {"const": number}}} for number in range(20)]
    schema = {"type": "object", "allOf": [{"anyOf": many}, {"anyOf": many}, {"anyOf": many}]}
    shape, lost = shape_of(schema)
    assert not shape.never
    assert any("too many alternatives" in what for what in lost.values())


def test_a_deep_schema_is_cut_where_it_gets_too_deep() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = {"type": "array", "items": schema}
    assert any("nested too deeply" in what for what in shape_of(schema)[1].values())


def test_a_legal_name_stays_and_others_keep_apart() -> None:
    def name(tool_id: str) -> str:
        return wire_name(tool_id, legal=r"[a-z_][a-z0-9_]*", letters="a-z0-9_", longest=20)

    ids = ["ok_1", "a.b", "a-b", "a_b", "1st", "x" * 20, "x" * 21, "", "\ud800", "ok_1\n"]
    names = [name(tool_id) for tool_id in ids]
    assert len(set(names)) == len(ids)
    assert all(re.fullmatch(r"[a-z_][a-z0-9_]{0,19}", each) for each in names)
    assert (name("ok_1"), name("x" * 20)) == ("ok_1", "x" * 20)
    assert name("a.b") == "a_b_2e7336dc"


@given(shared.cases())
@settings(max_examples=75, deadline=None, suppress_health_check=list(HealthCheck))
def test_whether_null_is_accepted_is_known_exactly(case: tuple[dict[str, Any], Any]) -> None:
    root = case[0]
    nulls = Nulls(root)
    for schema in root["properties"].values():
        judge = shared.validator({"$defs": root.get("$defs", {}), "allOf": [schema]})
        assert nulls.accepted(schema) == judge.is_valid(None), schema


@given(shared.malformed())
@settings(max_examples=75, deadline=None, suppress_health_check=list(HealthCheck))
def test_reading_never_fails_and_is_the_same_every_time(schema: dict[str, Any]) -> None:
    assert repr(shape_of(schema)) == repr(shape_of(json.loads(json.dumps(schema))))

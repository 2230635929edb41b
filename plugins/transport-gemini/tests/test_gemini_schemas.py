"""Declarations for Gemini: within its rules, never narrower than the schema, and accepted by its SDK."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jackfield.offers import Adapted
from jackfield_gemini.schemas import as_json_schema, native
from jackfield_testkit import schema_cases as shared

DATA = Path(__file__).parents[4] / "shared" / "data"

with warnings.catch_warnings():
    # Python warns about an escape in the SDK's source when it compiles it for the first time.
    warnings.simplefilter("ignore", SyntaxWarning)
    warnings.simplefilter("ignore", DeprecationWarning)
    from google.genai import types

needs_data = pytest.mark.skipif(not DATA.exists(), reason="the shared data sets are not here")

ALLOWED = {
    "additionalProperties", "anyOf", "default", "description", "enum", "example", "format", "items",
    "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum",
    "nullable", "pattern", "properties", "propertyOrdering", "required", "title", "type",
}  # fmt: skip
TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
FORMATS = {"STRING": {"enum", "date-time"}, "NUMBER": {"float", "double"}, "INTEGER": {"int32", "int64"}}


def broken_rules(declaration: dict[str, Any]) -> list[str]:
    """Return every rule of Gemini's schema language that a declaration breaks."""
    found: list[str] = []
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,62}", declaration["name"]):
        found.append(f"name {declaration['name']!r}")
    root = declaration.get("parameters")
    if root is not None:
        if root.get("type") != "OBJECT" or not root.get("properties"):
            found.append("G4 root")
        found.extend(_broken(root, ""))
    return found


def _broken(node: Any, path: str) -> Iterator[str]:
    kind = node.get("type")
    yield from (f"G1 {path}: {field}" for field in sorted(node.keys() - ALLOWED))
    if (kind is None) == ("anyOf" not in node) or (kind is not None and kind not in TYPES):
        yield f"G2 {path}: {kind}"
    if (kind == "ARRAY") != isinstance(node.get("items"), dict):
        yield f"G3 {path}"
    if "properties" in node and (kind != "OBJECT" or not node["properties"]):
        yield f"G4 {path}"
    yield from _broken_values(node, path)
    if not set(node.get("required", ())) <= set(node.get("properties", ())):
        yield f"G7 {path}"
    if "anyOf" in node and node.keys() & {"type", "properties", "items", "enum", "format"}:
        yield f"G8 {path}"
    inside = [*node.get("properties", {}).items(), *enumerate(node.get("anyOf", ()))]
    if "items" in node:
        inside.append(("items", node["items"]))
    for name, each in inside:
        yield from _broken(each, f"{path}/{name}")


def _broken_values(node: dict[str, Any], path: str) -> Iterator[str]:
    kind, values, named = node.get("type"), node.get("enum"), node.get("format")
    if values is not None:
        if not values or not all(isinstance(value, str) and value for value in values):
            yield f"G5 {path}: {values}"
        if kind != "STRING" and not (kind in {"INTEGER", "NUMBER"} and named == "enum"):
            yield f"G5 {path}: on {kind}"
    if named == "enum" and values is None:
        yield f"G5 {path}: enum without values"
    if (
        named is not None
        and named not in FORMATS.get(kind or "", set())
        and (named != "enum" or values is None)
    ):
        yield f"G6 {path}: {named}"


def back(node: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema equivalent of a native schema."""
    if "anyOf" in node:
        meant: dict[str, Any] = {"anyOf": [back(branch) for branch in node["anyOf"]]}
    else:
        meant = {"type": node["type"].lower()}
        for keyword in ("minLength", "maxLength", "pattern", "minimum", "maximum", "minItems", "maxItems",
                        "minProperties", "maxProperties", "required"):  # fmt: skip
            if keyword in node:
                meant[keyword] = node[keyword]
        if "enum" in node:
            meant["enum"] = node["enum"] if node["type"] == "STRING" else list(map(json.loads, node["enum"]))
        if node.get("format") == "date-time":
            meant["format"] = "date-time"
        if "items" in node:
            meant["items"] = back(node["items"])
        if "properties" in node:
            meant["properties"] = {name: back(member) for name, member in node["properties"].items()}
    return {"anyOf": [meant, {"type": "null"}]} if node.get("nullable") else meant


def declared(parameters: dict[str, Any], tool_id: str = "tool") -> Adapted:
    """Return a native declaration that has passed every check without arguments."""
    adapted = native(tool_id, "Does something.", parameters)
    declaration = dict(adapted.declaration)
    assert broken_rules(declaration) == []
    parsed = types.FunctionDeclaration.model_validate(declaration)
    sent = parsed.model_dump(mode="json", exclude_none=True, by_alias=True)
    assert sent.get("parameters", {}).keys() == declaration.get("parameters", {}).keys()
    assert json.dumps(native(tool_id, "Does something.", parameters)) == json.dumps(adapted)
    return adapted


def accepts(adapted: Adapted, arguments: Any) -> bool:
    parameters = adapted.declaration.get("parameters")
    return parameters is None or bool(shared.validator(back(parameters)).is_valid(arguments))


def prop(schema: Any, **root: Any) -> dict[str, Any]:
    """Return the native form of one property."""
    parameters = {"type": "object", "properties": {"p": schema}, "additionalProperties": False, **root}
    return dict(declared(parameters).declaration["parameters"]["properties"]["p"])


def lowered(schema: Any) -> dict[str, str]:
    parameters = {"type": "object", "properties": {"p": schema}, "additionalProperties": False}
    return {path.removeprefix("/properties/p"): what for path, what in declared(parameters).lowered}


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        ({"type": "string"}, {"type": "STRING"}),
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
        ({"type": ["string", "number"]}, {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}]}),
        ({"const": "x"}, {"type": "STRING", "format": "enum", "enum": ["x"]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "INTEGER", "format": "enum", "enum": ["1", "2"]}),
        ({"enum": ["a", None]}, {"type": "STRING", "format": "enum", "enum": ["a"], "nullable": True}),
        (
            {"enum": ["a", 1]},
            {
                "anyOf": [
                    {"type": "STRING", "format": "enum", "enum": ["a"]},
                    {"type": "INTEGER", "format": "enum", "enum": ["1"]},
                ]
            },
        ),
        ({"type": "null"}, {"type": "NULL"}),
        ({"type": "integer", "exclusiveMinimum": 3}, {"type": "INTEGER", "minimum": 4}),
        ({"type": "object"}, {"type": "OBJECT"}),
        ({"type": "object", "properties": {}, "additionalProperties": False}, {"type": "OBJECT"}),
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
        ({"allOf": [{"type": "string"}, {"minLength": 5}]}, {"type": "STRING", "minLength": 5}),
        (
            {"type": "string", "title": "T", "description": "D.", "default": "x", "examples": ["y", "z"]},
            {"title": "T", "description": "D.", "type": "STRING", "default": "x", "example": "y"},
        ),
    ],
)
def test_native_declarations_keep_the_meaning_of_the_schema(schema: Any, form: dict[str, Any]) -> None:
    assert prop(schema) == form


@pytest.mark.parametrize(
    ("schema", "place", "told"),
    [
        ({"type": "integer", "multipleOf": 5}, "/multipleOf", "Must be a multiple of 5."),
        ({"type": "number", "exclusiveMinimum": 0}, "/exclusiveMinimum", "Must be greater than 0."),
        ({"type": "string", "format": "email"}, "/format", "Format: email."),
        ({"type": "string", "pattern": "^(?!x)"}, "/pattern", 'Must match the pattern "^(?!x)".'),
        ({"type": "string", "enum": ["", "a"]}, "/enum", 'One of "", "a".'),
        ({"type": "boolean", "const": True}, "", "Must be true."),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "/uniqueItems", "twice"),
        ({"type": "string", "not": {"const": "x"}}, "/not", 'Must not match the schema {"const": "x"}.'),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            "/additionalProperties",
            "each is a string",
        ),
        (
            {"type": "object", "dependentRequired": {"a": ["b"]}},
            "/dependentRequired",
            'When "a" is given, "b"',
        ),
        ({"type": "array", "items": {"type": "string"}, "contains": {"const": "a"}}, "/contains", "one item"),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False}, "/prefixItems", "a string"),
        ({"type": "string", "if": {"const": "a"}, "then": False}, "/if", "Conditional rule"),
        ({"type": "object", "propertyNames": {"minLength": 2}}, "/propertyNames", "Member names"),
    ],
)
def test_constraints_beyond_native_schemas_are_described_and_reported(
    schema: Any, place: str, told: str
) -> None:
    assert told in prop({**schema, "description": "A thing."})["description"]
    assert prop({**schema, "description": "A thing."})["description"].startswith("A thing. ")
    assert any(path.endswith(place) for path in lowered(schema)), lowered(schema)


def test_a_property_may_have_the_name_of_a_keyword() -> None:
    names = ["type", "properties", "$ref", "enum", "required", "items", "anyOf", "nullable", "$defs", "const"]
    parameters = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    adapted = declared(parameters)
    assert list(adapted.declaration["parameters"]["properties"]) == names
    assert adapted.declaration["parameters"]["required"] == names
    assert adapted.lowered == ()


def test_a_recursive_schema_is_unrolled_and_then_cut_to_its_type() -> None:
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "child": {"$ref": "#/$defs/node"}},
        "additionalProperties": False,
    }
    parameters = {"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    adapted = declared(parameters)
    inner = adapted.declaration["parameters"]["properties"]["tree"]["properties"]["child"]
    assert inner["properties"]["name"] == {"type": "STRING"}
    assert inner["properties"]["child"] == {"type": "OBJECT"}
    assert [path for path, what in adapted.lowered if "recursion" in what] == ["/$defs/node"]
    deep: dict[str, Any] = {"name": "leaf"}
    for _ in range(9):
        deep = {"child": deep}
    assert accepts(adapted, {"tree": deep})


def test_items_after_the_prefix_keep_their_shape() -> None:
    first = {"type": "array", "prefixItems": [{"type": "string"}]}
    parameters = {"type": "object", "properties": {"open": first, "none": {**first, "items": False}}}
    adapted = declared(parameters)
    assert accepts(adapted, {"open": ["a", 5, [True]]})
    assert not accepts(adapted, {"none": ["a", "b"]})


def test_alternatives_at_the_root_become_one_object_that_accepts_each() -> None:
    parameters = {
        "type": "object",
        "oneOf": [
            {"properties": {"id": {"type": "integer"}}, "required": ["id"], "additionalProperties": False},
            {"properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": False},
        ],
    }
    adapted = declared(parameters)
    written = adapted.declaration["parameters"]
    assert set(written["properties"]) == {"id", "name"}
    assert "required" not in written
    assert written["description"] == "Must be given: id; or name."
    assert accepts(adapted, {"id": 1})
    assert accepts(adapted, {"name": "x"})


def test_a_tool_without_arguments_has_no_parameters() -> None:
    for parameters in (
        {"type": "object", "properties": {}, "additionalProperties": False},
        {"type": "object"},
    ):
        assert "parameters" not in declared(parameters).declaration


def test_names_are_made_legal_and_stay_unique() -> None:
    ids = ["a b", "a-b", "a/b", "9lives", "x" * 63, "x" * 64, "x" * 65, "größe", "", "a_b", ".x", "math.sum"]
    names = [native(tool_id, "d", {"type": "object"}).declaration["name"] for tool_id in ids]
    assert len(set(names)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,62}", name) for name in names)
    assert [name for tool_id, name in zip(ids, names, strict=True) if tool_id == name] == [
        "a-b", "x" * 63, "a_b", "math.sum",
    ]  # fmt: skip
    assert names == [as_json_schema(tool_id, "d", {"type": "object"}).declaration["name"] for tool_id in ids]


def test_json_schema_passes_through_as_it_is() -> None:
    parameters = {
        "type": "object",
        "properties": {"a": {"oneOf": [{"const": 1}, {"$ref": "#/$defs/x"}]}, "type": {"type": "string"}},
        "$defs": {"x": {"type": "integer", "multipleOf": 5}},
        "additionalProperties": False,
    }
    adapted = as_json_schema("tool", "Does something.", parameters)
    assert adapted == Adapted(
        {"name": "tool", "description": "Does something.", "parametersJsonSchema": parameters}
    )
    parsed = types.FunctionDeclaration.model_validate(adapted.declaration)
    assert parsed.parameters_json_schema == parameters
    assert (
        as_json_schema("t", "d", {"properties": {}}).declaration["parametersJsonSchema"]["type"] == "object"
    )


def test_exponential_references_stay_within_the_limit() -> None:
    levels: dict[str, Any] = {
        f"l{level}": {
            "type": "object",
            "properties": {name: {"$ref": f"#/$defs/l{level + 1}", "title": "t"} for name in "ab"},
            "additionalProperties": False,
        }
        for level in range(20)
    }
    levels["l20"] = {"type": "string"}
    adapted = declared({"type": "object", "properties": {"p": {"$ref": "#/$defs/l0"}}, "$defs": levels})
    assert len(json.dumps(adapted.declaration)) < 600_000
    assert any("too deep or too large" in what for _, what in adapted.lowered)


@needs_data
def test_every_bfcl_schema_keeps_the_rules_and_every_call_stays_valid() -> None:
    schemas = {row["sid"]: row for row in shared.rows(DATA / "bfcl/schemas.jsonl")}
    adapted = {sid: declared(row["parameters"], row["name"]) for sid, row in schemas.items()}
    for row in schemas.values():
        declared(row["raw_parameters"], row["name"])
    judges = {sid: shared.validator(row["parameters"]) for sid, row in schemas.items()}
    forms = {
        sid: shared.validator(back(each.declaration["parameters"]))
        if "parameters" in each.declaration
        else None
        for sid, each in adapted.items()
    }
    calls = 0
    for row in shared.rows(DATA / "bfcl/calls.jsonl"):
        by_name = {schemas[sid]["name"]: sid for sid in row["functions"]}
        for call in row["calls"]:
            sid = by_name[call["name"]]
            form = forms[sid]
            for arguments in (call["arguments_min"], call["arguments_full"]):
                if judges[sid].is_valid(arguments):
                    calls += 1
                    assert form is None or form.is_valid(arguments), (row["id"], arguments)
    for row in schemas.values():
        passed = as_json_schema(row["name"], "d", row["parameters"]).declaration
        assert passed["parametersJsonSchema"] == row["parameters"]
    assert len(schemas) == 1524
    assert calls > 3000


@needs_data
def test_every_upstream_schema_keeps_the_rules() -> None:
    inputs = [row["input"] for row in shared.rows(DATA / "schema_conversion/upstream_cases.jsonl")]
    usable = [schema for schema in inputs if isinstance(schema, dict)]
    assert len(usable) == 170
    for schema in usable:
        declared(schema)
        declared({"type": "object", "properties": {"p": schema}})


@given(shared.cases())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_nothing_that_a_schema_accepts_is_lost(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    schema, arguments = case
    assert accepts(declared(schema), arguments)
    passed = as_json_schema("t", "d", schema).declaration["parametersJsonSchema"]
    assert shared.validator(passed).is_valid(arguments)


@given(shared.malformed())
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_an_invalid_schema_gives_a_legal_declaration(schema: dict[str, Any]) -> None:
    declared(schema)

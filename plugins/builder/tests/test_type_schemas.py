"""Schemas from the types of a handler: their form, their agreement with schema.json, and writing them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Required
from uuid import UUID

import jsonschema_rs
import pytest
from annotated_types import Ge, Le, Len
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield import ToolResponse
from jackfield_builder.schema_agreement import disagreements, merged
from jackfield_builder.schema_edits import with_member
from jackfield_builder.type_schemas import HandlerSchemas, handler_schemas, normalised
from pydantic import UUID4, AnyUrl, BaseModel, ConfigDict, Field, SecretStr
from typing_extensions import Doc, TypedDict


class Place(Enum):
    INSIDE = "inside"
    TERRACE = "terrace"


@dataclass
class Guest:
    """Who books."""

    name: Annotated[str, Len(1, 80), "The guest's name."]
    email: Annotated[str | None, Doc("For a written confirmation.")] = None


@dataclass
class BookTable:
    party: Annotated[int, Ge(1), Le(40), Field(description="How many people come.")]
    guest: Guest
    others: Annotated[list[Guest], Field(max_length=3, description="Who else comes.")] = field(
        default_factory=list
    )
    place: Place = Place.INSIDE
    tip: Annotated[int | None, Ge(0)] = 5
    budget: Annotated[Decimal, Ge(1)] = Decimal("9.5")


class Tree(BaseModel):
    """A node."""

    children: list[Tree] = Field(default=[], description="The nodes below.")


class Formats(BaseModel):
    a: datetime
    b: date
    c: time
    d: UUID
    e: AnyUrl
    f: timedelta
    g: UUID4
    h: SecretStr
    i: bytes


class Changed(TypedDict, total=False):
    order: Annotated[Required[str], "The order's id."]
    lines: Annotated[list[int], "The new lines."]


class Aliased(BaseModel):
    start: Annotated[int, "The first day."] = Field(alias="from")


def schemas(arguments: Any = None, result: Any = None) -> HandlerSchemas:
    async def execute(args: Any, ctx: Any) -> Any:
        raise AssertionError

    execute.__annotations__ = {"args": arguments or dict, "return": result or ToolResponse}
    return handler_schemas(execute)


def parameters(hint: Any) -> dict[str, Any]:
    found = schemas(hint)
    assert not found.problems
    assert found.parameters is not None
    return found.parameters


GUEST = {
    "type": "object",
    "description": "Who books.",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 80, "description": "The guest's name."},
        "email": {"type": "string", "description": "For a written confirmation."},
    },
}


def test_a_dataclass_gives_closed_nested_described_parameters() -> None:
    assert parameters(BookTable) == {
        "type": "object",
        "additionalProperties": False,
        "required": ["party", "guest"],
        "properties": {
            "party": {"type": "integer", "minimum": 1, "maximum": 40, "description": "How many people come."},
            "guest": GUEST,
            "others": {"type": "array", "maxItems": 3, "items": GUEST, "description": "Who else comes."},
            "place": {"type": "string", "enum": ["inside", "terrace"], "default": "inside"},
            "tip": {"type": ["integer", "null"], "minimum": 0, "default": 5},
            "budget": {"type": "number", "minimum": 1, "default": 9.5},
        },
    }


def test_a_typed_dict_gives_parameters_with_its_required_keys() -> None:
    found = parameters(Changed)
    assert found["required"] == ["order"]
    assert found["properties"]["order"] == {"type": "string", "description": "The order's id."}
    assert found["properties"]["lines"]["items"] == {"type": "integer"}


def test_only_a_recursive_type_is_a_definition_and_the_top_is_still_an_object() -> None:
    found = parameters(Tree)
    assert found["type"] == "object"
    assert found["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    jsonschema_rs.validator_for(found).validate({"children": [{"children": []}]})


def test_formats_are_those_of_json_schema() -> None:
    members = parameters(Formats)["properties"]
    assert {name: member.get("format") for name, member in members.items()} == {
        "a": "date-time", "b": "date", "c": "time", "d": "uuid", "e": "uri", "f": "duration", "g": "uuid",
        "h": None, "i": None,
    }  # fmt: skip
    assert members["h"]["writeOnly"] is True


def test_an_alias_is_the_name_of_the_argument() -> None:
    assert parameters(Aliased)["properties"] == {"from": {"type": "integer", "description": "The first day."}}


def test_a_model_that_allows_unknown_members_stays_open() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")

    assert parameters(Open)["additionalProperties"] is True


def test_keywords_are_in_a_fixed_order_whatever_pydantic_does() -> None:
    shuffled = {"title": "X", "required": ["a"], "type": "object", "properties": {"a": {"type": "string"}}}
    turned = dict(reversed(shuffled.items()))
    expected = '{"type": "object", "additionalProperties": false, "required": ["a"], "properties": '
    assert json.dumps(normalised(shuffled)) == json.dumps(normalised(turned))
    assert json.dumps(normalised(shuffled)).startswith(expected)
    older = {"$defs": {"A": {"type": "integer"}}, "allOf": [{"$ref": "#/$defs/A"}], "description": "One."}
    assert normalised(older) == {"type": "integer", "description": "One."}


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (Guest | ToolResponse, ["string", "null"]),
        (Guest | None, ["string", "null"]),
        (Guest, ["string", "null"]),
    ],
)
def test_a_result_ignores_the_response_and_says_where_null_is_possible(hint: Any, expected: Any) -> None:
    returns = schemas(result=hint).returns
    assert returns is not None
    assert returns["properties"]["email"]["type"] == expected
    assert "default" not in returns["properties"]["email"]


@pytest.mark.parametrize("hint", [dict, dict[str, Any], Any, None, ToolResponse, ToolResponse | None])
def test_types_without_members_give_no_schema(hint: Any) -> None:
    assert schemas(result=hint) == HandlerSchemas()


def test_arguments_annotated_as_any_mapping_give_no_schema() -> None:
    for hint in (dict, dict[str, str], Any, object):
        assert schemas(hint) == HandlerSchemas()


def test_a_list_of_results_and_a_map_give_a_schema() -> None:
    listed, mapped = schemas(result=list[str]).returns, schemas(result=dict[str, int]).returns
    assert listed == {"type": "array", "items": {"type": "string"}}
    assert mapped == {"type": "object", "additionalProperties": {"type": "integer"}}


@pytest.mark.parametrize("hint", [int, list[str], Callable[[], None]])
def test_a_type_that_is_no_object_or_no_json_is_a_problem(hint: Any) -> None:
    found = schemas(hint)
    assert found.parameters is None
    assert found.problems


# Agreement


def changed(**members: Any) -> dict[str, Any]:
    base = parameters(BookTable)
    return {**base, "properties": {**base["properties"], **members}}


@pytest.mark.parametrize(
    ("written", "path", "message"),
    [
        (changed(party={**parameters(BookTable)["properties"]["party"], "maximum": 50}),
         ("properties", "party", "maximum"), "the file has 50, but the types have 40"),
        (changed(note={"type": "string"}), ("properties", "note"),
         "the file has 'note', but the types do not"),
        ({**parameters(BookTable), "required": ["party"]}, ("required",), 'the file has ["party"]'),
        (changed(place={"type": "string", "default": "inside"}), ("properties", "place", "enum"),
         "the file has no `enum`"),
        (changed(tip={"type": ["integer", "null"], "minimum": 0, "default": True}),
         ("properties", "tip", "default"), "the file has true, but the types have 5"),
    ],
)  # fmt: skip
def test_every_difference_that_changes_what_is_valid_is_named(
    written: dict[str, Any], path: tuple[str, ...], message: str
) -> None:
    ((place, said),) = disagreements(written, parameters(BookTable))
    assert place == path
    assert message in said


def test_the_file_may_add_annotations_and_order_and_keeps_them_when_written() -> None:
    types = parameters(BookTable)
    place = {"enum": ["terrace", "inside"], "type": "string", "default": "inside", "x-sensitive": True}
    written = changed(place={**place, "description": "Where."})
    assert list(disagreements(written, types)) == []
    kept = merged(written, types)["properties"]["place"]
    assert (kept["x-sensitive"], kept["description"]) == (True, "Where.")


# Writing


TEXT = '{\r\n\t"toolId": "a",\r\n\t"parameters": {"type": "object"},\r\n\t"b": [1,  2]\r\n}\r\n'


def test_a_member_is_replaced_and_the_rest_of_the_file_stays() -> None:
    assert with_member(TEXT, ["parameters"], {"x": 1}) == TEXT.replace('{"type": "object"}', '{ "x": 1 }')


def test_a_missing_member_is_added_at_the_end_in_the_style_of_the_file() -> None:
    assert with_member(TEXT, ["returns"], {"x": 1}) == TEXT.replace("2]", '2],\r\n\t"returns": { "x": 1 }')
    assert json.loads(with_member("{}", ["returns"], {})) == {"returns": {}}


@pytest.mark.parametrize("indent", [2, 4, "\t"])
@pytest.mark.parametrize("own", [{}, {"category": "utility"}])
def test_a_member_is_indented_by_its_depth_in_a_family(indent: Any, own: dict[str, Any]) -> None:
    before = json.dumps({"tools": {"a": own, "b": {}}}, indent=indent)
    after = json.dumps({"tools": {"a": {**own, "returns": 1}, "b": {}}}, indent=indent)
    assert with_member(before, ["tools", "a", "returns"], 1) == after


def test_a_member_is_added_to_a_tool_on_one_line() -> None:
    before = '{\n  "tools": {\n    "a": { "category": "utility" }\n  }\n}\n'
    after = before.replace('utility"', 'utility",\n      "returns": 1')
    assert with_member(before, ["tools", "a", "returns"], 1) == after


def test_a_member_deep_in_a_family_is_found() -> None:
    text = '{"tools": {"a": {"parameters": 1}, "b": {"parameters": "}\\""}}}'
    assert json.loads(with_member(text, ["tools", "b", "parameters"], 2))["tools"] == {
        "a": {"parameters": 1}, "b": {"parameters": 2},
    }  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=20), inner, max_size=5),
    max_leaves=30,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=9), JSON, max_size=5), JSON, st.sampled_from([None, 1, 4]))
def test_writing_changes_one_member(document: dict[str, Any], value: Any, indent: Any) -> None:
    for name in [*document, "another"]:
        written = with_member(json.dumps(document, indent=indent), [name], value)
        assert json.loads(written) == {**document, name: value}


# The build and the command


TYPED = """
from __future__ import annotations
from dataclasses import dataclass
from typing import Annotated

@dataclass
class Say:
    text: Annotated[str, "What to say."]
    times: Annotated[int, "How often."] = 1

@dataclass
class Said:
    said: str

async def execute(args: Say, ctx) -> Said:
    return Said(args.text * args.times)
"""


def test_a_typed_tool_without_schemas_is_built_called_and_checked(site: Any) -> None:
    site.tool("echo", schema={"parameters": ...}, handler=TYPED)
    assert site.run_json("build")["findings"] == []
    registry = json.loads((site.folder.parent / "tool_registry.json").read_text())
    (tool,) = registry["tools"]
    assert tool["jsonSchema"]["properties"]["times"] == {
        "type": "integer", "default": 1, "description": "How often.",
    }  # fmt: skip
    assert tool["returns"]["properties"] == {"said": {"type": "string"}}
    called = json.loads(site.run("call", "echo", '{"text": "ha", "times": 2}', "--json").stdout)
    assert called["answer"]["data"] == {"said": "haha"}


def test_a_finding_about_a_schema_of_the_types_points_to_the_handler(site: Any) -> None:
    site.tool("echo", schema={"parameters": ...}, handler=TYPED.replace(', "What to say."', ", 1"))
    (finding,) = site.run_json("build")["findings"]
    assert (finding["code"], finding["file"]) == ("JF511", "handler.py")
    assert finding["path"] == "/parameters/properties/text"


def test_parameters_from_types_need_the_import(site: Any) -> None:
    site.tool("echo", schema={"parameters": ...}, handler=TYPED)
    site.tool("plain")
    (finding,) = site.run_json("build", "--no-import")["findings"]
    assert (finding["code"], finding["subject"], finding["path"]) == ("JF517", "echo", "line 15")


def test_the_command_shows_and_writes_what_the_build_reports(project: Callable[..., Path], site: Any) -> None:
    wrong = {"type": "object", "properties": {"text": {"type": "string", "x-sensitive": True}}}
    folder = project("echo", schema={"parameters": wrong}, handler=TYPED)
    file = folder / "src" / "fab_echo" / "schema.json"
    assert "JF516" in site.run("validate", str(folder)).stderr
    before = file.read_text()

    shown = site.run("schema", str(folder))
    assert shown.returncode == 1
    assert "+  " in shown.stdout
    assert file.read_text() == before

    assert site.run("schema", "--write", str(folder)).returncode == 0
    manifest = json.loads(file.read_text())
    assert manifest["parameters"]["properties"]["text"]["x-sensitive"] is True
    assert manifest["parameters"]["properties"]["times"]["default"] == 1
    assert {**json.loads(before), **manifest} == manifest
    assert site.run("schema", str(folder)).returncode == 0
    assert site.run_json("validate", str(folder))["ok"] is True


def test_the_command_names_the_type_that_has_no_schema(project: Callable[..., Path], site: Any) -> None:
    folder = project("echo", handler="async def execute(args: int, ctx): ...\n")
    done = site.run("schema", str(folder))
    assert done.returncode == 1
    assert "the arguments are annotated as int, which is not an object" in done.stderr


@pytest.mark.parametrize("kind", ["@dataclass\nclass Toast", "class Toast(BaseModel)"])
def test_the_name_that_is_missing_inside_a_type_is_reported(
    project: Callable[..., Path], site: Any, kind: str
) -> None:
    imports = "from dataclasses import dataclass\nfrom pydantic import BaseModel\n"
    members = "    bread: list[Bred]\n\nasync def execute(args: Toast, ctx): ...\n"
    source = f"from __future__ import annotations\n{imports}{kind}:\n{members}"
    done = site.run("validate", str(project("echo", handler=source)))
    assert "JF708" in done.stderr
    assert "Toast: 'Bred' cannot be resolved" in done.stderr

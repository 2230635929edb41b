"""Arguments are parsed strictly, validated, completed with defaults, and explained when they are wrong."""

from __future__ import annotations

import copy
import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.contract.manifest import ToolManifest
from jackfield.contract.snapshot import FrozenTool
from jackfield.registry.arguments import Arguments, Violation
from jackfield.registry.registry import RegisteredTool
from jackfield.strict_json import JsonFaultKind, StrictJsonError, parse_arguments

SEARCH: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["query"],
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 200},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "since": {"type": "string", "format": "date-time"},
        "filters": {
            "type": "object",
            "additionalProperties": False,
            "default": {},
            "properties": {
                "tags": {"type": "array", "items": {"type": "string"}, "default": []},
                "order": {"enum": ["new", "old"], "default": "new"},
            },
        },
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}},
    },
    "$defs": {
        "part": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "weight": {"type": "number", "default": 1.5},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}},
            },
        }
    },
}


def test_defaults_are_filled_in_at_every_level() -> None:
    arguments = {"query": "x", "parts": [{}, {"parts": [{"weight": 2}, {}]}]}
    assert Arguments(SEARCH).fill_defaults(arguments) is True
    assert arguments == {
        "query": "x",
        "top_k": 5,
        "filters": {"tags": [], "order": "new"},
        "parts": [{"weight": 1.5}, {"weight": 1.5, "parts": [{"weight": 2}, {"weight": 1.5}]}],
    }


def test_texts_for_readers_do_not_hide_what_a_schema_requires() -> None:
    """They are left out of the validator; a property or a value with such a name is not."""
    arguments = Arguments(
        {
            "type": "object",
            "description": "An event.",
            "additionalProperties": False,
            "required": ["title"],
            "properties": {
                "title": {"title": "The title", "type": "string", "description": "Its title."},
                "description": {"type": "string", "maxLength": 3, "$comment": "short"},
                "fixed": {"const": {"title": "a", "description": "b"}},
            },
        }
    )
    assert not arguments.violations(
        {"title": "t", "description": "d", "fixed": {"title": "a", "description": "b"}}
    )
    assert [each.path for each in arguments.violations({"description": "long"})] == ["/", "/description"]
    assert [each.path for each in arguments.violations({"title": "t", "fixed": {"title": "a"}})] == ["/fixed"]


def test_complete_arguments_are_not_changed() -> None:
    arguments = {"query": "x", "top_k": 1, "filters": {"tags": ["a"], "order": "old"}}
    before = copy.deepcopy(arguments)
    assert Arguments(SEARCH).fill_defaults(arguments) is False
    assert arguments == before


def test_a_default_is_not_shared_between_calls() -> None:
    compiled = Arguments(SEARCH)
    first: dict[str, Any] = {"query": "x"}
    compiled.fill_defaults(first)
    first["filters"]["tags"].append("mine")
    second: dict[str, Any] = {"query": "x"}
    compiled.fill_defaults(second)
    assert second["filters"]["tags"] == []


def test_all_violations_are_reported_together_with_their_paths() -> None:
    wrong = {"top_k": "7", "since": "yesterday", "filters": {"tags": [1], "colour": "red"}, "volume": 11}
    found = {(each.path, each.keyword) for each in Arguments(SEARCH).violations(wrong)}
    assert found == {
        ("/", "required"),
        ("/", "additionalProperties"),
        ("/top_k", "type"),
        ("/since", "format"),
        ("/filters", "additionalProperties"),
        ("/filters/tags/0", "type"),
    }


@pytest.mark.parametrize("value", ["5", 5.5, True, None, [5]])
def test_arguments_are_never_coerced(value: Any) -> None:
    assert Arguments(SEARCH).violations({"query": "x", "top_k": value})


def test_remote_schemas_are_never_fetched() -> None:
    with pytest.raises(Exception, match=r"example\.invalid"):
        Arguments({"$ref": "https://example.invalid/schema.json"})


@given(
    st.fixed_dictionaries(
        {"query": st.text(min_size=1, max_size=5)},
        optional={
            "top_k": st.integers(1, 10),
            "filters": st.fixed_dictionaries(
                {}, optional={"tags": st.lists(st.text(max_size=3), max_size=2)}
            ),
        },
    )
)
def test_filling_in_defaults_is_idempotent_and_keeps_arguments_valid(arguments: dict[str, Any]) -> None:
    compiled = Arguments(SEARCH)
    given_ones = copy.deepcopy(arguments)
    assert compiled.violations(arguments) == []
    compiled.fill_defaults(arguments)
    assert compiled.violations(arguments) == []
    assert compiled.fill_defaults(arguments) is False
    assert {key: arguments[key] for key in given_ones if key != "filters"} == {
        key: given_ones[key] for key in given_ones if key != "filters"
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"query": "x" * 100_000}, "is longer than 200 characters"),
        ({"query": "x", "top_k": "y" * 100_000}, 'is not of type "integer"'),
        ({"query": "x", "filters": {"order": "z" * 100_000}}, "is not one of 'new', 'old'"),
        ({"query": "x", "k" * 100_000: 1}, "was unexpected)"),
        ({"query": "x", **{f"k{number}": 1 for number in range(10_000)}}, "were unexpected)"),
    ],
    ids=["long", "type", "choice", "name", "names"],
)
def test_a_validation_error_does_not_repeat_a_long_value(arguments: dict[str, Any], reason: str) -> None:
    (violation,) = Arguments(SEARCH).violations(arguments)
    assert reason in violation.message
    assert len(violation.message) < 500


@pytest.mark.parametrize(
    ("given", "path", "names"),
    [
        ({"text": "secret"}, "/", "'text' was"),
        ({"text": "secret", "n": 1}, "/", "'text', 'n' were"),
        ({"inner": {"deep": "secret"}}, "/inner", "'deep' was"),
    ],
    ids=["one", "two", "nested"],
)
def test_an_unexpected_argument_of_an_object_without_properties_is_named(
    given: dict[str, Any], path: str, names: str
) -> None:
    closed = {"type": "object", "additionalProperties": False}
    parameters = {**closed, "properties": {"inner": closed}} if "inner" in given else closed
    (violation,) = Arguments(parameters).violations(given)
    assert violation == (
        path,
        f"Additional properties are not allowed ({names} unexpected)",
        "additionalProperties",
    )


# Parsing


@pytest.mark.parametrize("depth", [64, 253, 254, 255, 300, 1000, 1023, 1024, 5000, 100_000])
@pytest.mark.parametrize(("before", "behind"), [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
def test_arguments_nested_too_deeply_are_rejected_at_any_depth(depth: int, before: str, behind: str) -> None:
    with pytest.raises(StrictJsonError) as refused:
        parse_arguments(f'{{"x":{before * depth}1{behind * depth}}}')
    assert refused.value.faults[0].kind is JsonFaultKind.DEPTH


def test_arguments_at_the_maximum_depth_are_accepted() -> None:
    text = '{"x":' + "[" * 62 + "]" * 62 + "}"
    assert parse_arguments(text) == (json.loads(text), orjson.dumps(orjson.loads(text)))


# Explanations for the model

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "party": {"type": "integer", "description": "How many people come."},
        "place": {"type": "string", "description": "Where they sit."},
        "anything": True,
    },
}


async def nothing(args: Any, ctx: Any) -> Any:
    raise AssertionError((args, ctx))


def explanation(guide: str, *paths: str) -> str | None:
    modes: Any = ("text",)
    manifest = ToolManifest("book", "1.0.0", "", "utility", "none", True, False, modes, 1, PARAMETERS)
    tool = RegisteredTool(FrozenTool(manifest, {}, "", guide, "", "", "", "", ""), nothing, "1")
    return tool.help_for([Violation(path, "is wrong", "type") for path in paths])


def test_arguments_are_explained_by_the_guide_or_else_by_the_schema() -> None:
    guide = "# book\n\n- `party`: count the user too.\n"
    assert explanation(guide, "/party") == "`party`: count the user too."
    assert explanation(guide, "/place") == "`place`: Where they sit."
    assert explanation(guide, "/party", "/place") == "`party`: count the user too.\n`place`: Where they sit."
    assert explanation(guide, "/anything") == "The arguments are party, place, anything."

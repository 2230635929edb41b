"""Arguments are validated against the schema, filled up with defaults, and never coerced."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.registry.arguments import Arguments

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


def test_defaults_are_filled_in_nested_and_recursive() -> None:
    arguments = {"query": "x", "parts": [{}, {"parts": [{"weight": 2}, {}]}]}
    assert Arguments(SEARCH).fill_defaults(arguments) is True
    assert arguments == {
        "query": "x",
        "top_k": 5,
        "filters": {"tags": [], "order": "new"},
        "parts": [{"weight": 1.5}, {"weight": 1.5, "parts": [{"weight": 2}, {"weight": 1.5}]}],
    }


def test_arguments_without_missing_defaults_are_unchanged() -> None:
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


def test_all_violations_are_reported_with_their_paths() -> None:
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
def test_nothing_is_coerced(value: Any) -> None:
    assert Arguments(SEARCH).violations({"query": "x", "top_k": value})


def test_remote_schemas_are_not_fetched() -> None:
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
def test_filling_defaults_is_idempotent_and_keeps_arguments_valid(arguments: dict[str, Any]) -> None:
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
def test_a_refusal_says_why_without_repeating_a_long_value(arguments: dict[str, Any], reason: str) -> None:
    (violation,) = Arguments(SEARCH).violations(arguments)
    assert reason in violation.message
    assert len(violation.message) < 500

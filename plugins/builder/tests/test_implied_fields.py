"""What a manifest may omit, and that the completed and bundled schemas mean what the author wrote."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.contract.snapshot import Snapshot
from jackfield.settings import Settings
from jackfield_builder.findings import CheckCode
from jackfield_builder.implied_fields import close_objects, complete_manifest, semantic_version
from jackfield_builder.pipeline import build
from jackfield_builder.schema_bundle import bundle
from jackfield_testkit.site_packages import SitePackages


def complete(written: dict[str, Any]) -> dict[str, Any]:
    return complete_manifest(written, tool_id="echo", version="1.0.0", summary="Says a text again.")


def test_a_utility_needs_only_its_category() -> None:
    assert complete({"category": "utility"}) == {
        "toolId": "echo",
        "version": "1.0.0",
        "description": "Says a text again.",
        "category": "utility",
        "sideEffects": "none",
        "idempotent": True,
        "requiresConfirmation": False,
        "allowedModes": ["text", "voice"],
        "latencyBudgetMs": 200,
        "parameters": {"type": "object", "additionalProperties": False},
    }


@pytest.mark.parametrize(
    ("written", "implied"),
    [
        ({"category": "retrieval"}, {"sideEffects": "read_only", "idempotent": True, "latencyBudgetMs": 800}),
        (
            {"category": "action", "sideEffects": "read_only"},
            {"idempotent": True, "requiresConfirmation": False, "latencyBudgetMs": 3000},
        ),
        (
            {"category": "utility", "sideEffects": "writes"},
            {"idempotent": None, "requiresConfirmation": None},
        ),
        ({"category": "action"}, {"sideEffects": None, "idempotent": None, "requiresConfirmation": None}),
        ({"category": "utility", "latencyBudgetMs": 7}, {"latencyBudgetMs": 7}),
        ({"category": ["odd"]}, {"sideEffects": None, "latencyBudgetMs": None}),
    ],
)
def test_effects_and_limits_follow_from_the_category(
    written: dict[str, Any], implied: dict[str, Any]
) -> None:
    fields = complete(written)
    assert {name: fields.get(name) for name in implied} == implied


def test_a_short_manifest_is_frozen_in_full(site: SitePackages) -> None:
    short = {
        "category": "utility",
        "parameters": {"properties": {"text": {"type": "string", "description": "It."}}},
    }
    site.tool("echo", schema=json.dumps(short), version="1.2")
    tool = Snapshot.load(site.frozen("fab-*")).tools["echo"].manifest
    assert (tool.version, tool.description, tool.side_effects) == ("1.2.0", "Says a text again.", "none")
    assert tool.parameters["additionalProperties"] is False


@pytest.mark.parametrize(
    ("written", "missing"),
    [
        ({"category": "action"}, ["sideEffects"]),
        ({"category": "action", "sideEffects": "writes"}, ["idempotent", "requiresConfirmation"]),
        ({"category": "utility", "sideEffects": "writes"}, ["idempotent", "requiresConfirmation"]),
        ({}, ["category"]),
    ],
)
def test_what_only_the_author_knows_must_be_stated(
    site: SitePackages, written: dict[str, Any], missing: list[str]
) -> None:
    site.tool("echo", schema=json.dumps(written), guide="# echo\n\nSays.\n\n```json\n{}\n```\n")
    found = build(Settings(allow=("fab-*",)), import_handlers=False).findings
    assert [each.message for each in found if each.code is CheckCode.FIELD_MISSING] == [
        f"'{name}' is missing" for name in missing
    ]


def test_a_version_without_a_semantic_equivalent_must_be_stated(site: SitePackages) -> None:
    site.tool("echo", schema={"version": ...}, version="1.0.post1")
    found = build(Settings(allow=("fab-*",)), import_handlers=False).findings
    (finding,) = [each for each in found if each.is_error]
    assert (finding.code, finding.path) == (CheckCode.NOT_SEMVER, "/version")
    assert "state `version`" in finding.hint


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1", "1.0.0"),
        ("1.2.3", "1.2.3"),
        ("1.0rc2", "1.0.0-rc.2"),
        ("1.0a1.dev3", "1.0.0-a.1.dev.3"),
        ("0.1.dev4+g1f", "0.1.0-dev.4+g1f"),
        ("", "0.0.0"),
        ("1!2.0", "1!2.0"),
        ("1.2.3.4", "1.2.3.4"),
        ("odd", "odd"),
    ],
)
def test_the_version_of_a_distribution_as_a_semantic_version(version: str, expected: str) -> None:
    assert semantic_version(version) == expected


@pytest.mark.parametrize(
    ("schema", "closed"),
    [
        ({"type": "object"}, {"type": "object", "additionalProperties": False}),
        ({"properties": {"a": {"type": "object"}}}, None),
        ({"type": "object", "additionalProperties": True}, {"type": "object", "additionalProperties": True}),
        # A closed object closes its branches, which need no `false` of their own.
        (
            {"properties": {"a": {}}, "anyOf": [{"properties": {"a": {"type": "null"}}}]},
            {
                "properties": {"a": {}},
                "anyOf": [{"properties": {"a": {"type": "null"}}}],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_objects_are_closed_where_the_author_states_nothing(
    schema: dict[str, Any], closed: dict[str, Any] | None
) -> None:
    before = json.dumps(schema)
    inner = {"type": "object", "additionalProperties": False}
    assert close_objects(schema) == (closed or {"properties": {"a": inner}, "additionalProperties": False})
    assert json.dumps(schema) == before


def test_an_object_whose_branches_add_properties_is_left_to_its_author(site: SitePackages) -> None:
    branches = [{"properties": {name: {"type": "string", "description": "It."}}} for name in ("a", "b")]
    site.tool("echo", schema={"parameters": {"type": "object", "allOf": branches}}, guide="# echo\n\nSays.\n")
    found = build(Settings(allow=("fab-*",)), import_handlers=False).findings
    assert ("JF503", "/parameters") in [(each.code.id, each.path) for each in found if each.is_error]


NAMES = ("a", "b", "c", "d")
REFERENCES = st.sampled_from([{"$ref": f"#/$defs/{name}"} for name in NAMES])
SCHEMAS = st.recursive(
    st.sampled_from(
        [{"type": "string"}, {"type": "integer", "minimum": 3}, {"enum": [1, "x"]}, {"type": "object"}]
    )
    | REFERENCES,
    lambda inner: (
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from("pq"), inner, max_size=2),
            }
        )
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)})
    ),
    max_leaves=5,
)
# Definitions refer only to earlier ones, because a circle describes nothing.
VALUES = st.recursive(
    st.sampled_from([1, 4, "x", "y", None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=2),
    max_leaves=5,
)


def acyclic(definitions: dict[str, Any]) -> dict[str, Any]:
    """Replace references to the same or a later definition, so that none leads back to itself."""

    def cut(schema: Any, allowed: tuple[str, ...]) -> Any:
        if isinstance(schema, dict):
            name = str(schema.get("$ref", "")).rpartition("/")[2]
            if name and name not in allowed:
                return {"type": "string"}
            return {key: cut(value, allowed) for key, value in schema.items()}
        return [cut(each, allowed) for each in schema] if isinstance(schema, list) else schema

    return {name: cut(definitions[name], NAMES[: NAMES.index(name)]) for name in NAMES}


@given(
    schema=SCHEMAS,
    definitions=st.fixed_dictionaries(dict.fromkeys(NAMES, SCHEMAS)),
    values=st.lists(VALUES, min_size=1, max_size=5),
)
def test_bundling_keeps_the_results_of_validation(
    schema: dict[str, Any], definitions: dict[str, Any], values: list[Any]
) -> None:
    shared = acyclic(definitions)
    whole = jsonschema_rs.Draft202012Validator({**schema, "$defs": shared})
    bundled = bundle(schema, shared)
    reduced = jsonschema_rs.Draft202012Validator(bundled)
    assert [reduced.is_valid(value) for value in values] == [whole.is_valid(value) for value in values]
    assert bundle(bundled, shared) == bundled


@given(schema=SCHEMAS, definitions=st.fixed_dictionaries(dict.fromkeys(NAMES, SCHEMAS)), value=VALUES)
def test_closing_objects_only_ever_refuses_more(
    schema: dict[str, Any], definitions: dict[str, Any], value: Any
) -> None:
    written = bundle(schema, acyclic(definitions))
    closed = close_objects(written)
    assert close_objects(closed) == closed
    if jsonschema_rs.Draft202012Validator(closed).is_valid(value):
        assert jsonschema_rs.Draft202012Validator(written).is_valid(value)

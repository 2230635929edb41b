"""Differences between snapshots, each with the version bump that it requires."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.contract.snapshot import Snapshot
from jackfield.registry.arguments import Arguments
from jackfield_builder.schema_changes import VersionBump, argument_changes
from jackfield_builder.snapshot_diff import unannounced_breaks

BASE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["query"],
    "properties": {
        "query": {"type": "string", "description": "What to look for.", "minLength": 1, "maxLength": 200},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "kind": {"enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
    },
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the base with the member at a dotted path set, or removed if the value is `...`."""
    schema = copy.deepcopy(BASE)
    target: Any = schema
    *parents, last = path.split(".")
    for part in parents:
        target = target[part]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return schema


CASES = [
    ("properties.when", {"type": "string"}, "optional argument when added", VersionBump.MINOR),
    ("properties.kind", ..., "argument kind removed", VersionBump.MAJOR),
    ("required", ["query", "top_k"], "argument top_k became required", VersionBump.MAJOR),
    ("required", [], "argument query became optional", VersionBump.MINOR),
    ("properties.top_k.maximum", 20, "top_k: maximum 10 -> 20", VersionBump.MINOR),
    ("properties.top_k.maximum", 5, "top_k: maximum 10 -> 5", VersionBump.MAJOR),
    ("properties.top_k.maximum", ..., "top_k: maximum 10 -> none", VersionBump.MINOR),
    ("properties.top_k.minimum", 2, "top_k: minimum 1 -> 2", VersionBump.MAJOR),
    ("properties.query.pattern", "^a", 'query: pattern none -> "^a"', VersionBump.MAJOR),
    ("properties.top_k.default", 3, "default of top_k: 5 -> 3", VersionBump.MINOR),
    ("properties.top_k.type", "number", "top_k takes number instead of integer", VersionBump.MINOR),
    ("properties.top_k.type", "string", "top_k takes string instead of integer", VersionBump.MAJOR),
    ("properties.kind.enum", ["a", "b", "c"], "kind also takes 'c'", VersionBump.MINOR),
    ("properties.kind.enum", ["a"], "kind no longer takes 'b'", VersionBump.MAJOR),
    ("properties.tags.items.maxLength", 9, "tags[]: maxLength none -> 9", VersionBump.MAJOR),
    ("properties.query.description", "Words.", "description of query changed", VersionBump.PATCH),
    ("anyOf", [{"required": ["kind"]}], "schema: anyOf changed", VersionBump.MAJOR),
]


@pytest.mark.parametrize(("path", "value", "what", "bump"), CASES)
def test_a_change_of_the_arguments_requires_its_bump(
    path: str, value: Any, what: str, bump: VersionBump
) -> None:
    assert list(argument_changes(BASE, changed(path, value))) == [(what, bump)]


def test_a_required_argument_added_is_breaking() -> None:
    after = changed("properties.where", {"type": "string"})
    after["required"] = ["query", "where"]
    assert list(argument_changes(BASE, after)) == [("required argument where added", VersionBump.MAJOR)]


def behind_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with each argument as a definition of its own, reached through another one."""
    arguments = schema["properties"]
    through = {name: {"$ref": f"#/$defs/{name}_again"} for name in arguments}
    return {
        **schema,
        "properties": {name: {"$ref": f"#/$defs/{name}"} for name in arguments},
        "$defs": through | {f"{name}_again": each for name, each in arguments.items()},
    }


@pytest.mark.parametrize(("path", "value", "what", "bump"), CASES)
def test_a_change_behind_references_is_named_like_one_in_place(
    path: str, value: Any, what: str, bump: VersionBump
) -> None:
    after = changed(path, value)
    assert list(argument_changes(behind_definitions(BASE), behind_definitions(after))) == [(what, bump)]
    assert list(argument_changes(BASE, behind_definitions(after))) == [(what, bump)]
    assert list(argument_changes(BASE, behind_definitions(BASE))) == []


def recursive(**text: Any) -> dict[str, Any]:
    children = {"type": "array", "items": {"$ref": "#/$defs/node"}}
    return {
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"text": text, "children": children}}},
    }


def test_a_change_in_a_recursive_definition_is_named_once() -> None:
    before, after = recursive(type="string", maxLength=5), recursive(type="string", maxLength=9)
    assert list(argument_changes(before, after)) == [("tree.text: maxLength 5 -> 9", VersionBump.MINOR)]


def doubling(last: Any, levels: int = 40) -> dict[str, Any]:
    """Return a schema that is twice as large in place with each level."""
    definitions: dict[str, Any] = {
        f"d{n}": {"properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in ("a", "b")}}
        for n in range(levels)
    }
    return {"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**definitions, f"d{levels}": last}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (doubling({"maxLength": 5}), doubling({"maxLength": 9})),
        (
            {"properties": {"x": {"$ref": "#text"}}, "$defs": {"t": {"$anchor": "text", "maxLength": 5}}},
            {"properties": {"x": {"$ref": "#text"}}, "$defs": {"t": {"$anchor": "text", "maxLength": 2}}},
        ),
    ],
)
def test_definitions_that_cannot_be_put_in_place_are_compared_as_a_whole(before: Any, after: Any) -> None:
    assert list(argument_changes(before, after)) == [("schema: $defs changed", VersionBump.MAJOR)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"$defs": {"t": True}}, {"$defs": {"t": False}}),
        (
            {"$defs": {"t": {"properties": {"a": {}}, "additionalProperties": False}}},
            {"additionalProperties": False, "$defs": {"t": {"properties": {"a": {}}}}},
        ),
    ],
)
def test_a_definition_that_accepts_less_is_breaking(before: Any, after: Any) -> None:
    schemas = [
        {
            "properties": {
                "x": {"$ref": "#/$defs/t", **{k: v for k, v in each.items() if k != "$defs"}},
            },
            "$defs": each["$defs"],
        }
        for each in (before, after)
    ]
    assert VersionBump.MAJOR in [bump for _, bump in argument_changes(*schemas)]


NUMBERS = st.none() | st.integers(-3, 6)


@st.composite
def integer_schemas(draw: st.DrawFn) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": draw(st.sampled_from(["integer", "number", "string"]))}
    for keyword in ("minimum", "maximum"):
        if (bound := draw(NUMBERS)) is not None:
            schema[keyword] = bound
    if draw(st.booleans()):
        schema["enum"] = draw(st.lists(st.integers(-2, 5), min_size=1, unique=True))
    return schema


@given(
    integer_schemas(),
    integer_schemas(),
    st.integers(-5, 8) | st.text(max_size=2),
    st.sampled_from([{}, {"description": "A number."}, {"maximum": 4}]),
)
def test_a_call_that_is_no_longer_accepted_requires_a_major_bump(
    before: dict[str, Any], after: dict[str, Any], value: Any, beside: dict[str, Any]
) -> None:
    def parameters(schema: dict[str, Any]) -> dict[str, Any]:
        closed = {"type": "object", "additionalProperties": False}
        return {**closed, "properties": {"n": {"$ref": "#/$defs/n", **beside}}, "$defs": {"n": schema}}

    def accepts(schema: dict[str, Any]) -> bool:
        return not Arguments(parameters(schema)).violations({"n": value})

    if accepts(before) and not accepts(after):
        assert VersionBump.MAJOR in [
            bump for _, bump in argument_changes(parameters(before), parameters(after))
        ]


def rebuild(site: Any, folder: Path, **fields: Any) -> list[dict[str, Any]]:
    schema = json.loads((folder / "schema.json").read_text())
    (folder / "schema.json").write_text(json.dumps({**schema, **fields}))
    findings: list[dict[str, Any]] = site.run_json("build")["findings"]
    return findings


@pytest.mark.parametrize(
    ("fields", "warned"),
    [
        ({"latencyBudgetMs": 99}, True),
        ({"latencyBudgetMs": 99, "version": "1.0.1"}, False),
        ({"allowedModes": ["text"], "version": "1.1.0"}, True),
        ({"allowedModes": ["text"], "version": "2.0.0"}, False),
        ({"idempotent": False, "version": "0.9.0"}, True),
        ({}, False),
    ],
)
def test_the_build_warns_about_a_missing_version_bump(
    site: Any, fields: dict[str, Any], warned: bool
) -> None:
    site.enforcer()
    folder = site.tool("echo")
    assert site.run("build").returncode == 0
    findings = rebuild(site, folder, **fields)
    assert [finding["code"] for finding in findings] == (["JF901"] if warned else [])


def test_a_missing_bump_is_reported_until_the_version_is_raised(site: Any) -> None:
    site.enforcer()
    folder = site.tool("echo")
    site.run("build")
    rebuild(site, folder, allowedModes=["text"])
    (again,) = rebuild(site, folder)
    assert (again["code"], again["severity"]) == ("JF901", "warning")
    assert again["message"] == (
        "1.0.0 -> 1.0.0, but this change requires a major bump (before 1.0.0 a minor bump is enough): "
        "no longer offered in voice"
    )
    assert rebuild(site, folder, version="2.0.0") == []
    assert rebuild(site, folder) == []


def test_a_version_that_goes_down_is_reported(site: Any) -> None:
    folder = site.tool("echo")
    site.run("build")
    (finding,) = rebuild(site, folder, version="0.9.0")
    assert (finding["code"], finding["severity"]) == ("JF901", "warning")
    assert finding["message"] == "1.0.0 -> 0.9.0, but a version must never go down"


def test_a_missing_patch_bump_is_only_a_counted_note(site: Any) -> None:
    folder = site.tool("echo")
    site.run("build")
    with (folder / "handler.py").open("a") as file:
        file.write("# another byte\n")
    (finding,) = rebuild(site, folder)
    assert (finding["code"], finding["severity"]) == ("JF901", "note")
    shown = site.run("build").stderr
    assert "1 note JF901" in shown
    assert "warning" not in shown


def test_before_1_0_0_a_minor_bump_is_enough_for_a_break(site: Any) -> None:
    site.enforcer()
    folder = site.tool("echo", schema={"version": "0.1.0"})
    site.run("build")
    assert rebuild(site, folder, allowedModes=["text"], version="0.2.0") == []


def test_diff_describes_changes_for_users(site: Any) -> None:
    folder = site.tool("echo")
    site.tool("gone")
    site.run("build", "--registry", "a.json")

    (folder / "handler.py").write_text((folder / "handler.py").read_text() + "# changed\n")
    schema = json.loads((folder / "schema.json").read_text())
    schema["parameters"]["properties"]["times"]["maximum"] = 3
    schema["version"] = "2.0.0"
    schema["sideEffects"] = "writes"
    schema["says"] = ["echoed"]
    schema["returns"] = {"type": "object", "properties": {"said": {"type": "string"}}}
    (folder / "schema.json").write_text(json.dumps(schema))
    for path in site.folder.glob("fab_gone*"):
        shutil.rmtree(path)
    site.tool("fresh")
    site.plugin("fab-plugin", "")
    assert site.run("build", "--registry", "b.json").returncode == 0, site.run("build").stderr

    report = site.run_json("diff", "a.json", "b.json")

    changes = {(change["subject"], change["what"], change["bump"]) for change in report["changes"]}
    assert {
        ("echo", "times: maximum none -> 3", "major"),
        ("echo", "handler changed", "patch"),
        ("echo", "sideEffects none -> writes", "major"),
        ("echo", "says changed", "patch"),
        ("echo", "result also includes said", "minor"),
        ("echo", "version 1.0.0 -> 2.0.0", None),
        ("fresh", "tool added, 1.0.0", None),
        ("gone", "tool removed", None),
        (None, "plugin fab-plugin:main added", None),
    } == changes
    assert "breaking" in site.run("diff", "a.json", "b.json").stdout
    assert "no difference" in site.run("diff", "a.json", "a.json").stdout


def test_diff_compares_the_previous_and_the_current_registry_by_default(site: Any) -> None:
    folder = site.tool("echo")
    site.run("build")
    first = site.run("diff")
    assert first.returncode == 1
    assert "tool_registry.previous.json: there is no previous registry yet" in first.stderr
    shutil.copy(site.folder.parent / "tool_registry.json", site.folder.parent / "first.json")
    rebuild(site, folder, latencyBudgetMs=99, version="1.0.1")
    rebuild(site, folder, latencyBudgetMs=98, version="1.0.2")

    def changes(*files: str) -> list[str]:
        return [change["what"] for change in site.run_json("diff", *files)["changes"]]

    assert changes() == ["latencyBudgetMs 99 -> 98", "version 1.0.1 -> 1.0.2"]
    assert changes("first.json") == ["latencyBudgetMs 100 -> 98", "version 1.0.0 -> 1.0.2"]


@pytest.mark.parametrize(
    ("fields", "broken"),
    [
        ({"allowedModes": ["text"], "version": "1.1.0"}, True),
        ({"allowedModes": ["text"], "version": "2.0.0"}, False),
        ({"timeoutMs": 5000}, False),
    ],
)
def test_a_strict_diff_fails_for_a_break_without_a_major_bump(
    site: Any, fields: dict[str, Any], broken: bool
) -> None:
    site.enforcer()
    folder = site.tool("echo")
    site.run("build")
    rebuild(site, folder, **fields)
    assert site.run("diff").returncode == 0
    done = site.run("diff", "--strict")
    assert done.returncode == int(broken)
    assert ("echo: 1.0.0 -> 1.1.0, but this change requires a major bump" in done.stderr) is broken
    assert set(site.run_json("diff")["unannounced"]) == ({"echo"} if broken else set())


def test_a_strict_diff_fails_for_a_removed_tool(site: Any) -> None:
    site.tool("echo")
    site.tool("gone")
    site.run("build")
    assert site.run("build", "--deny", "gone").returncode == 0
    assert site.run("diff").returncode == 0
    done = site.run("diff", "--strict")
    assert done.returncode == 1
    assert "gone: removed, without a major bump of " in done.stderr


@pytest.mark.parametrize(
    ("before", "after", "announced"),
    [
        ("1.4.0", "2.0", True),
        ("1.4.0", "1.5.0", False),
        ("0.4.0", "0.5.0", True),
        ("0.4.0", "0.4.1", False),
        ("1!4", "1!5", False),
    ],
)
def test_a_major_bump_of_the_distribution_announces_a_removal(
    before: str, after: str, announced: bool
) -> None:
    def snapshot(version: str, *tool_ids: str) -> Snapshot:
        frozen: Any = SimpleNamespace(
            distribution="shop", distribution_version=version, manifest=SimpleNamespace(version="1.0.0")
        )
        return Snapshot("1", "", dict.fromkeys(tool_ids, frozen), {})

    old, new = snapshot(before, "gone"), snapshot(after, "new")
    assert set(unannounced_breaks(old, new)) == (set() if announced else {"gone"})


def test_diff_of_a_missing_file_gives_an_error_without_traceback(site: Any) -> None:
    done = site.run("diff", "a.json", "b.json")
    assert done.returncode == 1
    where = site.folder.parent
    assert done.stderr == f"Error: a.json: no registry found in {where}; run `jackfield build`\n"

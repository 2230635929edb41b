"""Variants: who may offer the same tool id, which contracts are compatible, and what the snapshot holds."""

from __future__ import annotations

from typing import Any

import pytest
from jackfield.contract.snapshot import Snapshot
from jackfield.settings import Settings
from jackfield_builder.findings import CheckCode
from jackfield_builder.pipeline import BuildResult, build
from jackfield_builder.snapshot_diff import compare_snapshots

QUERY = {"type": "string", "maxLength": 20, "description": "What to look for."}
GUIDE = "# look\n\nLooks something up.\n"


def parameters(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"query": QUERY, **properties}, "required": ["query"]}


def install(site: Any, name: str, **fields: Any) -> None:
    site.tool("look", distribution=name, schema={"parameters": parameters(), **fields}, guide=GUIDE)


def built(site: Any) -> BuildResult:
    return build(Settings(allow=("fab-*",), registry=site.folder.parent / "tool_registry.json"))


def frozen(site: Any) -> Snapshot:
    result = built(site)
    assert result.snapshot, result.findings
    return result.snapshot


def errors(site: Any) -> list[tuple[CheckCode, str]]:
    return [(each.code, each.message) for each in built(site).findings if each.is_error]


def test_the_snapshot_holds_every_variant_of_a_tool(site: Any) -> None:
    install(site, "fab-look")
    install(site, "fab-quick", variant="quick", parameters=parameters(limit={"type": "integer"}))
    install(site, "fab-careful", variant="careful")
    snapshot = frozen(site)
    assert list(snapshot.tools) == ["look"]
    assert list(snapshot.variants) == ["look:careful", "look:quick"]
    assert snapshot.tools["look"].distribution == "fab-look"
    assert snapshot.variants["look:quick"].distribution == "fab-quick"
    assert "limit" in snapshot.variants["look:quick"].manifest.parameters["properties"]


def test_a_registry_without_variants_does_not_mention_them(site: Any) -> None:
    install(site, "fab-look")
    wire = frozen(site).wire
    assert "variants" not in wire
    assert "variant" not in wire["tools"][0]


def test_a_variant_changes_the_version_of_the_registry_and_is_listed_as_a_change(site: Any) -> None:
    install(site, "fab-look")
    before = frozen(site)
    install(site, "fab-quick", variant="quick")
    after = frozen(site)
    assert before.version != after.version
    assert "look:quick" in {change.subject for change in compare_snapshots(before, after)}


def test_two_owners_without_a_declaration_stay_an_error(site: Any) -> None:
    install(site, "fab-look")
    install(site, "fab-other")
    install(site, "fab-quick", variant="quick")
    ((code, message),) = errors(site)
    assert code is CheckCode.TOOL_ID_TAKEN
    assert "fab-look 1.0.0 and by fab-other 1.0.0" in message


def test_two_variants_need_different_names(site: Any) -> None:
    install(site, "fab-look")
    install(site, "fab-one", variant="quick")
    install(site, "fab-two", variant="quick")
    ((code, message),) = errors(site)
    assert code is CheckCode.TOOL_ID_TAKEN
    assert message == "the variant 'quick' of 'look' is claimed by fab-one 1.0.0 and by fab-two 1.0.0"


def test_a_second_distribution_without_its_package_is_not_a_second_owner(site: Any) -> None:
    install(site, "fab-look")
    site.distribution("fab-quick", "1.0.0", {"jackfield.tools": {"look": "fab_gone"}})
    ((code, message),) = errors(site)
    assert code is CheckCode.PACKAGE_NOT_FOUND
    assert "'fab_gone'" in message


def test_every_distribution_without_its_package_is_reported(site: Any) -> None:
    for number in range(2):
        entry_points = {"jackfield.tools": {"look": f"fab_gone_{number}"}}
        site.distribution(f"fab-{number}", "1.0.0", entry_points)
    assert [code for code, _ in errors(site)] == [CheckCode.PACKAGE_NOT_FOUND] * 2


@pytest.mark.parametrize("count", [1, 2])
def test_variants_need_the_tool_that_they_are_variants_of(site: Any, count: int) -> None:
    for number in range(count):
        install(site, f"fab-{number}", variant=f"v{number}")
    ((code, message),) = errors(site)
    assert code is CheckCode.VARIANT_ALONE
    assert "'look'" in message


@pytest.mark.parametrize(
    ("fields", "difference"),
    [
        (
            {"parameters": {**parameters(mood={"type": "string"}), "required": ["query", "mood"]}},
            "required argument mood added",
        ),
        ({"parameters": parameters(query={"type": "string", "maxLength": 5})}, "query: maxLength 20 -> 5"),
        ({"parameters": parameters(query={"type": "integer"})}, "query takes integer instead of string"),
        ({"returns": {"type": "object", "properties": {}}}, "result no longer includes found"),
        ({"category": "action", "sideEffects": "writes"}, "sideEffects none -> writes"),
        ({"category": "retrieval"}, 'category "utility" -> "retrieval"'),
    ],
)
def test_the_build_says_how_an_incompatible_variant_differs(
    site: Any, fields: dict[str, Any], difference: str
) -> None:
    site.enforcer()
    returns = {"type": "object", "properties": {"found": {"type": "string"}}}
    common = {"category": "utility", "sideEffects": "none", "idempotent": True, "returns": returns}
    install(site, "fab-look", **common)
    install(site, "fab-quick", **{**common, "variant": "quick", **fields})
    ((code, message),) = errors(site)
    assert code is CheckCode.VARIANT_DIFFERS
    assert difference in message
    assert "compared with fab-look 1.0.0" in message


def test_a_tool_of_a_family_may_be_a_variant(site: Any) -> None:
    install(site, "fab-look")
    tool = {"category": "utility", "sideEffects": "none", "variant": "shared", "parameters": parameters()}
    site.family(
        "shop",
        {
            "schema.json": {"family": "shop", "tools": {"look": tool}},
            "guide.md": GUIDE,
            "handler.py": "async def look(args, ctx):\n    return {}\n",
        },
    )
    assert list(frozen(site).variants) == ["look:shared"]

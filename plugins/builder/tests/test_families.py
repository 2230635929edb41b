"""Families: several tools in one package, with shared files, defaults, definitions and hashes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from jackfield.contract.snapshot import Snapshot
from jackfield.registry.registry import Deployment, Registry, RegistryError, drift_for
from jackfield.settings import Settings
from jackfield_builder.discovery import Selection, discover
from jackfield_builder.findings import CheckCode
from jackfield_builder.pipeline import build
from jackfield_testkit.site_packages import SitePackages

SCHEMA: dict[str, Any] = {
    "family": "shop",
    "version": "2.0.0",
    "defaults": {"category": "retrieval", "timeoutMs": 5000},
    "$defs": {
        "order_id": {"type": "string", "pattern": "^o[0-9]+$", "description": "The order."},
        "line": {"type": "object", "properties": {"order": {"$ref": "#/$defs/order_id"}}},
        "unused": {"type": "string"},
    },
    "tools": {
        "get_order": {
            "parameters": {"required": ["order"], "properties": {"order": {"$ref": "#/$defs/order_id"}}},
            "returns": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        },
        "list_orders": {"version": "2.1.0", "timeoutMs": 900},
    },
}
GUIDE = """# get_order

Gets an order.

```json
{"order": "o1"}
```

# list_orders

Lists all orders.

```json
{}
```
"""
HANDLER = """from jackfield import ok
from fab_shop.orders import ORDERS


async def get_order(args, ctx):
    return ok([{"order": args["order"]}])


def list_orders(args, ctx):
    return ok(ORDERS)
"""
CANCEL = {
    "cancel_order/schema.json": {
        "category": "action",
        "sideEffects": "writes",
        "idempotent": True,
        "requiresConfirmation": True,
        "preview": "Cancel {order}?",
        "parameters": {"required": ["order"], "properties": {"order": {"$ref": "#/$defs/order_id"}}},
    },
    "cancel_order/guide.md": '# cancel_order\n\nCancels an order.\n\n```json\n{"order": "o1"}\n```\n',
    "cancel_order/handler.py": "from jackfield import ok\ndef execute(args, ctx): return ok(args)\n",
}
FILES = {
    "schema.json": SCHEMA,
    "guide.md": GUIDE,
    "handler.py": HANDLER,
    "orders.py": 'ORDERS = ["o1"]\n',
    **CANCEL,
}


def shop(site: SitePackages, **changed: Any) -> Path:
    """Install the shop; `handler__py=...` replaces a file, and other names replace fields of schema.json."""
    files = {name.replace("__", "."): text for name, text in changed.items() if "__" in name}
    fields = {name: value for name, value in changed.items() if "__" not in name}
    return site.family("shop", {**FILES, "schema.json": {**SCHEMA, **fields}, **files})


def frozen(site: SitePackages) -> Snapshot:
    site.enforcer()
    return Snapshot.load(site.frozen("fab-*"))


def findings(*, import_handlers: bool = False) -> list[tuple[str, str, str, str]]:
    built = build(Settings(allow=("fab-*",)), import_handlers=import_handlers)
    return sorted(
        (each.code.id, each.subject, each.file, each.path) for each in built.findings if each.is_error
    )


def test_each_tool_of_a_family_is_frozen_as_a_complete_tool(site: SitePackages) -> None:
    shop(site)
    tools = frozen(site).tools
    assert list(tools) == ["cancel_order", "get_order", "list_orders"]
    get, listed, cancel = tools["get_order"], tools["list_orders"], tools["cancel_order"]
    assert {tool.family for tool in tools.values()} == {"shop"}
    assert (get.handler, cancel.handler) == (
        "fab_shop.handler:get_order",
        "fab_shop.cancel_order.handler:execute",
    )
    assert get.documentation == '# get_order\n\nGets an order.\n\n```json\n{"order": "o1"}\n```\n'
    assert (listed.summary, listed.manifest.description) == ("Lists all orders.", "Lists all orders.")
    assert [tool.manifest.version for tool in (get, listed, cancel)] == ["2.0.0", "2.1.0", "2.0.0"]
    assert [tool.manifest.timeout_ms for tool in (get, listed, cancel)] == [5000, 900, 5000]
    assert (get.manifest.category, cancel.manifest.category) == ("retrieval", "action")


def test_only_the_definitions_that_a_tool_reaches_are_bundled(site: SitePackages) -> None:
    shop(site)
    tools = frozen(site).tools
    assert set(tools["get_order"].manifest.parameters["$defs"]) == {"order_id"}
    assert set((tools["get_order"].manifest.returns or {})["$defs"]) == {"line", "order_id"}
    assert set(tools["cancel_order"].manifest.parameters["$defs"]) == {"order_id"}
    assert "$defs" not in tools["list_orders"].manifest.parameters


def test_a_tool_outside_a_family_has_no_member_family(site: SitePackages) -> None:
    site.tool("echo")
    (tool,) = frozen(site).wire["tools"]
    assert "family" not in tool


@pytest.mark.parametrize(
    ("file", "code_changed"),
    [
        ("orders.py", True),
        ("cancel_order/handler.py", True),
        ("guide.md", False),
        ("schema.json", False),
        ("cancel_order/guide.md", False),
        ("cancel_order/schema.json", False),
    ],
)
def test_every_tool_drifts_with_any_file_of_the_family(
    site: SitePackages, file: str, code_changed: bool
) -> None:
    folder = shop(site)
    snapshot = frozen(site)
    for deployment in Deployment:
        drift = drift_for(snapshot, deployment)
        assert [drift.of_tool(tool) for tool in snapshot.tools.values()] == ["", "", ""]
    (folder / file).write_text((folder / file).read_text() + "\n")
    for deployment, differs in ((Deployment.DEVELOPMENT, True), (Deployment.PRODUCTION, code_changed)):
        drift = drift_for(snapshot, deployment)
        assert [bool(drift.of_tool(tool)) for tool in snapshot.tools.values()] == [differs] * 3


def test_a_reload_imports_the_shared_code_again(site: SitePackages) -> None:
    folder = shop(site)
    site.enforcer()
    registry = Registry.load(site.frozen("fab-*"), Deployment.DEVELOPMENT)
    (folder / "orders.py").write_text('ORDERS = ["o1", "o2 is new"]\n')
    site.frozen("fab-*")
    registry.reload()
    tool = registry.get("get_order")
    assert tool is not None
    assert tool.handler.__globals__["ORDERS"] == ["o1", "o2 is new"]


def test_a_failed_reload_leaves_the_names_in_a_package_as_they_were(site: SitePackages) -> None:
    folder = shop(site)
    # The package has a function with the name of the module that defines it.
    (folder / "__init__.py").write_text("from fab_shop.find import find\n")
    (folder / "find.py").write_text("def find():\n    return 'found'\n")
    site.enforcer()
    registry = Registry.load(site.frozen("fab-*"), Deployment.DEVELOPMENT)
    package = sys.modules["fab_shop"]
    find = vars(package)["find"]
    (folder / "orders.py").write_text("raise RuntimeError\n")
    site.frozen("fab-*")
    with pytest.raises(RegistryError):
        registry.reload()
    assert sys.modules["fab_shop"] is package
    assert vars(package)["find"] is find


@pytest.mark.parametrize(
    ("allow", "deny", "expected"),
    [
        (("shop",), (), ["cancel_order", "get_order", "list_orders"]),
        (("fab-shop",), (), ["cancel_order", "get_order", "list_orders"]),
        (("get_*",), (), ["get_order"]),
        (("fab-*",), ("cancel_order",), ["get_order", "list_orders"]),
        (("fab-*",), ("shop",), []),
    ],
)
def test_a_family_is_selected_by_its_name_its_distribution_or_its_tools(
    site: SitePackages, allow: tuple[str, ...], deny: tuple[str, ...], expected: list[str]
) -> None:
    shop(site)
    found = discover(Selection(allow, deny))
    assert [tool.name for tool in found.tools] == expected
    assert [each for each in found.findings if each.code is CheckCode.ALLOW_UNMATCHED] == []


def test_the_faults_of_a_family_that_is_switched_off_are_not_reported(site: SitePackages) -> None:
    shop(site, schema__json="{")
    assert discover(Selection(("fab-*",), ("fab-shop",))).findings == ()
    assert [each.code for each in discover(Selection(("fab-*",))).findings] == [CheckCode.BAD_JSON]


def test_two_distributions_may_not_claim_one_tool_id(site: SitePackages) -> None:
    shop(site)
    site.tool("get_order")
    assert ("JF002", "get_order", "", "") in findings()


BROKEN: dict[str, tuple[dict[str, Any], list[tuple[str, str, str, str]]]] = {
    "another_name": ({"family": "shops"}, [(CheckCode.FAMILY_NAME.id, "shop", "schema.json", "/family")]),
    "an_odd_name": ({"family": "Shop"}, [(CheckCode.FAMILY_NAME.id, "shop", "schema.json", "/family")]),
    "not_an_object": ({"tools": []}, [("JF303", "shop", "schema.json", "/tools")]),
    "unknown_field": ({"tool": {}}, [("JF302", "shop", "schema.json", "/tool")]),
    "forbidden_default": (
        {"defaults": {"category": "retrieval", "parameters": {}}},
        [(CheckCode.DEFAULT_NOT_ALLOWED.id, "shop", "schema.json", "/defaults/parameters")],
    ),
    "bad_default": (
        {"defaults": {"category": "retrieval", "timeoutMs": -1}},
        [
            ("JF305", "shop", "schema.json", "/defaults/timeoutMs"),
            ("JF405", "get_order", "schema.json", "/tools/get_order/latencyBudgetMs"),
            ("JF405", "cancel_order", "cancel_order/schema.json", "/latencyBudgetMs"),
        ],
    ),
    "bad_version": ({"version": "2.0"}, [("JF306", "shop", "schema.json", "/version")]),
    "in_folder_and_file": (
        {"tools": {**SCHEMA["tools"], "cancel_order": {}}},
        [(CheckCode.TOOL_TWICE.id, "shop", "schema.json", "/tools/cancel_order")],
    ),
    "bad_definition": (
        {"$defs": {**SCHEMA["$defs"], "order_id": {"type": "strin"}}},
        [("JF501", "shop", "schema.json", "/$defs/order_id/type")],
    ),
    "reference_out_of_the_definitions": (
        {"$defs": {**SCHEMA["$defs"], "line": {"$ref": "#/properties/order"}}},
        [
            ("JF505", "shop", "schema.json", "/$defs/line/$ref"),
            ("JF505", "shop", "schema.json", "/$defs/line/$ref"),
        ],
    ),
    "missing_definition": (
        {
            "tools": {
                **SCHEMA["tools"],
                "list_orders": {"parameters": {"properties": {"a": {"$ref": "#/$defs/b"}}}},
            }
        },
        [("JF505", "list_orders", "schema.json", "/tools/list_orders/parameters/properties/a/$ref")],
    ),
    "definition_twice": (
        {
            "tools": {
                **SCHEMA["tools"],
                "list_orders": {"parameters": {"$defs": {"line": {"type": "string"}}}},
            }
        },
        [
            (
                CheckCode.DEFINITION_TWICE.id,
                "list_orders",
                "schema.json",
                "/tools/list_orders/parameters/$defs",
            )
        ],
    ),
    "no_section": (
        {"guide__md": GUIDE.partition("# list_orders")[0]},
        [(CheckCode.NO_SECTION.id, "list_orders", "guide.md", "")],
    ),
    "stray_section": (
        {"guide__md": f"{GUIDE}\n# list_everything\n\nLists.\n"},
        [(CheckCode.STRAY_SECTION.id, "shop", "guide.md", "line 17")],
    ),
    "text_before": ({"guide__md": f"A shop.\n\n{GUIDE}"}, [("JF609", "shop", "guide.md", "line 1")]),
    "section_twice": ({"guide__md": f"{GUIDE}\n# get_order\n"}, [("JF609", "shop", "guide.md", "line 17")]),
    "bad_example": (
        {"guide__md": GUIDE.replace("{}", '{"a": 1}')},
        [("JF604", "list_orders", "guide.md", "line 14")],
    ),
    "no_guide": ({"guide__md": None}, [("JF102", "shop", "guide.md", "")]),
    "no_handler": ({"handler__py": None}, [("JF103", "shop", "handler.py", "")]),
    "no_function": (
        {"handler__py": "def get_order(args, ctx): ...\n"},
        [(CheckCode.NO_FUNCTION.id, "list_orders", "handler.py", "")],
    ),
    "bad_signature": (
        {"handler__py": f"{HANDLER}\ndef get_order(args): ...\n"},
        [("JF703", "get_order", "handler.py", "line 12")],
    ),
    "bad_syntax": ({"handler__py": "def ("}, [("JF701", "shop", "handler.py", "line 1")]),
    "failing_import": ({"handler__py": f"{HANDLER}\n1 / 0\n"}, [("JF704", "shop", "handler.py", "line 12")]),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_names_its_place_in_the_shared_files(site: SitePackages, fault: str) -> None:
    changed, expected = BROKEN[fault]
    shop(site, **changed)
    site.enforcer()
    assert findings(import_handlers=fault == "failing_import") == sorted(expected)


def test_a_shared_module_that_cannot_be_imported_is_named(site: SitePackages) -> None:
    shop(site, orders__py="ORDERS = [\n\nx = (\n")
    site.enforcer()
    assert findings(import_handlers=True) == [("JF704", "shop", "orders.py", "line 3")]


def test_a_similar_name_is_suggested(site: SitePackages) -> None:
    shop(
        site,
        guide__md=GUIDE.replace("# list_orders", "# list_order"),
        handler__py=HANDLER.replace("def list_orders", "def list_ordrs"),
    )
    messages = {each.code.id: each.message for each in build(Settings(allow=("fab-*",))).findings}
    assert messages["JF608"] == "no section starts with `# list_orders`; is it misspelled as `# list_order`?"
    assert messages["JF609"] == "'list_order'; did you mean 'list_orders'?"
    assert messages["JF706"].endswith("is named list_orders; is it misspelled as list_ordrs?")


def test_a_hint_names_the_function_and_the_heading(site: SitePackages) -> None:
    shop(
        site,
        guide__md=GUIDE.replace("# list_orders", "## list_orders"),
        handler__py=HANDLER.replace("def get_order(args, ctx)", "def get_order(order)"),
    )
    found = {each.code.id: each for each in build(Settings(allow=("fab-*",)), import_handlers=False).findings}
    assert found["JF703"].message == "get_order takes order"
    assert found["JF703"].hint == "define it as `async def get_order(args, ctx)`"
    assert found["JF608"].message.endswith(", but line 9 has it as a lower-level heading")
    assert "`# list_orders`" in found["JF608"].hint


def test_the_schema_of_a_single_tool_declared_as_a_family_is_one_finding(site: SitePackages) -> None:
    site.family(
        "shop",
        {"schema.json": {"category": "utility"}, "guide.md": "# Shop\n\nSells.\n", "handler.py": HANDLER},
    )
    (finding,) = build(Settings(allow=("fab-*",)), import_handlers=False).findings
    assert (finding.code, finding.path) == (CheckCode.FIELD_UNKNOWN, "/category")
    assert '[project.entry-points."jackfield.tools"]' in finding.hint


def test_a_definition_of_the_wrong_type_is_reported(site: SitePackages) -> None:
    shop(site, **{"$defs": {**SCHEMA["$defs"], "odd": 5}})
    site.enforcer()
    assert findings() == [("JF303", "shop", "schema.json", "/$defs/odd")]


def test_types_that_disagree_with_a_definition_name_the_definition(site: SitePackages) -> None:
    typed = """from dataclasses import dataclass
from typing import Annotated
from pydantic import Field
from fab_shop.orders import ORDERS

@dataclass
class Wanted:
    order: Annotated[str, Field(pattern="^x$")]

async def get_order(args: Wanted, ctx): ...
def list_orders(args, ctx): ...
"""
    shop(site, handler__py=typed)
    site.enforcer()
    assert findings(import_handlers=True) == [("JF516", "shop", "schema.json", "/$defs/order_id/pattern")]


@pytest.mark.parametrize(
    ("version", "file", "path"), [("2.0.0", "schema.json", "/version"), (..., "pyproject.toml", "")]
)
def test_a_missing_bump_names_the_file_with_the_version(
    site: SitePackages, version: Any, file: str, path: str
) -> None:
    site.enforcer()
    schema = shop(site, version=version) / "schema.json"
    assert site.run("build").returncode == 0
    schema.write_text(schema.read_text().replace("^o[0-9]+$", "^o1$"))
    found = [each for each in site.run_json("build")["findings"] if each["subject"] == "get_order"]
    assert [(each["code"], each["file"], each["path"] or "") for each in found] == [("JF901", file, path)]
    assert file in found[0]["hint"]
    assert "order: pattern" in found[0]["message"]


def test_a_family_without_tools_is_reported(site: SitePackages) -> None:
    site.family("shop", {"schema.json": {"family": "shop"}})
    assert (CheckCode.EMPTY_FAMILY.id, "shop", "schema.json", "/tools") in findings()


def test_a_family_whose_package_is_missing_is_reported(site: SitePackages) -> None:
    site.distribution("fab-gone", "1.0.0", {"jackfield.families": {"gone": "fab_gone", "odd": "fab_gone:x"}})
    assert findings() == [("JF005", "odd", "", ""), ("JF006", "gone", "", "")]


def test_a_family_of_folders_needs_no_shared_guide_or_handler(site: SitePackages) -> None:
    site.family("shop", {"schema.json": {**SCHEMA, "tools": ...}, **CANCEL})
    assert list(frozen(site).tools) == ["cancel_order"]


def test_the_tools_of_a_family_run(site: SitePackages) -> None:
    site.family("shop", {name: text for name, text in FILES.items() if name not in CANCEL})
    site.run("build")
    answer = site.run_json("call", "get_order", '{"order": "o7"}')["answer"]
    assert (answer["ok"], answer["data"]) == (True, [{"order": "o7"}])
    refused = site.run_json("call", "get_order", '{"order": "o7", "more": 1}')["answer"]
    assert refused["error"]["type"] == "VALIDATION"
    assert json.dumps(site.run_json("call", "list_orders", "{}")["answer"]["data"]) == '["o1"]'

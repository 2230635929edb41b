"""`new-tool --family`, `validate` of families and hook families, `validate --fix`, and the views."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jackfield.contract.manifest import family_schema
from jackfield_builder.mechanical_fixes import fix_schema
from jackfield_cli.family_scaffold import scaffold_family
from jackfield_cli.scaffold import ScaffoldError
from jackfield_testkit.site_packages import write_files


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return the package of a new family with two tools."""
    folder = scaffold_family("shop", ["get_order", "cancel-order"], tmp_path, {})
    return folder / "src" / "jackfield_family_shop"


def test_new_tool_creates_a_family_that_passes_every_check(site: Any, tmp_path: Path) -> None:
    done = site.run(
        "new-tool", "--family", "shop", "get_order", "cancel-order", "--in", str(tmp_path / "mine")
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "need an example" not in done.stdout
    report = site.run_json("validate", str(tmp_path / "mine" / "shop"))
    assert (report["ok"], report["findings"]) == (True, [])
    assert report["tools"] == ["cancel_order", "get_order"]
    files = [path for path in (tmp_path / "mine").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    left = [path for path in files if "__" in path.read_text()]
    assert left == []
    added = site.run("new-tool", "--family", "shop", "list_orders", "--in", str(tmp_path / "mine"))
    assert "Add examples of the new tools to the family's tests: list_orders." in added.stdout


def test_a_tool_is_added_to_a_family_with_typed_handlers_without_a_finding(site: Any, shop: Path) -> None:
    manifest = json.loads((shop / "schema.json").read_text())
    manifest["tools"] = {"get_order": {}}
    (shop / "schema.json").write_text(json.dumps(manifest))
    (shop / "guide.md").write_text('# get_order\n\nGets an order.\n\n```json\n{"order": "o1"}\n```\n')
    (shop / "handler.py").write_text(
        "from dataclasses import dataclass\nfrom jackfield import ok\n\n\n"
        "@dataclass\nclass Wanted:\n    order: str\n\n\n"
        "async def get_order(args: Wanted, ctx):\n    return ok({})\n"
    )
    done = site.run("new-tool", "--family", "shop", "list_orders", "--in", str(shop.parents[2]))
    assert (done.returncode, done.stderr) == (0, "")
    assert site.run_json("validate", str(shop.parents[1]))["tools"] == ["get_order", "list_orders"]


def test_a_tool_is_added_to_a_family_without_reformatting_it(shop: Path) -> None:
    before = (shop / "schema.json").read_text()
    (shop / "handler.py").write_text(
        (shop / "handler.py").read_text().replace("from jackfield import ok", "")
    )
    scaffold_family("shop", ["list_orders"], shop.parents[2], {})
    after = (shop / "schema.json").read_text()
    removed = [line for line in before.splitlines() if line not in after.splitlines()]
    assert removed == []
    assert list(json.loads(after)["tools"]) == ["get_order", "cancel_order", "list_orders"]
    assert (shop / "guide.md").read_text().count("# list_orders") == 1
    handler = (shop / "handler.py").read_text()
    assert handler.startswith("from jackfield import ok\n")
    assert "async def list_orders(args, ctx):" in handler


@pytest.mark.parametrize(
    ("family", "tool", "problem"),
    [
        ("shop", "get_order", "already has the tool 'get_order'"),
        ("shop", "taken", "taken by fab-taken"),
        ("shop", "import", "is a Python keyword"),
        ("Shop", "x", "is not a tool id"),
        ("other", "x", "does not declare the family 'other'"),
        ("odd", "x", "is not a family"),
    ],
)
def test_a_tool_that_cannot_be_added_changes_nothing(
    shop: Path, family: str, tool: str, problem: str
) -> None:
    folder = shop.parents[2]
    (folder / "odd").mkdir()
    (folder / "shop").rename(folder / "other") if family == "other" else None
    package = next(folder.rglob("jackfield_family_shop"))
    before = {path: path.read_bytes() for path in package.iterdir()}
    with pytest.raises(ScaffoldError, match=problem):
        scaffold_family(family, [tool], folder, {"taken": "fab-taken 1.0.0"})
    assert {path: path.read_bytes() for path in package.iterdir()} == before


def test_files_of_a_repository_are_added_and_existing_ones_are_kept(site: Any, tmp_path: Path) -> None:
    command = ("new-tool", "--family", "shop", "--repository", "--in", str(tmp_path))
    done = site.run(*command, "get_order")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"bash {tmp_path / 'shop' / 'check.sh'}" in done.stdout
    script = tmp_path / "shop" / "check.sh"
    workflow = tmp_path / "shop" / ".github" / "workflows" / "check.yml"
    assert "jackfield-family-shop" in script.read_text()
    script.write_text("# my own checks\n")
    workflow.unlink()

    assert site.run(*command, "list_orders").returncode == 0
    assert script.read_text() == "# my own checks\n"
    assert "run: bash check.sh" in workflow.read_text()


def test_several_names_need_a_family(site: Any) -> None:
    done = site.run("new-tool", "one", "two")
    assert done.returncode == 2
    assert "--family" in done.stderr


def test_schema_prints_the_schema_of_a_family(site: Any) -> None:
    assert json.loads(site.run("schema", "--family").stdout) == json.loads(json.dumps(family_schema()))


HOOK = {
    "pyproject.toml": '[project]\nname = "fab-hooked"\nversion = "1.0.0"\n'
    '[project.entry-points."jackfield.plugins"]\nmain = "fab_hooked"\n',
    "src/fab_hooked/__init__.py": "import json\nfrom jackfield import hookimpl\n"
    "from jackfield.offers import CapabilityOffer, ToolOffer\n\n"
    "SCHEMA = json.dumps({'category': 'utility', 'requires': ['clock'], 'sideEffects': 'none'})\n"
    "GUIDE = '# x\\n\\nSays the time.\\n\\n```json\\n{}\\n```\\n'\n\n"
    "@hookimpl\ndef jackfield_capabilities():\n    return [CapabilityOffer('clock', dict)]\n\n"
    "@hookimpl\ndef jackfield_tools():\n"
    "    return [ToolOffer(name, 'fab_hooked.tools', SCHEMA, GUIDE) for name in ('tick', 'tock')]\n",
    "src/fab_hooked/tools/__init__.py": "",
    "src/fab_hooked/tools/handler.py": "def execute(args, ctx): return None\n",
}


def test_validate_checks_the_tools_that_a_projects_plugin_offers(site: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "hooked", HOOK)
    report = site.run_json("validate", str(tmp_path / "hooked"))
    assert (report["ok"], report["tools"], report["findings"]) == (True, ["tick", "tock"], [])


def test_validate_reports_faults_of_offered_tools_and_projects_without_tools(
    site: Any, tmp_path: Path
) -> None:
    plugin = HOOK["src/fab_hooked/__init__.py"]
    write_files(
        tmp_path / "hooked", {**HOOK, "src/fab_hooked/__init__.py": plugin.replace("utility", "magic")}
    )
    found = site.run_json("validate", str(tmp_path / "hooked"))["findings"]
    assert {(each["code"], each["subject"]) for each in found} == {("JF304", "tick"), ("JF304", "tock")}
    write_files(tmp_path / "hooked", {"src/fab_hooked/__init__.py": ""})
    (finding,) = site.run_json("validate", str(tmp_path / "hooked"))["findings"]
    assert (finding["code"], finding["file"]) == ("JF005", "pyproject.toml")


BROKEN = """{
  "tool_id": "other",
  "version": "v1.2",
  "Category": "Utility",
  "side-effects": "None",   "idempotent": "TRUE",
  "timeout_ms": "500", "allowedModes": ["Text"],
  "parameters": {
    "properties": {
      "at": {"type": "String", "format": "dateTime", "min_length": 1, "description": "Mixed Case, kept",},
    },
  },
}
"""
FIXED = """{
  "toolId": "echo",
  "version": "1.2.0",
  "category": "utility",
  "sideEffects": "none",   "idempotent": true,
  "timeoutMs": 500, "allowedModes": ["text"],
  "parameters": {
    "properties": {
      "at": {"type": "string", "format": "date-time", "minLength": 1, "description": "Mixed Case, kept"}
    }
  }
}
"""


def test_mechanical_faults_are_fixed_and_nothing_else_changes() -> None:
    text, fixes = fix_schema(BROKEN, "echo")
    assert text == FIXED
    assert '/version: changed "v1.2" to "1.2.0"' in fixes
    assert fix_schema(FIXED, "echo") == (FIXED, [])


@pytest.mark.parametrize(
    "text",
    [
        '{"additionalProperties": true, "description": "utility"}',
        '{"sideEffects": "magic"}',
        '{"category": "utility", "Category": "action"}',
        '{"parameters": {"properties": {"Type": {"enum": ["String"]}, "min_length": {"default": "Array"}}}}',
        '{"version": "1.0.0.0"}',
        '{"a": 1 "b": 2}',
        "[1,]x",
        "{" * 200,
    ],
)
def test_what_has_no_single_right_correction_is_left_alone(text: str) -> None:
    assert fix_schema(text, "echo") == (text, [])


def test_validate_fix_shows_the_diff_and_writes_only_without_dry_run(
    site: Any, project: Any, tmp_path: Path
) -> None:
    folder = project("echo", schema=BROKEN.replace("other", "echo"))
    schema, guide = folder / "src" / "fab_echo" / "schema.json", folder / "src" / "fab_echo" / "guide.md"
    guide.write_bytes(b"\xef\xbb\xbf" + guide.read_bytes().replace(b'{"text": "hello"}', b"{}"))
    before = schema.read_bytes(), guide.read_bytes()
    shown = site.run("validate", "--fix", "--dry-run", str(folder))
    assert shown.returncode == 1
    assert '+  "category": "utility",' in shown.stderr
    assert (schema.read_bytes(), guide.read_bytes()) == before
    done = site.run("validate", "--fix", str(folder))
    assert "removed the byte order mark" in done.stderr
    assert done.returncode == 0, done.stderr
    assert schema.read_text() == FIXED
    again = site.run("validate", "--fix", str(folder))
    assert "@@" not in again.stderr


def test_the_shared_file_of_a_family_is_fixed(site: Any, shop: Path) -> None:
    schema = shop / "schema.json"
    good = schema.read_text()
    schema.write_text(good.replace('"utility" }', '"Utility", }').replace('"string"', '"String"'))
    assert site.run("validate", "--fix", str(shop.parents[1])).returncode == 0
    assert json.loads(schema.read_text()) == json.loads(good)


def test_the_views_of_the_registry_name_the_family(site: Any, shop: Path) -> None:
    files = {path.name: path.read_text() for path in shop.iterdir() if path.suffix != ".typed"}
    folder = site.family("shop", {**files, "handler.py": files["handler.py"]})
    site.tool("echo")
    assert "family shop in fab-shop 1.0.0" in site.run("build").stdout
    listed = {tool["toolId"]: tool["family"] for tool in site.run_json("tools")["tools"]}
    assert listed == {"cancel_order": "shop", "echo": None, "get_order": "shop"}
    assert "family" in site.run("tools", COLUMNS="200").stdout.splitlines()[0]
    assert "family               shop" in site.run("describe", "get_order").stdout
    (folder / "handler.py").write_text(files["handler.py"] + "# changed\n")
    site.run("build")
    changed = {(each["subject"], each["what"]) for each in site.run_json("diff")["changes"]}
    assert changed == {(tool, "code in the shop family changed") for tool in ("cancel_order", "get_order")}

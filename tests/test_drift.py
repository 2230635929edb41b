"""Drift: only frozen code runs, however it was installed."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from jackfield.contract.snapshot import Snapshot
from jackfield.registry.registry import Deployment, Registry, RegistryError
from jackfield.runtime import Runtime
from jackfield.settings import Settings, SettingsError
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_builder.snapshot_diff import compare_snapshots
from jackfield_cli.scaffold import scaffold

ROOT = Path(__file__).parents[1]
COMMAND_LINE = (ROOT / "kernel", ROOT / "plugins" / "builder", ROOT / "plugins" / "cli")
HANDLER = """from fab_shared import SAID
from jackfield import ok


async def execute(args, ctx):
    return ok({"words": len(args["text"].split()), "seconds": len(SAID)})
"""
PYPROJECT = """[project]
name = "{name}"
version = "{version}"
dependencies = {needs}
{entries}
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[tool.hatch.build.targets.wheel]
packages = {packages}
"""


def distribution(
    folder: Path,
    name: str,
    entries: str = "",
    *,
    version: str = "1.0",
    files: Sequence[str] = (),
    needs: Sequence[str] = (),
    direct: bool = False,
) -> Path:
    """Write what pip installs of a wheel besides files: metadata, RECORD, direct_url.json for a folder."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    required = "".join(f"Requires-Dist: {each}\n" for each in needs)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{required}")
    (info / "entry_points.txt").write_text(entries)
    (info / "RECORD").write_text("".join(f"{each},,\n" for each in [*files, f"{info.name}/METADATA"]))
    if direct:
        (info / "direct_url.json").write_text('{"url": "file:///projects/lib", "dir_info": {}}')
    return info


def tool_files(folder: Path, tool_id: str, scratch: Path, handler: str | None = None) -> Path:
    """Write the three files of a tool, from the template."""
    made = scaffold(tool_id, scratch, {})
    shutil.copytree(made / "src" / f"jackfield_tool_{tool_id}", folder)
    if handler:
        (folder / "handler.py").write_text(handler)
    return folder


@pytest.fixture
def pair(site: Any, tmp_path: Path) -> Path:
    """Install a wheel with tools `fab_a` and `fab_b` and a module that both import; return that module."""
    for tool_id in ("fab_a", "fab_b"):
        tool_files(site.folder / tool_id, tool_id, tmp_path / "scratch", HANDLER)
    shared: Path = site.folder / "fab_shared.py"
    shared.write_text('SAID = "frozen"\n')
    files = [
        "fab_a/__init__.py",
        "fab_a/handler.py",
        "fab_b/__init__.py",
        "fab_b/handler.py",
        "fab_shared.py",
    ]
    entries = "[jackfield.tools]\nfab_a = fab_a\nfab_b = fab_b\n"
    distribution(site.folder, "fab-pair", entries, files=files, needs=["fab-lib>=1", "fab-none"])
    return shared


@pytest.fixture
def library(site: Any) -> Path:
    """Install a library from a folder that `pair` depends on; return its module."""
    module: Path = site.folder / "fab_lib" / "__init__.py"
    module.parent.mkdir()
    module.write_text("VALUE = 1\n")
    files = ["fab_lib/__init__.py"]
    distribution(site.folder, "fab-lib", files=files, needs=["fab-deep; python_version > '3'"], direct=True)
    distribution(
        site.folder, "fab-deep", version="2.0", needs=["jackfield-kernel", "fab-test; extra == 'test'"]
    )
    distribution(site.folder, "fab-test", version="9.0")
    return module


def frozen(*allow: str, **said: Any) -> Settings:
    settings = Settings(allow=("fab-*", *allow), store="memory", **said)
    built = build(settings)
    assert built.snapshot, built.findings
    write_snapshot(built.snapshot, settings.registry)
    return settings


def changes(settings: Settings) -> list[str]:
    """Return what `jackfield check` would list."""
    built = build(settings)
    assert built.snapshot, built.findings
    stood = Snapshot.load(settings.registry)
    assert (stood.version == built.snapshot.version) is (stood.content_hash == built.snapshot.content_hash)
    return [f"{each.subject} {each.what}".strip() for each in compare_snapshots(stood, built.snapshot)]


def assert_withheld(settings: Settings, reason: str, tools: set[str]) -> None:
    """Assert that production withholds only these tools for this reason, and development refuses to start."""
    with pytest.raises(RegistryError, match=rf"fab_a .*{reason}.*; run `jackfield build`"):
        Registry.load(settings.registry)
    registry = Registry.load(settings.registry, Deployment.PRODUCTION)
    assert set(registry.withheld) == tools
    assert all(reason.replace("\\", "") in why for why in registry.withheld.values()), registry.withheld


def start(settings: Settings, deployment: Literal["development", "production"] = "production") -> Runtime:
    async def main() -> Runtime:
        runtime = await Runtime.start(replace(settings, deployment=deployment))
        await runtime.close()
        return runtime

    return asyncio.run(main())


@pytest.mark.usefixtures("library")
def test_a_shared_module_belongs_to_both_tools(pair: Path, site: Any) -> None:
    site.tool("fab_sound")
    settings = frozen()
    assert changes(settings) == []
    pair.write_text('SAID = "changed"\n')
    assert changes(settings) == ["fab-pair: fab_shared changed"]
    assert_withheld(
        settings, r"differs from the frozen version \(fab_shared, a part of fab-pair\)", {"fab_a", "fab_b"}
    )


@pytest.mark.usefixtures("library")
def test_the_package_of_one_tool_belongs_to_the_other_tool_of_its_distribution(pair: Path) -> None:
    settings = frozen()
    (pair.parent / "fab_b" / "handler.py").write_text(f"{HANDLER}# changed\n")
    registry = Registry.load(settings.registry, Deployment.PRODUCTION)
    assert registry.withheld == {
        "fab_a": "differs from the frozen version (fab_b, a part of fab-pair)",
        "fab_b": "differs from the frozen version (fab_b)",
    }


@pytest.mark.usefixtures("library")
def test_a_changed_guide_withholds_no_tool_in_production(pair: Path) -> None:
    settings = frozen()
    with (pair.parent / "fab_b" / "guide.md").open("a") as guide:
        guide.write("\n")
    assert Registry.load(settings.registry, Deployment.PRODUCTION).withheld == {}
    with pytest.raises(RegistryError, match="fab_b"):
        Registry.load(settings.registry)


@pytest.mark.usefixtures("pair")
def test_a_local_library_belongs_to_its_dependent_tools(library: Path, site: Any) -> None:
    site.tool("fab_sound")
    settings = frozen()
    library.write_text("VALUE = 2\n")
    assert changes(settings) == ["dependency fab-lib 1.0: fab_lib changed, used by fab-pair"]
    reason = r"depends on fab-lib, which differs from the frozen version \(fab_lib\)"
    assert_withheld(settings, reason, {"fab_a", "fab_b"})


@pytest.mark.usefixtures("pair", "library")
def test_another_version_of_an_indirect_dependency_withholds_the_tools(site: Any) -> None:
    settings = frozen()
    (site.folder / "fab_deep-2.0.dist-info").rename(site.folder / "fab_deep-2.1.dist-info")
    assert changes(settings) == ["dependency fab-deep 2.0 -> 2.1, used by fab-pair"]
    reason = r"depends on fab-deep, which differs from the frozen version \(2.0 -> 2.1\)"
    assert_withheld(settings, reason, {"fab_a", "fab_b"})
    shutil.rmtree(site.folder / "fab_deep-2.1.dist-info")
    assert_withheld(
        settings, r"fab-deep, which is no longer installed \(2.0 was frozen\)", {"fab_a", "fab_b"}
    )


@pytest.mark.usefixtures("pair", "library")
def test_a_dependency_from_another_origin_differs_from_the_frozen_one(site: Any) -> None:
    settings = frozen()
    (site.folder / "fab_deep-2.0.dist-info" / "direct_url.json").write_text('{"url": "file:///elsewhere"}')
    assert_withheld(settings, r"\(2.0 is no longer installed from a package index\)", {"fab_a", "fab_b"})


@pytest.mark.usefixtures("pair", "library")
def test_the_snapshot_lists_modules_and_dependencies_of_a_distribution() -> None:
    wire = Snapshot.load(frozen().registry).wire
    pair, lib, deep = (
        next(each for each in wire["distributions"] if each["name"] == name)
        for name in ("fab-pair", "fab-lib", "fab-deep")
    )
    assert [each["name"] for each in wire["distributions"]] == ["fab-deep", "fab-lib", "fab-pair"]
    assert (set(pair["modules"]), pair["dependencies"]) == ({"fab_shared"}, ["fab-deep", "fab-lib"])
    assert (set(lib), lib["version"], set(lib["modules"])) == (
        {"name", "version", "modules"},
        "1.0",
        {"fab_lib"},
    )
    assert deep == {"name": "fab-deep", "version": "2.0"}


@pytest.mark.usefixtures("pair", "library")
def test_a_reload_loads_the_frozen_shared_module_and_library(site: Any) -> None:
    (site.folder / "fab_shared.py").write_text("from fab_lib import VALUE\nSAID = 'x' * VALUE\n")
    settings = frozen()
    registry = Registry.load(settings.registry)
    (site.folder / "fab_lib" / "__init__.py").write_text("VALUE = 1234\n")
    frozen()
    registry.reload()
    handler = registry.tools["fab_a"].handler
    module = sys.modules["fab_a.handler"]
    assert handler.__module__ == "fab_a.handler"
    assert len(module.__dict__["SAID"]) == 1234


OFFERS = {
    "policies": "PolicyOffer('fab', Stage.ADMIT, 1, lambda s, v: Check(lambda call: None))",
    "stores": "StoreOffer('fab', lambda s: None)",
    "intent_handlers": "IntentHandlerOffer('FAB', lambda s, v: None)",
    "observers": "ObserverOffer('fab', lambda s, v: None)",
    "capabilities": "CapabilityOffer('fab', lambda s, v: object())",
    "transports": "TransportOffer('fab', lambda s: None)",
}


def plugin(site: Any, hook: str) -> Path:
    """Install a plugin with one offer and a library from a folder that it depends on; return its module."""
    (site.folder / "fab_plugin").mkdir()
    (site.folder / "fab_plugin" / "__init__.py").write_text(
        "from jackfield import hookimpl\nfrom jackfield.offers import *\n"
        "from jackfield.governance import SyncPolicy\nimport fab_rules\n\n"
        f"@hookimpl\ndef jackfield_{hook}():\n    return [{OFFERS[hook]}]\n"
    )
    rules: Path = site.folder / "fab_rules.py"
    rules.write_text("LIMIT = 1\n")
    files = ["fab_plugin/__init__.py"]
    entries = "[jackfield.plugins]\nmain = fab_plugin\n"
    distribution(site.folder, "fab-plugin", entries, files=files, needs=["fab-rules"])
    distribution(site.folder, "fab-rules", files=["fab_rules.py"], direct=True)
    return rules


@pytest.mark.parametrize("changed", ["plugin", "library"])
@pytest.mark.parametrize("hook", ["policies", "stores", "intent_handlers", "observers"])
def test_a_drifted_policy_or_observer_plugin_fails_at_startup(site: Any, hook: str, changed: str) -> None:
    site.tool("fab_sound")
    library = plugin(site, hook)
    settings = frozen()
    if changed == "plugin":
        with (site.folder / "fab_plugin" / "__init__.py").open("a") as file:
            file.write("raise AssertionError('changed code was run')\n")
        what = r"differs from the frozen version \(fab_plugin, a part of fab-plugin\)"
    else:
        library.write_text("raise AssertionError('changed code was run')\n")
        what = r"depends on fab-rules, which differs from the frozen version \(fab_rules\)"
    sys.modules.pop("fab_plugin"), sys.modules.pop("fab_rules")
    with pytest.raises(RegistryError, match=f"plugin fab-plugin {what}; run `jackfield build`"):
        start(settings, "development")
    kind = hook.replace("_", " ")
    with pytest.raises(RegistryError, match=rf"{what}; it provides {kind}, .*run `jackfield build`"):
        start(settings)


def test_production_runs_without_a_drifted_capability_and_its_tools(
    site: Any, caplog: pytest.LogCaptureFixture
) -> None:
    site.tool("fab_sound")
    site.tool("fab_needy", requires=["fab"])
    plugin(site, "capabilities").write_text("LIMIT = 2\n")
    settings = frozen(tables={"capabilities": {"fab": {}}})
    assert set(start(settings).registry.tools) == {"fab_sound", "fab_needy"}
    (site.folder / "fab_rules.py").write_text("raise AssertionError('changed code was run')\n")
    sys.modules.pop("fab_plugin"), sys.modules.pop("fab_rules")
    runtime = start(settings)
    assert set(runtime.registry.tools) == {"fab_sound"}
    reason = "plugin fab-plugin depends on fab-rules, which differs from the frozen version (fab_rules)"
    assert runtime.registry.withheld == {"fab_needy": f"needs fab: {reason}"}
    assert f"{reason}: the plugin is not loaded" in caplog.text


def test_a_drifted_provider_plugin_is_reported_by_name(site: Any) -> None:
    site.tool("fab_sound")
    library = plugin(site, "transports")
    settings = frozen(provider="fab")
    library.write_text("LIMIT = 3\n")
    runtime = start(settings)
    with pytest.raises(
        SettingsError, match="fab: plugin fab-plugin depends on fab-rules, which differs from"
    ):
        runtime.components.provider_unavailable_reason()


def test_the_tools_of_a_drifted_family_are_withheld_in_production(site: Any, tmp_path: Path) -> None:
    family = site.folder / "fab_family"
    family.mkdir()
    (family / "__init__.py").write_text(
        "from jackfield import hookimpl\nfrom jackfield.offers import ToolOffer\n\n@hookimpl\n"
        "def jackfield_tools():\n"
        "    return [ToolOffer(f'fab_{each}', f'fab_family.{each}') for each in ('a', 'b')]\n"
    )
    (family / "common.py").write_text('SAID = "frozen"\n')
    handler = HANDLER.replace("fab_shared", "fab_family.common")
    for each in ("a", "b"):
        tool_files(family / each, f"fab_{each}", tmp_path / "scratch", handler)
    entries = "[jackfield.plugins]\nmain = fab_family\n"
    distribution(site.folder, "fab-family", entries, files=["fab_family/__init__.py"])
    site.tool("fab_sound")
    settings = frozen()
    with (family / "a" / "guide.md").open("a") as guide:
        guide.write("\n")
    assert set(start(settings).registry.tools) == {"fab_a", "fab_b", "fab_sound"}

    (family / "common.py").write_text('SAID = "changed"\n')
    for name in [name for name in sys.modules if name.startswith("fab_family")]:
        del sys.modules[name]
    runtime = start(settings)
    assert set(runtime.registry.tools) == {"fab_sound"}
    reason = "differs from the frozen version (fab_family, a part of fab-family)"
    assert runtime.registry.withheld == {"fab_a": reason, "fab_b": reason}
    assert "fab_family" not in sys.modules, "changed code is not imported"


def test_linked_code_and_bytecode_without_source_count_as_code(site: Any, tmp_path: Path) -> None:
    package = site.tool("fab_a")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "more.py").write_text("A = 1\n")
    (package / "linked").symlink_to(tmp_path / "elsewhere")
    (package / "round").symlink_to(package)
    settings = frozen()
    assert Registry.load(settings.registry).withheld == {}
    (tmp_path / "elsewhere" / "more.py").write_text("A = 2\n")
    assert set(Registry.load(settings.registry, Deployment.PRODUCTION).withheld) == {"fab_a"}
    (tmp_path / "elsewhere" / "more.py").write_text("A = 1\n")
    (package / "handler.pyc").write_bytes(b"a cache, whatever is in it")
    assert Registry.load(settings.registry).withheld == {}
    (package / "extra.pyc").write_bytes(b"what an import would run")
    assert set(Registry.load(settings.registry, Deployment.PRODUCTION).withheld) == {"fab_a"}


def project(folder: Path, name: str, version: str, packages: list[str], **said: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(
        PYPROJECT.format(
            name=name,
            version=version,
            packages=json.dumps(packages),
            needs=said.get("needs", "[]"),
            entries=said.get("entries", ""),
        )
    )
    return folder


def write_projects(folder: Path) -> tuple[Path, Path]:
    """Write a project with two tools and a shared module, in the flat layout, and its library."""
    entries = '[project.entry-points."jackfield.tools"]\nfab_a = "fab_a"\nfab_b = "fab_b"\n'
    packages = ["fab_a", "fab_b", "fab_shared.py"]
    pair = project(folder / "pair", "fab-pair", "1.0", packages, entries=entries, needs='["fab-lib>=1"]')
    for tool_id in ("fab_a", "fab_b"):
        tool_files(pair / tool_id, tool_id, folder / "scratch", HANDLER)
    (pair / "fab_shared.py").write_text('from fab_lib import VALUE\n\nSAID = "x" * VALUE\n')
    (pair / "tests").mkdir()
    (pair / "tests" / "test_it.py").write_text("def test_it():\n    pass\n")
    lib = project(folder / "lib", "fab-lib", "1.0", ["src/fab_lib", "src/fab_space"])
    for module in ("fab_lib/__init__.py", "fab_space/inner/__init__.py", "fab_space/loose.py"):
        (lib / "src" / module).parent.mkdir(parents=True, exist_ok=True)
        (lib / "src" / module).write_text("VALUE = 1\n")
    return pair, lib


def test_real_installations_are_frozen_and_checked_the_same_way(
    environment: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, lib = write_projects(tmp_path / "projects")
    editable, wheels = environment("editable"), environment("wheels")
    for each in (editable, wheels):
        each.install_locked(*COMMAND_LINE)
        each.install_members(*COMMAND_LINE)
        each.install_members(pair, lib, editable=each is editable)
    first, second = editable.jackfield("build"), wheels.jackfield("build")
    assert first["version"] == second["version"]
    wire = json.loads((wheels.work / "tool_registry.json").read_text())
    parts = {each["name"]: sorted(each["modules"]) for each in wire["distributions"]}
    assert parts == {"fab-lib": ["fab_lib", "fab_space.inner", "fab_space.loose"], "fab-pair": ["fab_shared"]}

    (pair / "tests" / "test_it.py").write_text("")
    assert editable.jackfield("check")["upToDate"] is True, "tests are in no wheel"
    (lib / "src" / "fab_space" / "loose.py").write_text("VALUE = 2\n")
    told = editable.run("jackfield", "check", check=False)
    assert told.returncode == 1
    assert "dependency fab-lib 1.0: fab_space.loose changed, used by fab-pair" in told.stderr
    refused = editable.run("jackfield", "call", "fab_a", '{"text": "x"}', check=False)
    assert refused.returncode == 1
    assert (
        "fab_a depends on fab-lib, which differs from the frozen version (fab_space.loose)" in refused.stderr
    )
    monkeypatch.setenv("JACKFIELD_DEPLOYMENT", "production")
    for tool in editable.jackfield("tools")["tools"]:
        assert (
            tool["withheld"] == "depends on fab-lib, which differs from the frozen version (fab_space.loose)"
        )

    project(lib, "fab-lib", "1.1", ["src/fab_lib", "src/fab_space"])
    wheels.install_members(lib)
    for tool in wheels.jackfield("tools")["tools"]:
        assert tool["withheld"] == "depends on fab-lib, which differs from the frozen version (1.0 -> 1.1)"

"""From `pip install` to a frozen registry, in otherwise empty environments."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KERNEL, TESTKIT = ROOT / "kernel", (ROOT / "plugins" / "capability-types", ROOT / "plugins" / "testkit")
CLI = ROOT / "plugins" / "cli"
COMMAND_LINE = (KERNEL, ROOT / "plugins" / "builder", CLI)

Make = Callable[[str], Any]


def test_wheel_and_editable_installs_give_the_same_version(environment: Make, members: list[Path]) -> None:
    editable, wheels = environment("editable"), environment("wheels")
    for each, order in ((editable, members), (wheels, members[::-1])):
        each.install_locked(*order)
        each.install_members(*order, editable=each is editable)

    first, second = editable.jackfield("build"), wheels.jackfield("build")

    assert first["version"]
    assert first["version"] == second["version"]
    assert set(first["tools"]) >= {"extract_contacts", "format_datetime", "rank_results"}
    assert [finding for finding in first["findings"] if finding["severity"] == "error"] == []
    difference = wheels.run(
        "jackfield",
        "diff",
        str(editable.work / "tool_registry.json"),
        str(wheels.work / "tool_registry.json"),
    )
    assert "no difference" in difference.stdout


def test_installation_works_with_plain_pip(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    packages = [*map(str, COMMAND_LINE), str(ROOT / "tool-packages" / "format-datetime")]
    subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
    done = subprocess.run(
        [str(python.with_name("jackfield")), "build"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "1 tool, written to tool_registry.json" in done.stdout


def test_a_new_tool_installs_builds_and_passes_the_test_kit(environment: Make) -> None:
    fresh = environment("fresh")
    fresh.install_locked(*COMMAND_LINE, *TESTKIT)
    fresh.install_members(*COMMAND_LINE, *TESTKIT)
    nothing = fresh.run("jackfield", "build", check=False)
    assert nothing.returncode == 1
    assert "write one with `jackfield new-tool NAME`" in nothing.stderr
    # The command line comes from a wheel here, so the wheel must contain the template.
    fresh.run("jackfield", "new-tool", "book_table")
    package = fresh.work / "book-table"
    assert fresh.run("jackfield", "validate", str(package)).returncode == 0

    fresh.install_members(package)
    assert fresh.jackfield("build")["tools"] == {"book_table": "0.1.0"}
    assert fresh.jackfield("check")["upToDate"] is True

    kit = fresh.run("pytest", "-p", "no:cacheprovider", str(package))
    assert " passed" in kit.stdout
    assert "failed" not in kit.stdout


def test_a_new_family_installs_builds_and_passes_the_test_kit(environment: Make) -> None:
    fresh = environment("fresh")
    fresh.install_locked(*COMMAND_LINE, *TESTKIT)
    fresh.install_members(*COMMAND_LINE, *TESTKIT)
    fresh.run("jackfield", "new-tool", "--family", "shop", "get_order", "cancel_order")
    package = fresh.work / "shop"
    fresh.install_members(package)
    versions = {"cancel_order": "0.1.0", "get_order": "0.1.0"}
    assert fresh.jackfield("build")["tools"] == versions
    assert fresh.jackfield("check")["upToDate"] is True
    kit = fresh.run("pytest", "-p", "no:cacheprovider", str(package))
    assert "failed" not in kit.stdout

    # An added tool is found after a new installation; the entry point of the family stays the same.
    fresh.run("jackfield", "new-tool", "--family", "shop", "list_orders")
    fresh.install_members(package)
    assert fresh.jackfield("build")["tools"] == {**versions, "list_orders": "0.1.0"}
    kit = fresh.run("pytest", "-p", "no:cacheprovider", str(package), check=False)
    assert kit.returncode == 1
    assert "tools without examples: list_orders" in kit.stdout


def test_the_test_kit_fails_for_a_broken_new_tool(environment: Make) -> None:
    fresh = environment("fresh")
    fresh.install_locked(*COMMAND_LINE, *TESTKIT)
    fresh.install_members(*COMMAND_LINE, *TESTKIT)
    fresh.run("jackfield", "new-tool", "book_table")
    package = fresh.work / "book-table"
    handler = package / "src" / "jackfield_tool_book_table" / "handler.py"
    handler.write_text(handler.read_text().replace('{"words":', '{"wrods":'))
    fresh.install_members(package)
    kit = fresh.run("pytest", "-p", "no:cacheprovider", str(package), check=False)
    assert kit.returncode == 1
    assert "wrods" in kit.stdout


def test_a_source_distribution_includes_the_template(tmp_path: Path) -> None:
    uv = shutil.which("uv")
    assert uv
    # With the backend of the environment that runs the tests, activated or not.
    command = [uv, "build", "--python", sys.executable, "--no-build-isolation", "--sdist"]
    command += ["--out-dir", str(tmp_path), str(CLI)]
    subprocess.run(command, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path, filter="data")
    (template,) = tmp_path.glob("*/src/jackfield_cli/template")
    assert not template.is_symlink()
    assert {path.name for path in template.iterdir()} == {
        path.name for path in (ROOT / "tool-packages" / "_template").iterdir()
    }

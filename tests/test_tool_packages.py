"""The tools of this repository: one package each, named as the contract says."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(
    path.parent
    for path in (ROOT / "tool-packages").glob("*/pyproject.toml")
    if not path.parent.name.startswith("_")
)


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_tool_entry_point_and_distribution_have_the_same_name(folder: Path) -> None:
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    ((tool_id, package),) = project["entry-points"]["jackfield.tools"].items()
    home = folder / "src" / package
    assert json.loads((home / "schema.json").read_text("utf-8"))["toolId"] == tool_id
    assert (home / "guide.md").is_file()
    assert (home / "handler.py").is_file()
    assert project["name"] == f"jackfield-tool-{tool_id.replace('_', '-')}"
    assert folder.name == tool_id.replace("_", "-")


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_a_tool_depends_only_on_the_kernel_and_the_capability_types(folder: Path) -> None:
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    named = {re.split(r"[\[<>=!~; ]", each)[0] for each in project["dependencies"]}
    ours = {each for each in named if each.startswith("jackfield-")}
    assert "jackfield-kernel" in ours
    assert ours <= {"jackfield-kernel", "jackfield-capability-types"}

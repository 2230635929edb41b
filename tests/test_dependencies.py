"""Every distribution declares the distributions of this repository that it imports."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = sorted(
    path.parent
    for path in [ROOT / "kernel" / "pyproject.toml", *ROOT.glob("*/*/pyproject.toml")]
    if path.parent.name != "_template" and not path.parent.parent.name.startswith(".")
)


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_a_distribution_declares_every_sibling_it_imports(folder: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [each for group in project.get("optional-dependencies", {}).values() for each in group]
    declared = {re.split(r"[\[<>=!~; ]", each)[0] for each in [*project["dependencies"], *extras]}
    for path in (folder / "src").rglob("*.py"):
        for name in imported(path):
            owner = OWNERS.get(name)
            assert owner is None or owner in declared | {project["name"]}, f"{path}: {name}"


def imported(path: Path) -> set[str]:
    """Return the top-level packages that a module imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


OWNERS = {
    package.name: tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["name"]
    for folder in DISTRIBUTIONS
    # The distribution `jackfield` only has dependencies.
    for package in folder.glob("src/*")
}

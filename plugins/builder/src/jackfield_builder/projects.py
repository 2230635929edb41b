"""Tool packages that are not installed, found in the folder where they are written."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from jackfield.distributions import TOOLS, Distribution, normalised

from jackfield_builder.findings import Code, Finding
from jackfield_builder.sources import ToolSource


class NoProjectError(Exception):
    """A path that holds no tool package, and what was expected there."""


def find(path: Path) -> list[Path]:
    """The projects at a path: itself, or the folders in it."""
    if (path / "pyproject.toml").is_file():
        return [path]
    if not path.is_dir():
        problem = "a file; name the folder of its project" if path.exists() else "no such folder"
        raise NoProjectError(f"{path}: {problem}")
    projects = sorted(
        child
        for child in path.iterdir()
        if not child.name.startswith(("_", ".")) and (child / "pyproject.toml").is_file()
    )
    if not projects:
        raise NoProjectError(f"{path}: neither it nor a folder in it has a pyproject.toml")
    return projects


def sources_in(project: Path) -> tuple[list[ToolSource], list[Finding]]:
    """The tools a project announces in its pyproject.toml."""
    unnamed = Distribution(project.name, "", str(project))
    try:
        document = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        hint = "mend pyproject.toml at that place"
        return [], [Finding(Code.BROKEN_METADATA, str(error), unnamed, file="pyproject.toml", hint=hint)]
    table = _table(document.get("project"))
    version = str(table.get("version", ""))
    distribution = Distribution(normalised(str(table.get("name", project.name))), version, str(project))
    announced = _table(_table(table.get("entry-points")).get(TOOLS))
    if not announced:
        message = f'there is no [project.entry-points."{TOOLS}"]'
        hint = 'add it with one line, tool_id = "import_package"'
        return [], [Finding(Code.BAD_ENTRY_POINT, message, distribution, file="pyproject.toml", hint=hint)]
    found: list[ToolSource] = []
    findings: list[Finding] = []
    for tool_id, package in announced.items():
        where = f"/project/entry-points/{TOOLS}/{tool_id}"
        if not isinstance(package, str) or not all(part.isidentifier() for part in package.split(".")):
            message = f"{tool_id!r} points at {package!r}"
            findings.append(
                Finding(Code.BAD_ENTRY_POINT, message, distribution, tool_id, "pyproject.toml", where)
            )
        elif (root := _root(project, package)) is None:
            message = f"neither src/ nor the project itself has the package {package!r}"
            findings.append(
                Finding(Code.PACKAGE_NOT_FOUND, message, distribution, tool_id, "pyproject.toml", where)
            )
        else:
            folder = root.joinpath(*package.split("."))
            found.append(
                ToolSource(tool_id, package, folder, distribution, import_path=(str(root.resolve()),))
            )
    return found, findings


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _root(project: Path, package: str) -> Path | None:
    for root in (project / "src", project):
        if root.joinpath(*package.split(".")).is_dir():
            return root
    return None

"""Locates the files of tools, installed or in a project folder, without importing them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jackfield.distributions import TOOLS, Distribution, EntryPoint, locate, normalised
from jackfield.offers import ToolOffer
from jackfield.plugins import RegisteredOffer

from jackfield_builder.findings import CheckCode, Finding

_PYPROJECT = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class ToolSource:
    """A declared tool: its id, its package and the package's folder, and the distribution."""

    tool_id: str
    package: str
    folder: Path
    distribution: Distribution
    schema: str | None = None
    guide: str | None = None
    import_path: tuple[str, ...] = ()
    """Folders to add to `sys.path` to import the handler of a package that is not installed."""
    module: str = "handler"
    """The handler's module, relative to the package."""
    function: str = "execute"
    """The handler's function in that module."""

    @property
    def handler(self) -> str:
        """The handler's object reference, `module:function`, as in the snapshot."""
        return f"{self.package}.{self.module}:{self.function}"


def locate_tools(
    tools: Iterable[EntryPoint], offered: Iterable[RegisteredOffer]
) -> tuple[list[ToolSource], list[Finding]]:
    """Locate the tools of entry points and of plugins' offers; each id has one owner."""
    found: dict[str, ToolSource] = {}
    findings: list[Finding] = []
    declared = [(tool.name, tool.value, tool.distribution, None) for tool in tools] + [
        (each.offer.tool_id, each.offer.package, each.plugin.distribution, each.offer)
        for each in offered
        if isinstance(each.offer, ToolOffer)
    ]
    for tool_id, package, distribution, offer in declared:
        if tool_id in found:
            owners = f"{found[tool_id].distribution} and by {distribution}"
            findings.append(
                Finding(CheckCode.TOOL_ID_TAKEN, f"{tool_id!r} is claimed by {owners}", distribution, tool_id)
            )
        elif not _is_package_name(package):
            message = f"{tool_id!r} points at {package!r}"
            findings.append(Finding(CheckCode.BAD_ENTRY_POINT, message, distribution, tool_id))
        elif (folder := locate(package)) is None:
            message = f"{package!r} is not a package on this interpreter's path"
            findings.append(Finding(CheckCode.PACKAGE_NOT_FOUND, message, distribution, tool_id))
        else:
            texts = (offer.schema, offer.guide) if offer else (None, None)
            found[tool_id] = ToolSource(tool_id, package, folder, distribution, *texts)
    return list(found.values()), findings


class NoProjectError(Exception):
    """A path without a tool package; the message says what was expected."""


def find_projects(path: Path) -> list[Path]:
    """Return the projects at a path: the folder itself, or the folders in it."""
    if (path / _PYPROJECT).is_file():
        return [path]
    if not path.is_dir():
        problem = "this is a file; name the folder of its project" if path.exists() else "no such folder"
        raise NoProjectError(f"{path}: {problem}")
    projects = sorted(
        child
        for child in path.iterdir()
        if not child.name.startswith(("_", ".")) and (child / _PYPROJECT).is_file()
    )
    if not projects:
        raise NoProjectError(f"{path}: neither this folder nor a folder in it has a {_PYPROJECT}")
    return projects


def locate_project_tools(project: Path) -> tuple[list[ToolSource], list[Finding]]:
    """Locate the tools that a project declares in its pyproject.toml."""
    try:
        document = tomllib.loads((project / _PYPROJECT).read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        unnamed = Distribution(project.name, "", str(project))
        hint = f"fix {_PYPROJECT} at that place"
        return [], [Finding(CheckCode.BROKEN_METADATA, str(error), unnamed, file=_PYPROJECT, hint=hint)]
    table = _table(document.get("project"))
    version = str(table.get("version", ""))
    distribution = Distribution(normalised(str(table.get("name", project.name))), version, str(project))
    declared = _table(_table(table.get("entry-points")).get(TOOLS))
    if not declared:
        message = f'there is no [project.entry-points."{TOOLS}"]'
        hint = 'add it with one line, tool_id = "import_package"'
        return [], [Finding(CheckCode.BAD_ENTRY_POINT, message, distribution, file=_PYPROJECT, hint=hint)]
    found: list[ToolSource] = []
    findings: list[Finding] = []
    for tool_id, package in declared.items():
        where = f"/project/entry-points/{TOOLS}/{tool_id}"
        if not isinstance(package, str) or not _is_package_name(package):
            message = f"{tool_id!r} points at {package!r}"
            findings.append(
                Finding(CheckCode.BAD_ENTRY_POINT, message, distribution, tool_id, _PYPROJECT, where)
            )
        elif (root := _package_root(project, package)) is None:
            message = f"neither src/ nor the project itself has the package {package!r}"
            findings.append(
                Finding(CheckCode.PACKAGE_NOT_FOUND, message, distribution, tool_id, _PYPROJECT, where)
            )
        else:
            folder = root.joinpath(*package.split("."))
            found.append(
                ToolSource(tool_id, package, folder, distribution, import_path=(str(root.resolve()),))
            )
    return found, findings


def _is_package_name(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _package_root(project: Path, package: str) -> Path | None:
    for root in (project / "src", project):
        if root.joinpath(*package.split(".")).is_dir():
            return root
    return None

"""Locates the files of tools, installed or in a project folder, without importing them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from jackfield.distributions import FAMILIES, PLUGINS, TOOLS, Distribution, EntryPoint, locate, normalised
from jackfield.offers import ListedTool, ToolOffer
from jackfield.plugins import Plugins, RegisteredOffer

from jackfield_builder.findings import CheckCode, Finding
from jackfield_builder.implied_fields import is_version
from jackfield_builder.tool_families import Family, read_family

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
    family: Family | None = None
    origin: Mapping[str, Any] | None = None
    """The definition of a tool that another system provides."""

    @property
    def handler(self) -> str:
        """The handler's object reference, `module:function`, as in the snapshot."""
        return f"{self.package}.{self.module}:{self.function}"


def locate_tools(
    tools: Iterable[EntryPoint], offered: Iterable[RegisteredOffer], families: Iterable[Family] = ()
) -> tuple[list[ToolSource], list[Finding]]:
    """Locate the tools of entry points, families and plugins' offers; each id has one owner."""
    by_name = {(family.distribution.name, family.name): family for family in families}
    in_families, tools = _partition(tools)
    found: dict[str, ToolSource] = {
        tool.name: family_tool(by_name[tool.distribution.name, tool.family], tool.name)
        for tool in in_families
    }
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
            hint = "give ToolOffer the package, without an attribute" if offer else ""
            findings.append(Finding(CheckCode.BAD_ENTRY_POINT, message, distribution, tool_id, hint=hint))
        elif (folder := locate(package)) is None:
            message = f"{package!r} is not a package on this interpreter's path"
            findings.append(Finding(CheckCode.PACKAGE_NOT_FOUND, message, distribution, tool_id))
        else:
            texts = (offer.schema, offer.guide) if offer else (None, None)
            origin = offer.origin if isinstance(offer, ListedTool) else None
            found[tool_id] = ToolSource(tool_id, package, folder, distribution, *texts, origin=origin)
    return list(found.values()), findings


def _partition(tools: Iterable[EntryPoint]) -> tuple[list[EntryPoint], list[EntryPoint]]:
    """Return the tools of families, and those with an entry point of their own."""
    listed = list(tools)
    return [tool for tool in listed if tool.family], [tool for tool in listed if not tool.family]


def family_tool(family: Family, tool_id: str) -> ToolSource:
    """Return a tool of a family; its package is the family's, so its hashes cover the shared code."""
    alone = tool_id in family.folders
    return ToolSource(
        tool_id,
        family.package,
        family.folder,
        family.distribution,
        import_path=family.import_path,
        module=f"{tool_id}.handler" if alone else "handler",
        function="execute" if alone else tool_id,
        family=family,
    )


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


def locate_family(entry: EntryPoint) -> Family | Finding:
    """Read the family of an entry point, or return why it cannot be found."""
    package, distribution = entry.value, entry.distribution
    if not _is_package_name(package):
        message = f"{entry.name!r} points at {package!r}"
        hint = 'write the entry point as `family = "import_package"`, without an attribute'
        return Finding(CheckCode.BAD_ENTRY_POINT, message, distribution, entry.name, hint=hint)
    if (folder := locate(package)) is None:
        message = f"{package!r} is not a package on this interpreter's path"
        return Finding(CheckCode.PACKAGE_NOT_FOUND, message, distribution, entry.name)
    return read_family(entry.name, package, folder, distribution)


class Project(NamedTuple):
    """The source of a distribution that is not installed: its tools, its plugins, and what is wrong."""

    distribution: Distribution
    tools: list[ToolSource]
    families: list[Family]
    plugins: list[EntryPoint]
    import_path: tuple[str, ...]
    findings: list[Finding]
    groups: tuple[str, ...] = ()
    """The groups of the project's entry points."""


def locate_project(project: Path) -> Project:
    """Locate the tools, families and plugins that a project declares in its pyproject.toml."""
    try:
        document = tomllib.loads((project / _PYPROJECT).read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        unnamed = Distribution(project.name, "", str(project))
        hint = f"fix {_PYPROJECT} at that place"
        finding = Finding(CheckCode.BROKEN_METADATA, str(error), unnamed, file=_PYPROJECT, hint=hint)
        return Project(unnamed, [], [], [], (), [finding])
    table = _table(document.get("project"))
    version, faults = str(table.get("version", "")), []
    distribution = Distribution(normalised(str(table.get("name", project.name))), version, str(project))
    if version and not is_version(version):
        hint = "write a version that Python packages can have, e.g. 1.0.0"
        message = f"{version!r} is not a version"
        where = "/project/version"
        faults = [Finding(CheckCode.BROKEN_METADATA, message, distribution, "", _PYPROJECT, where, hint)]
        distribution = distribution._replace(version="")
    groups = _table(table.get("entry-points"))
    roots = tuple(str(root.resolve()) for root in _roots(project))
    found = Project(distribution, [], [], [], roots, faults, tuple(groups))
    for name, value in _table(groups.get(PLUGINS)).items():
        found.plugins.append(EntryPoint(PLUGINS, name, str(value), distribution))
    for group in (TOOLS, FAMILIES):
        for name, package in _table(groups.get(group)).items():
            _locate_in_project(found, project, EntryPoint(group, name, str(package), distribution))
    return found


def locate_offered_tools(project: Project, plugins: Plugins) -> None:
    """Add the tools that the project's plugins offer; report a project without any tool.

    The plugins are loaded from the project, so its import path has to be on `sys.path`.
    """
    offered = [
        each for each in plugins.of("jackfield_tools") if each.plugin.distribution == project.distribution
    ]
    located, findings = locate_tools((), offered)
    project.tools.extend(replace(tool, import_path=project.import_path) for tool in located)
    project.findings.extend(findings)
    broken = any(fault.plugin.distribution == project.distribution for fault in plugins.faults)
    if not project.tools and not project.findings and not broken:
        message = f'there is no [project.entry-points."{TOOLS}"], and no plugin of the project offers a tool'
        if similar := _similar_group(project.groups):
            message += f"; did you mean {similar[1]!r} where it says {similar[0]!r}?"
        hint = f'add it with one line, tool_id = "import_package"; for a family, use "{FAMILIES}"'
        project.findings.append(
            Finding(CheckCode.BAD_ENTRY_POINT, message, project.distribution, file=_PYPROJECT, hint=hint)
        )


def _similar_group(groups: Iterable[str]) -> tuple[str, str] | None:
    """Return a group that is spelled like one of Jackfield's, and the group that is probably meant."""
    for group in groups:
        if group not in (TOOLS, FAMILIES, PLUGINS):
            for close in get_close_matches(group, (TOOLS, FAMILIES, PLUGINS), 1):
                return group, close
    return None


def _locate_in_project(found: Project, project: Path, entry: EntryPoint) -> None:
    group, name, package, distribution, _family = entry
    where = f"/project/entry-points/{group}/{name}"
    if not _is_package_name(package):
        message = f"{name!r} points at {package!r}"
        hint = f'write it as `{name} = "{package.partition(":")[0]}"`' if ":" in package else ""
        found.findings.append(
            Finding(CheckCode.BAD_ENTRY_POINT, message, distribution, name, _PYPROJECT, where, hint)
        )
    elif (root := _package_root(project, package)) is None:
        message = f"neither src/ nor the project itself has the package {package!r}"
        hint = "correct the name of the package, or move the package into src/ or the project's folder"
        found.findings.append(
            Finding(CheckCode.PACKAGE_NOT_FOUND, message, distribution, name, _PYPROJECT, where, hint)
        )
    else:
        folder = root.joinpath(*package.split("."))
        import_path = (str(root.resolve()),)
        if group == TOOLS:
            found.tools.append(ToolSource(name, package, folder, distribution, import_path=import_path))
        else:
            family = read_family(name, package, folder, distribution, import_path)
            found.families.append(family)
            found.findings.extend(family.findings)
            found.tools.extend(family_tool(family, tool_id) for tool_id in family.tool_ids)


def _is_package_name(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _roots(project: Path) -> list[Path]:
    return [root for root in (project / "src", project) if root.is_dir()]


def _package_root(project: Path, package: str) -> Path | None:
    return next((root for root in _roots(project) if root.joinpath(*package.split(".")).is_dir()), None)

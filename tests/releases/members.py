"""The distributions of this repository, read from their pyproject.toml and from git."""

from __future__ import annotations

import re
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements.lock"


@dataclass(frozen=True)
class WorkspaceMember:
    """A distribution of this repository: its folder and its pyproject.toml."""

    folder: Path

    @cached_property
    def document(self) -> dict[str, Any]:
        """The parsed pyproject.toml."""
        return tomllib.loads((self.folder / "pyproject.toml").read_text("utf-8"))

    @property
    def project(self) -> dict[str, Any]:
        """The table `project`."""
        table: dict[str, Any] = self.document["project"]
        return table

    @property
    def name(self) -> str:
        """The distribution's name."""
        return str(self.project["name"])

    @property
    def stem(self) -> str:
        """The prefix of the names of its archives."""
        return self.name.replace("-", "_")

    @property
    def has_code(self) -> bool:
        """Whether it installs an import package; a meta distribution has only dependencies."""
        return "packages" in self.document["tool"]["hatch"]["build"]["targets"]["wheel"]

    @property
    def package(self) -> str:
        """The one import package it installs."""
        (packed,) = self.document["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        return PurePosixPath(packed).name

    @property
    def version(self) -> str:
        """Its version; a tool's version is in its schema.json."""
        if "version" in self.project:
            return str(self.project["version"])
        source = self.document["tool"]["hatch"]["version"]
        found = re.search(source["pattern"], (self.folder / source["path"]).read_text("utf-8"))
        assert found, f"{self.folder}: no version in {source['path']}"
        return str(found["version"])

    @property
    def extras(self) -> dict[str, list[Requirement]]:
        """The requirements of each extra."""
        listed: dict[str, list[str]] = self.project.get("optional-dependencies", {})
        return {name: list(map(Requirement, each)) for name, each in listed.items()}

    @property
    def dependencies(self) -> list[Requirement]:
        """The requirements without extras."""
        return list(map(Requirement, self.project["dependencies"]))

    @property
    def entry_points(self) -> list[str]:
        """The targets of its entry points and scripts."""
        groups = [*self.project.get("entry-points", {}).values(), self.project.get("scripts", {})]
        return [target for group in groups for target in group.values()]

    @property
    def borrowed_files(self) -> dict[str, Path]:
        """The files of other members that its source distribution contains, by their names there."""
        targets = self.document["tool"]["hatch"]["build"]["targets"]
        included: dict[str, str] = targets.get("sdist", {}).get("force-include", {})
        return {name: self.folder / source for source, name in included.items()}

    def files(self) -> set[str]:
        """Return its files, tracked by git or not ignored; a link to a folder is replaced by its files."""
        own = {
            name
            for path in _git_files(self.folder)
            for name in _resolve_link(self.folder / path, PurePosixPath(path))
        }
        return own | set(self.borrowed_files)

    def package_files(self) -> set[str]:
        """Return the files that belong in the wheel, with their paths there."""
        if not self.has_code:
            return set()
        return {name.removeprefix("src/") for name in self.files() if name.startswith(f"src/{self.package}/")}


def members() -> list[WorkspaceMember]:
    """Return every distribution of this repository."""
    projects = [ROOT / "kernel" / "pyproject.toml"]
    for group in ("plugins", "tool-packages"):
        projects += sorted((ROOT / group).glob("*/pyproject.toml"))
    return [WorkspaceMember(path.parent) for path in projects if not path.parent.name.startswith("_")]


def _resolve_link(path: Path, name: PurePosixPath) -> set[str]:
    if not path.is_symlink():
        return {str(name)}
    return {str(name / inner) for inner in _git_files(path.resolve())}


def _git_files(folder: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    # git still lists a deleted file until the deletion is committed.
    return [path for path in listed.split("\0") if path and (folder / path).exists()]

"""The distributions of this repository, as their pyproject.toml and git describe them."""

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
class Member:
    """One distribution: its folder and what its pyproject.toml says."""

    folder: Path

    @cached_property
    def document(self) -> dict[str, Any]:
        """The whole pyproject.toml."""
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
        """How the names of its files begin."""
        return self.name.replace("-", "_")

    @property
    def has_code(self) -> bool:
        """Whether it installs an import package, rather than only bringing other distributions."""
        return "packages" in self.document["tool"]["hatch"]["build"]["targets"]["wheel"]

    @property
    def package(self) -> str:
        """The one import package it installs."""
        (packed,) = self.document["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        return PurePosixPath(packed).name

    @property
    def version(self) -> str:
        """Its version, which a tool keeps in its schema.json."""
        if "version" in self.project:
            return str(self.project["version"])
        source = self.document["tool"]["hatch"]["version"]
        found = re.search(source["pattern"], (self.folder / source["path"]).read_text("utf-8"))
        assert found, f"{self.folder}: no version in {source['path']}"
        return str(found["version"])

    @property
    def extras(self) -> dict[str, list[Requirement]]:
        """What each extra asks for."""
        listed: dict[str, list[str]] = self.project.get("optional-dependencies", {})
        return {name: list(map(Requirement, each)) for name, each in listed.items()}

    @property
    def dependencies(self) -> list[Requirement]:
        """What it always asks for."""
        return list(map(Requirement, self.project["dependencies"]))

    @property
    def entry_points(self) -> list[str]:
        """What its entry points and commands name."""
        groups = [*self.project.get("entry-points", {}).values(), self.project.get("scripts", {})]
        return [target for group in groups for target in group.values()]

    def files(self) -> set[str]:
        """What git has of it, or would take; a link to a folder counts as what is in that folder."""
        return {
            name
            for path in _known_to_git(self.folder)
            for name in _followed(self.folder / path, PurePosixPath(path))
        }

    def package_files(self) -> set[str]:
        """What of that belongs into the wheel, as it is called there."""
        if not self.has_code:
            return set()
        return {name.removeprefix("src/") for name in self.files() if name.startswith(f"src/{self.package}/")}


def members() -> list[Member]:
    """Every distribution of this repository."""
    projects = [ROOT / "kernel" / "pyproject.toml"]
    for group in ("plugins", "tool-packages"):
        projects += sorted((ROOT / group).glob("*/pyproject.toml"))
    return [Member(path.parent) for path in projects if not path.parent.name.startswith("_")]


def _followed(path: Path, name: PurePosixPath) -> set[str]:
    if not path.is_symlink():
        return {str(name)}
    return {str(name / inner) for inner in _known_to_git(path.resolve())}


def _known_to_git(folder: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    # A file that was deleted and not yet committed is still listed.
    return [path for path in listed.split("\0") if path and (folder / path).exists()]

"""What an installation names: distributions, and the entry points by which they take part."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

TOOLS = "jackfield.tools"
PLUGINS = "jackfield.plugins"

KERNEL = "jackfield-kernel"
"""The distribution of this kernel. A registry identifies it by its API version, not by its files."""

_VERSION = re.compile(r"^Version:[ \t]*(\S+)", re.MULTILINE)


class Distribution(NamedTuple):
    """An installed distribution, or one that is looked at where it lies."""

    name: str
    version: str
    location: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


class EntryPoint(NamedTuple):
    """One entry point: a name, what it points at, and who installed it."""

    group: str
    name: str
    value: str
    distribution: Distribution

    def matches(self, pattern: str) -> bool:
        """Whether a pattern means this entry, by its own name or by its distribution's."""
        return fnmatchcase(self.name, pattern) or fnmatchcase(self.distribution.name, normalised(pattern))


class Metadata(NamedTuple):
    """An installed distribution as the name of its metadata folder describes it."""

    version: str
    folder: str

    @property
    def is_from_index(self) -> bool:
        """Whether name and version identify its files.

        They do not for what was installed from a folder, an archive or a repository: installers then leave
        `direct_url.json` (PEP 610). Old editable installs leave an egg-info in the source tree instead.
        """
        if self.folder.endswith(".egg-info"):
            return os.path.exists(f"{self.folder}/installed-files.txt") or os.path.isfile(self.folder)  # noqa: PTH110, PTH113
        return not os.path.exists(f"{self.folder}/direct_url.json")  # noqa: PTH110 - asked at every start


def installed(path: Iterable[str] | None = None) -> dict[str, Metadata]:
    """Every distribution on `path` (the interpreter's own by default), by its normalised name.

    Only the names of folders are read: loading a parser of metadata would cost more than the rest of a start.
    Of two copies the first one on the path counts, and a dist-info before an egg-info.
    """
    found: dict[str, Metadata] = {}
    eggs: dict[str, Metadata] = {}
    for place in sys.path if path is None else path:
        try:
            names = os.listdir(place or ".")  # noqa: PTH208 - asked at every start
        except OSError:
            continue
        for name in names:
            if name[-5:] != "-info":
                continue
            project, _, version = name[: name.rfind(".")].partition("-")
            if name.endswith(".dist-info"):
                # Installers write names normalised but for the dash; only old ones need more than this.
                project = project.lower().replace("_", "-") if project.isidentifier() else normalised(project)
                if project not in found:
                    found[project] = Metadata(version, f"{place or '.'}/{name}")
            elif name.endswith(".egg-info"):
                metadata = Metadata(version.partition("-py")[0], f"{place or '.'}/{name}")
                eggs.setdefault(normalised(project), metadata)
    for project, metadata in eggs.items():
        if project not in found:
            found[project] = metadata if metadata.version else _with_version(metadata)
    return found


def _with_version(egg: Metadata) -> Metadata:
    """An egg-info in a source tree has no version in its name."""
    try:
        with open(f"{egg.folder}/PKG-INFO", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            stated = _VERSION.search(file.read())
    except OSError:
        return egg
    return egg._replace(version=stated[1] if stated else "")


def normalised(name: str) -> str:
    """A distribution's name as the package index compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()

"""Installed distributions: their entry points, where their files are, and a hash of those files."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
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


_NOT_CONTENT = (".pyo", "~", ".swp", ".orig", ".rej")
_NATIVE = (".so", ".pyd", ".dylib")
_RETURN = ord("\r")
_CHUNK = 64 * 1024
Version = str | Callable[[], str]
"""A distribution's version, or how to find it out: most packages have no compiled code, and nobody asks."""

_TEXT = (".py", ".pyi", ".json", ".md", ".txt", ".toml", ".yaml", ".yml")


def locate(package: str) -> Path | None:
    """The folder of an import package."""
    folder = folder_of(package)
    return None if folder is None else Path(folder)


def folder_of(package: str) -> str | None:
    """The folder of an import package as text: a start looks at hundreds of them and takes none apart."""
    spec = spec_of(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(iter(spec.submodule_search_locations))


def spec_of(module: str) -> ModuleSpec | None:
    """Where an import would find a package or module.

    `find_spec` imports the parents of a dotted name, so they are followed by hand from the top-level package.
    """
    top, *rest = module.split(".")
    try:
        spec: ModuleSpec | None = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return None
    for depth, _ in enumerate(rest, start=2):
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = ".".join(module.split(".")[:depth])
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    return spec


def path_of(part: str) -> str | None:
    """The path of one part of a distribution.

    A part is an import package (`name` or `space.name`: its folder), a module that lies in no package (its
    file), or another file of a namespace package, written as a path (`space/words.txt`).
    """
    parent, slash, file = part.rpartition("/")
    spec = spec_of(parent.replace("/", ".") if slash else part)
    if spec is None:
        return None
    locations = spec.submodule_search_locations
    if not slash:
        return next(iter(locations)) if locations else spec.origin
    paths = (os.path.join(location, file) for location in locations or ())  # noqa: PTH118 - see folder_of
    return next((path for path in paths if os.path.exists(path)), None)  # noqa: PTH110


def drift(part: str, version: Version, frozen_hash: str, without: Collection[str] = ()) -> str:
    """How a part of a distribution differs from the frozen one, as a clause; empty when it does not."""
    path = path_of(part)
    if path is None:
        return f"is not installed in this environment ({part})"
    try:
        found = package_hash(path, version, without=without)
    except OSError as error:
        return f"cannot be read ({error.filename}: {error.strerror})"
    return "" if found == frozen_hash else f"is not what was frozen ({part})"


def package_hash(path: str | Path, version: Version, *, without: Collection[str] = ()) -> str:
    """SHA-256 over the names and contents of a package's files, or of a module's one file.

    `without` names files and folders that are left out, relative to the package. The hash is the same for an
    editable install and a wheel, on every machine. It is not taken from RECORD, because an editable install
    lists none of its files there. Line ends are made alike, because a checkout may change them. Compiled code
    differs by platform, so the distribution's `version` stands for it.
    """
    path = str(path)
    try:
        files = _files(path, without, (path,))
    except NotADirectoryError:
        files = [(os.path.basename(path), path)]  # noqa: PTH119 - see _content
    digest = hashlib.sha256()
    for name, file in sorted(files):
        if name.endswith(_NATIVE):
            parent, _, module = name.rpartition("/")
            name = f"{parent or '.'}/{module.partition('.')[0]}"  # noqa: PLW2901
            content = (version if isinstance(version, str) else version()).encode()
        else:
            content = _content(file)
            if _RETURN in content and name.endswith(_TEXT):
                content = content.replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
        digest.update(content)
    return f"sha256:{digest.hexdigest()}"


def _content(path: str) -> bytes:
    # Every start hashes every package, and opening a file object, or asking for a size first, costs more than
    # reading these does.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        content = os.read(descriptor, _CHUNK)
        if len(content) == _CHUNK:
            while part := os.read(descriptor, _CHUNK):
                content += part
    finally:
        os.close(descriptor)
    return content


def _files(
    folder: str, without: Collection[str], above: tuple[str, ...], prefix: str = ""
) -> list[tuple[str, str]]:
    """The files that count, by their names relative to the package."""
    files = []
    compiled = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name[0] == "." or name == "__pycache__" or name.endswith(_NOT_CONTENT):
                continue
            if without and prefix + name in without:
                continue
            if entry.is_dir(follow_symlinks=False):
                files += _files(entry.path, without, above, f"{prefix}{name}/")
            elif name.endswith(".pyc"):
                compiled.append((prefix + name, entry.path))
            elif entry.is_file():
                files.append((prefix + name, entry.path))
            elif entry.is_symlink() and entry.is_dir():
                # An import follows the link, so it counts; a wheel has a folder in its place.
                target = os.path.realpath(entry.path)
                if not _leads_back(target, above):
                    files += _files(entry.path, without, (*above, target), f"{prefix}{name}/")
    return files + _without_source(compiled, files) if compiled else files


def _leads_back(target: str, above: Iterable[str]) -> bool:
    """Whether a link to `target` would be followed forever."""
    return any(f"{os.path.realpath(folder)}/".startswith(f"{target}/") for folder in above)


def _without_source(compiled: list[tuple[str, str]], files: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Byte code beside its source is a cache; where there is no source, an import runs it."""
    sources = {name for name, _ in files}
    return [each for each in compiled if each[0][:-1] not in sources]

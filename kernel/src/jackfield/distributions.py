"""Installed distributions: their metadata and entry points, the paths of their files, and file hashes.

Every start hashes all packages of a registry and compares them with the snapshot, so this module uses `os`
functions on strings instead of `pathlib` where that is faster.
"""

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

FAMILIES = "jackfield.families"

PLUGINS = "jackfield.plugins"

KERNEL = "jackfield-kernel"
"""The distribution of this kernel. A registry identifies it by its API version, not by its files."""

Version = str | Callable[[], str]
"""A distribution's version, or a function that returns it: only packages with compiled code need it."""

_VERSION = re.compile(r"^Version:[ \t]*(\S+)", re.MULTILINE)

_IGNORED = (".pyo", "~", ".swp", ".orig", ".rej")

_NATIVE = (".so", ".pyd", ".dylib")

_TEXT = (".py", ".pyi", ".json", ".md", ".txt", ".toml", ".yaml", ".yml")

_CARRIAGE_RETURN = ord("\r")

_CHUNK = 64 * 1024


class Distribution(NamedTuple):
    """An installed distribution, or one in a source tree."""

    name: str
    version: str
    location: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


class EntryPoint(NamedTuple):
    """An entry point: its name, the object it refers to, and its distribution.

    A tool of a family has no entry point in its distribution's metadata. The build creates one that names the
    family.
    """

    group: str
    name: str
    value: str
    distribution: Distribution
    family: str = ""

    def matches(self, pattern: str) -> bool:
        """Return whether a pattern matches the name of the entry point, its family or its distribution."""
        return (
            fnmatchcase(self.name, pattern)
            or fnmatchcase(self.distribution.name, normalised(pattern))
            or (self.family != "" and fnmatchcase(self.family, pattern))
        )


class Metadata(NamedTuple):
    """The metadata of an installed distribution, as read from the name of its metadata folder."""

    version: str
    folder: str

    @property
    def is_from_index(self) -> bool:
        """True if the distribution came from a package index, so that name and version identify its files.

        For an install from a folder, an archive or a repository, installers write `direct_url.json`
        (PEP 610). Old editable installs leave an egg-info in the source tree instead.
        """
        if self.folder.endswith(".egg-info"):
            return os.path.exists(f"{self.folder}/installed-files.txt") or os.path.isfile(self.folder)  # noqa: PTH110, PTH113
        return not os.path.exists(f"{self.folder}/direct_url.json")  # noqa: PTH110 - runs at every start


def installed(path: Iterable[str] | None = None) -> dict[str, Metadata]:
    """Return every distribution on `path` (by default `sys.path`) by its normalised name.

    Only folder names are read: importing a metadata parser would take longer than the rest of the startup. If
    there are two copies, the first one on the path wins, and a dist-info wins over an egg-info.
    """
    found: dict[str, Metadata] = {}
    eggs: dict[str, Metadata] = {}
    for place in sys.path if path is None else path:
        try:
            names = os.listdir(place or ".")  # noqa: PTH208 - runs at every start
        except OSError:
            continue
        for name in names:
            if name[-5:] != "-info":
                continue
            project, _, version = name[: name.rfind(".")].partition("-")
            if name.endswith(".dist-info"):
                # Current installers normalise names except for the dash; older ones need the full rule.
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
    """Read the version from PKG-INFO; the name of an egg-info in a source tree does not contain it."""
    try:
        with open(f"{egg.folder}/PKG-INFO", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            stated = _VERSION.search(file.read())
    except OSError:
        return egg
    return egg._replace(version=stated[1] if stated else "")


def normalised(name: str) -> str:
    """Return a distribution's name in the normalised form of PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locate(package: str) -> Path | None:
    """Return the folder of an import package."""
    folder = folder_of(package)
    return None if folder is None else Path(folder)


def folder_of(package: str) -> str | None:
    """Return the folder of an import package as a string, which is faster than a `Path`."""
    spec = spec_of(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(iter(spec.submodule_search_locations))


def spec_of(module: str) -> ModuleSpec | None:
    """Find the spec of a package or module without importing anything.

    `importlib.util.find_spec` imports the parents of a dotted name, so this resolves them one by one.
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
    """Return the path of one part of a distribution.

    A part is an import package (`name` or `space.name`; the path of its folder), a top-level module (the
    path of its file), or another file of a namespace package, written as a path (`space/words.txt`).
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


def describe_drift(part: str, version: Version, frozen_hash: str, exclude: Collection[str] = ()) -> str:
    """Return how a part of a distribution differs from the frozen one, as a clause; empty if unchanged."""
    path = path_of(part)
    if path is None:
        return f"is not installed in this environment ({part})"
    try:
        found = package_hash(path, version, exclude=exclude)
    except OSError as error:
        return f"cannot be read ({error.filename}: {error.strerror})"
    return "" if found == frozen_hash else f"differs from the frozen version ({part})"


def package_hash(path: str | Path, version: Version, *, exclude: Collection[str] = ()) -> str:
    """Return the SHA-256 of the names and contents of a package's files, or of a single module's file.

    `exclude` lists files and folders to skip, relative to the package. The hash is the same for an editable
    install and a wheel, on every machine. It cannot come from RECORD, because an editable install does not
    list its files there. Line endings are normalised, because a checkout may change them. Compiled code
    differs by platform, so the distribution's `version` is hashed in its place.
    """
    path = str(path)
    try:
        files = _files(path, exclude, (path,))
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
            if _CARRIAGE_RETURN in content and name.endswith(_TEXT):
                content = content.replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
        digest.update(content)
    return f"sha256:{digest.hexdigest()}"


def _content(path: str) -> bytes:
    # Every start hashes every package. Opening a file object or reading the size first takes longer than
    # reading these small files.
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
    folder: str, exclude: Collection[str], above: tuple[str, ...], prefix: str = ""
) -> list[tuple[str, str]]:
    """Return the files to hash as pairs of a name (relative to the package) and a path."""
    files = []
    compiled = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name[0] == "." or name == "__pycache__" or name.endswith(_IGNORED):
                continue
            if exclude and prefix + name in exclude:
                continue
            if entry.is_dir(follow_symlinks=False):
                files += _files(entry.path, exclude, above, f"{prefix}{name}/")
            elif name.endswith(".pyc"):
                compiled.append((prefix + name, entry.path))
            elif entry.is_file():
                files.append((prefix + name, entry.path))
            elif entry.is_symlink() and entry.is_dir():
                # An import follows the link, and a wheel contains a folder in its place.
                target = os.path.realpath(entry.path)
                if not _is_cycle(target, above):
                    files += _files(entry.path, exclude, (*above, target), f"{prefix}{name}/")
    return files + _without_source(compiled, files) if compiled else files


def _is_cycle(target: str, above: Iterable[str]) -> bool:
    """Return whether following a link to `target` would never end."""
    return any(f"{os.path.realpath(folder)}/".startswith(f"{target}/") for folder in above)


def _without_source(compiled: list[tuple[str, str]], files: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the bytecode files without a source file: an import runs these; the others are caches."""
    sources = {name for name, _ in files}
    return [each for each in compiled if each[0][:-1] not in sources]

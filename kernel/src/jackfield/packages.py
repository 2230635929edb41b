"""Import packages and modules on disk: where they are, and a hash of what is in them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable, Collection, Iterable
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

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

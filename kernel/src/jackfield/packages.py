"""Import packages as they lie on disk: where they are, and a hash of what is in them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Collection
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

_NOT_CONTENT = (".pyc", ".pyo", "~", ".swp", ".orig", ".rej")
_NATIVE = (".so", ".pyd", ".dylib")
_RETURN = ord("\r")
_CHUNK = 64 * 1024
_TEXT = (".py", ".pyi", ".json", ".md", ".txt", ".toml", ".yaml", ".yml")


def locate(package: str) -> Path | None:
    """The folder of an import package."""
    folder = folder_of(package)
    return None if folder is None else Path(folder)


def folder_of(package: str) -> str | None:
    """The folder of an import package as text, for a start that looks at hundreds and takes none apart.

    `find_spec` imports the parents of a dotted name, so they are followed by hand from the top-level package.
    """
    top, *rest = package.split(".")
    try:
        spec: ModuleSpec | None = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return None
    for depth, _ in enumerate(rest, start=2):
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = ".".join(package.split(".")[:depth])
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(iter(spec.submodule_search_locations))


def drift(package: str, version: str, frozen_hash: str, without: Collection[str] = ()) -> str:
    """How an import package differs from the one that was frozen, as a clause; empty when it does not."""
    folder = folder_of(package)
    if folder is None:
        return f"is not installed in this environment ({package})"
    try:
        found = package_hash(folder, version, without=without)
    except OSError as error:
        return f"cannot be read ({error.filename}: {error.strerror})"
    return "" if found == frozen_hash else f"is not what was frozen ({package})"


def package_hash(folder: str | Path, version: str, *, without: Collection[str] = ()) -> str:
    """SHA-256 over the names and contents of a package's files, leaving out those named in `without`.

    The same for an editable install and a wheel, on every machine. RECORD is not asked: an editable install
    lists no data files there. Line ends are made alike, because a checkout may change them. Compiled code
    differs by platform, so the distribution's `version` stands for it.
    """
    digest = hashlib.sha256()
    for name, path in sorted(_files(str(folder))):
        if name in without:
            continue
        if name.endswith(_NATIVE):
            parent, _, file = name.rpartition("/")
            name, content = f"{parent or '.'}/{file.partition('.')[0]}", version.encode()  # noqa: PLW2901
        else:
            content = _content(path)
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


def _files(folder: str, prefix: str = "") -> list[tuple[str, str]]:
    """The files that count, by their names relative to the package."""
    files = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name[0] == "." or name == "__pycache__" or name.endswith(_NOT_CONTENT):
                continue
            if entry.is_dir(follow_symlinks=False):
                files += _files(entry.path, f"{prefix}{name}/")
            elif entry.is_file():
                files.append((prefix + name, entry.path))
    return files

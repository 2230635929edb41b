"""Content hashes of import packages: the same for an editable install and a wheel, on every machine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from jackfield.build.findings import Distribution

_NOT_CONTENT = (".pyc", ".pyo", "~", ".swp", ".orig", ".rej")
_NATIVE = (".so", ".pyd", ".dylib")
_TEXT = (".py", ".pyi", ".json", ".md", ".txt", ".toml", ".yaml", ".yml")


def package_hash(folder: Path, distribution: Distribution, *, without: Collection[str] = ()) -> str:
    """SHA-256 over the names and contents of a package's files, leaving out those named in `without`.

    RECORD is not asked: an editable install lists no data files there. Line ends are made alike, because a
    checkout may change them. Compiled code differs by platform, so the distribution's version stands for it.
    """
    digest = hashlib.sha256()
    for path in sorted(_files(folder), key=lambda path: path.relative_to(folder).as_posix()):
        name = path.relative_to(folder).as_posix()
        if name in without:
            continue
        if path.suffix in _NATIVE:
            name = f"{path.parent.relative_to(folder).as_posix()}/{path.name.split('.')[0]}"
            content = distribution.version.encode()
        else:
            content = path.read_bytes()
            if path.suffix in _TEXT:
                content = content.replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return f"sha256:{digest.hexdigest()}"


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and not name.endswith(_NOT_CONTENT):
                yield Path(parent, name)

"""The file of a store: made for its owner alone, and told apart from another one at the same path."""

from __future__ import annotations

import os
from pathlib import Path

from jackfield.store import StoreUnavailableError

Identity = tuple[int, int]


def make(path: Path) -> None:
    """Create an empty file, and the folders it needs, that nobody else may read; leave alone what exists."""
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(0o700, exist_ok=True)
        _flush(folder.parent)
    try:
        # Never opened when it exists: closing it would drop the locks this process holds on it in SQLite.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if path.is_dir():
            raise StoreUnavailableError(f"{path} is a folder; the store needs the path of a file") from None


def _flush(folder: Path) -> None:
    """See to it that a power cut does not take away what was made in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def identify(path: Path) -> Identity:
    """Which file stands at a path."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise StoreUnavailableError(
            f"the store {path} is gone; put it back, or start anew with an empty one"
        ) from None
    return found.st_dev, found.st_ino

"""The file of a store: created whole, for its owner alone, and told apart from another one at its path."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from jackfield.store import StoreUnavailableError

Result = TypeVar("Result")

Inode = tuple[int, int]
"""The device and the number of a file, which stay the same as long as it exists."""


LINKS_UNSUPPORTED = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What a file system without hard links answers."""


def create(path: Path, fill: Callable[[Path], Result]) -> Result:
    """Create a file that nobody else may read, and the folders it needs; what `fill` returned.

    `fill` writes to a draft beside it, which then gets its name: the file is never seen empty or half
    written, even after a power cut. Raises `FileExistsError` when there is something at the path.
    """
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(0o700, exist_ok=True)
        _flush(folder.parent)
    draft = path.with_name(f".jackfield-{secrets.token_hex(4)}.part")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        filled = fill(draft)
        _publish(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    _flush(path.parent)
    return filled


def _publish(draft: Path, path: Path) -> None:
    # Unlike a rename, a link never replaces what somebody else has put there meanwhile.
    try:
        path.hardlink_to(draft)
    except OSError as error:
        if error.errno not in LINKS_UNSUPPORTED:
            raise
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        draft.replace(path)


def leftover(path: Path) -> Path | None:
    """A journal without its database: SQLite would mix what it holds into a new file of that name."""
    for kind in ("-wal", "-journal"):
        beside = path.with_name(path.name + kind)
        # In this order: whoever creates a store has the file before the journal.
        if os.path.lexists(beside) and not os.path.lexists(path):
            return beside
    return None


def _flush(folder: Path) -> None:
    """See to it that a power cut does not take away what was made in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def identify(path: Path) -> Inode:
    """Which file stands at a path."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise StoreUnavailableError(f"the store {path} is gone; put it back, or check the mount") from None
    return found.st_dev, found.st_ino

"""Files that are there whole or not at all, and a folder that one process writes to at a time."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK = ".jackfield.lock"
_UNFINISHED = ".jackfield-unfinished-"


@contextmanager
def locked(folder: Path, patience: float) -> Iterator[None]:
    """Hold the folder against every other process and thread; `TimeoutError` when somebody else keeps it."""
    # The lock is the operating system's: it ends with its holder, however that one dies.
    descriptor = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + patience
        while not _taken(descriptor):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{folder} is locked by another process")
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_whole(folder: Path, name: str, content: bytes) -> None:
    """Put a file into a folder that is locked; whatever happens, it is there whole or not at all."""
    for left in folder.glob(f"{_UNFINISHED}*"):
        # Whoever began it held the lock that is held now, so it died on the way.
        left.unlink(missing_ok=True)
    unfinished = folder / f"{_UNFINISHED}{name}"
    descriptor = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(folder / name)
    _flush(folder)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, that only its owner may read; leave alone what exists."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(0o700, exist_ok=True)
        _flush(missing.parent)


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Atomic file writes and advisory locks between processes."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

_POLL_SECONDS = 0.01
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def write_atomically(path: Path, content: bytes, *, temporary: Path | None = None) -> None:
    """Write a file that only its owner can read; other processes see the old content or all of the new.

    The content goes to a temporary file in the same directory, is flushed to disk and then renamed. Pass
    `temporary` to choose its name, for example to find the leftovers of a killed process.
    """
    if temporary is None:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    descriptor = os.open(temporary, _NEW_FILE, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


def flush_directory(directory: Path) -> None:
    """Flush the entries of a directory to disk, so that a rename survives a power failure."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def acquire_lock(descriptor: int, patience: float | None) -> bool:
    """Take the exclusive lock of an open file or directory; False if it is not released in time.

    `patience` is the time to wait in seconds; None waits without a limit. The operating system releases the
    lock when the descriptor is closed, however the process ends.
    """
    if patience is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return True
    deadline = time.monotonic() + patience
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)

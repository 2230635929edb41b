"""A file is there whole or not at all: written beside, flushed, and put in place in one step."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from jackfield_workspace.files import refusals
from jackfield_workspace.files.tree import Tree

PARTIAL = ".jackfield-"
"""Prefix of the temporary file of a write that is in progress."""

PATIENCE_SECONDS = 5.0
"""How long a write waits for one that is under way."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def one_writer(tree: Tree) -> Iterator[None]:
    """While this holds, no other host of this machine that uses the same workspace writes to it."""
    with tree.folder(()) as root:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise refusals.busy() from None
                time.sleep(0.01)
        # Closing the folder, which the caller of this does not see, lets go of the lock.
        yield


def create(here: int, name: str, content: bytes) -> None:
    """Write a new file; `FileExistsError` when there is one by then."""
    with _beside(here, content, mode=None) as passing:
        # A link fails where a rename would replace what somebody else has just put there.
        os.link(passing, name, src_dir_fd=here, dst_dir_fd=here, follow_symlinks=False)
    os.fsync(here)


def replace(here: int, name: str, path: str, content: bytes, before: os.stat_result) -> None:
    """Write in place of a file, which keeps its permissions; refused when it is no longer what was read."""
    with _beside(here, content, mode=stat.S_IMODE(before.st_mode)) as passing:
        if not _same(here, name, before):
            raise refusals.stale(path)
        os.rename(passing, name, src_dir_fd=here, dst_dir_fd=here)
    os.fsync(here)


def _same(here: int, name: str, before: os.stat_result) -> bool:
    try:
        now = os.stat(name, dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return all(
        getattr(now, fact) == getattr(before, fact)
        for fact in ("st_dev", "st_ino", "st_mode", "st_size", "st_mtime_ns")
    )


@contextmanager
def _beside(here: int, content: bytes, mode: int | None) -> Iterator[str]:
    passing = f"{PARTIAL}{secrets.token_hex(8)}.part"
    descriptor = os.open(passing, _NEW, 0o666, dir_fd=here)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode & 0o777)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield passing
    finally:
        with suppress(FileNotFoundError):
            os.unlink(passing, dir_fd=here)

"""The only way to a file: from the root downwards, folder by folder, through no link.

Every name is opened relative to the folder that is already open (`openat` with `O_NOFOLLOW`), so what a path
means cannot change between a check and its use: a folder that somebody replaces by a link in the meantime
makes the call fail, and nothing else.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jackfield import ToolError

from jackfield_workspace.files import tool_errors
from jackfield_workspace.files.paths import Parts

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without waiting, or a pipe without a writer would hold the thread for ever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class DirectoryTree:
    """The folder that is the workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def folder(self, parts: Parts, *, make: bool = False) -> Iterator[int]:
        """A folder, open while it is used; with `make`, folders that are missing are made."""
        try:
            here = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise tool_errors.trouble("", error) from None
        try:
            for depth, name in enumerate(parts):
                path = "/".join(parts[: depth + 1])
                below = _enter(here, name, path, make=make)
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)

    def is_file(self, parts: Parts) -> bool:
        """Whether a path leads to a regular file."""
        with self.folder(parts[:-1]) as here, suppress(OSError):
            return stat.S_ISREG(os.stat(parts[-1], dir_fd=here, follow_symlinks=False).st_mode)
        return False


def _enter(here: int, name: str, path: str, *, make: bool) -> int:
    try:
        if make:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=here)
        return open_folder(here, name)
    except OSError as error:
        if error.errno == errno.ENOTDIR and _is_link(here, name):
            raise tool_errors.link(path) from None
        raise tool_errors.trouble(path, error) from None


def open_folder(here: int, name: str) -> int:
    """A folder within an open one; `OSError` when it is none, or a link."""
    return os.open(name, _FOLDER, dir_fd=here)


def _is_link(here: int, name: str) -> bool:
    with suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode)
    return False


def open_file(here: int, name: str, path: str) -> tuple[int, os.stat_result]:
    """A regular file within an open folder, to read; `FileNotFoundError` when there is none."""
    try:
        descriptor = os.open(name, _FILE, dir_fd=here)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise tool_errors.trouble(path, error) from None
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise tool_errors.folder(path)
        if not stat.S_ISREG(found.st_mode):
            raise tool_errors.special(path)
    except (OSError, ToolError):
        os.close(descriptor)
        raise
    return descriptor, found


def read_file(here: int, name: str, path: str, most: int) -> tuple[bytes, os.stat_result]:
    """The content of a regular file that is not too large."""
    descriptor, found = open_file(here, name, path)
    try:
        if found.st_size > most:
            raise tool_errors.too_large(path, found.st_size, most)
        content = b""
        # Without a buffer of Python's: a search opens thousands of files.
        while len(content) <= most and (chunk := os.read(descriptor, found.st_size + 1)):
            content += chunk
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise tool_errors.too_large(path, len(content), most)
    return content, found


PARTIAL = ".jackfield-"
"""Prefix of the temporary file of a write that is in progress."""

PATIENCE_SECONDS = 5.0
"""How long a write waits for one that is under way."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def one_writer(tree: DirectoryTree) -> Iterator[None]:
    """While this holds, no other host of this machine that uses the same workspace writes to it."""
    with tree.folder(()) as root:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise tool_errors.busy() from None
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
            raise tool_errors.stale(path)
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

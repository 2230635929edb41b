"""File access below the root, directory by directory, without following symbolic links.

Every name is opened relative to its open parent directory (`openat` with `O_NOFOLLOW`), so a path cannot
change its meaning between check and use. If a directory is replaced by a link meanwhile, the call fails.
Writes go to a temporary file, which is flushed to disk and put in place in one step.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jackfield import ToolError
from jackfield.atomic_files import acquire_lock

from jackfield_workspace.files import tool_errors
from jackfield_workspace.files.paths import Parts

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking, because opening a pipe without a writer would block the thread forever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class DirectoryTree:
    """The directory of the workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def folder(self, parts: Parts, *, make: bool = False) -> Iterator[int]:
        """Open a directory while the context lasts; `make` creates missing directories."""
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
        """Return whether a path is a regular file."""
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
    """Open a subdirectory of an open directory; raises `OSError` for a file or a link."""
    return os.open(name, _FOLDER, dir_fd=here)


def _is_link(here: int, name: str) -> bool:
    with suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode)
    return False


def open_file(here: int, name: str, path: str) -> tuple[int, os.stat_result]:
    """Open a regular file of an open directory for reading; raises `FileNotFoundError` if it is missing."""
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
    """Read a regular file of at most `most` bytes."""
    descriptor, found = open_file(here, name, path)
    try:
        if found.st_size > most:
            raise tool_errors.too_large(path, found.st_size, most)
        content = b""
        # Unbuffered, because a search opens thousands of files.
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
"""How long a write waits for the lock."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def one_writer(tree: DirectoryTree) -> Iterator[None]:
    """Hold the write lock of the workspace among all processes of this machine."""
    with tree.folder(()) as root:
        if not acquire_lock(root, PATIENCE_SECONDS):
            raise tool_errors.busy()
        # Closing the directory releases the lock.
        yield


def create(here: int, name: str, content: bytes) -> None:
    """Write a new file; raises `FileExistsError` if it exists by then."""
    with _temporary_file(here, content, mode=None) as passing:
        # A hard link fails if the name exists; a rename would replace the other file.
        os.link(passing, name, src_dir_fd=here, dst_dir_fd=here, follow_symlinks=False)
    os.fsync(here)


def replace(here: int, name: str, path: str, content: bytes, before: os.stat_result) -> None:
    """Replace a file and keep its permissions; rejected if the file changed since it was read."""
    with _temporary_file(here, content, mode=stat.S_IMODE(before.st_mode)) as passing:
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
def _temporary_file(here: int, content: bytes, mode: int | None) -> Iterator[str]:
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

"""A log file that several processes append to, with rotation; and its latest lines.

A writer holds a lock on the file and checks that it is still the file at the path. So a file that was rotated
by another process, moved by an operator or deleted with its folder is noticed before a line is lost.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from jackfield.atomic_files import acquire_lock

_LOCK_SECONDS = 0.5
_REOPENINGS = 50

_log = logging.getLogger(__name__)


class WriteResult(NamedTuple):
    """The number of bytes written, in whole lines, and the error that stopped the rest."""

    length: int
    fault: OSError | None


class AuditFile:
    """Appends whole lines; never leaves part of one."""

    def __init__(self, path: Path, max_bytes: int, backups: int) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._fd: int | None = None
        self._may_rotate = True

    def append(self, lines: bytes) -> WriteResult:
        """Write lines, each with a newline at its end; return the error that stopped it, if any."""
        done = 0
        try:
            while done < len(lines):
                with self._held() as fd:
                    file = os.fstat(fd)
                    end = self._fitting(lines, done, file)
                    if end:
                        done = _write(fd, file, lines, done, end)
                    else:
                        self._rotate()
        except OSError as fault:
            return WriteResult(done, fault)
        return WriteResult(done, None)

    def open(self) -> int:
        """Return the open file; create it, readable by its owner only."""
        if self._fd is None:
            self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        return self._fd

    def close(self) -> None:
        """Close the file, which also releases the lock."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    @contextmanager
    def _held(self) -> Iterator[int]:
        for _ in range(_REOPENINGS):
            fd = self.open()
            _lock(fd)
            if self._is_same_file(fd):
                try:
                    yield fd
                finally:
                    if self._fd == fd:
                        fcntl.flock(fd, fcntl.LOCK_UN)
                return
            self.close()
        raise OSError(errno.EBUSY, "the file is replaced repeatedly", str(self.path))

    def _is_same_file(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(fd))  # noqa: PTH116 - like fstat
        except FileNotFoundError:
            return False

    def _fitting(self, lines: bytes, start: int, file: os.stat_result) -> int:
        """Return the end of the lines that fit into the file; 0 if the file must be rotated first."""
        room = self._max_bytes - file.st_size
        if not self._max_bytes or not stat.S_ISREG(file.st_mode) or len(lines) - start <= room:
            return len(lines)
        fitting = lines.rfind(b"\n", start, start + max(room, 0)) + 1
        if fitting:
            return fitting
        if file.st_size == 0:
            # A line longer than the maximum size gets its own file.
            return lines.index(b"\n", start) + 1
        return 0 if self._may_rotate else len(lines)

    def _rotate(self) -> None:
        """Rename file to file.1, file.1 to file.2 and so on; the last one is replaced."""
        try:
            for number in range(self._backups - 1, 0, -1):
                with suppress(FileNotFoundError):
                    os.replace(f"{self.path}.{number}", f"{self.path}.{number + 1}")  # noqa: PTH105 - one idiom
            os.replace(self.path, f"{self.path}.1")  # noqa: PTH105 - one idiom
        except OSError as fault:
            # A growing file is better than lost lines.
            self._may_rotate = False
            _log.error("audit: %s cannot be rotated (%s) and will grow", self.path, fault)
        else:
            self.close()


def _lock(fd: int) -> None:
    # The wait is limited, because the holder may have been suspended, and lines can wait in memory.
    if not acquire_lock(fd, _LOCK_SECONDS):
        raise BlockingIOError(errno.EAGAIN, "another process holds the lock")


def _write(fd: int, file: os.stat_result, lines: bytes, start: int, end: int) -> int:
    """Write lines; return the end of the last complete one, or raise the error if there is none."""
    regular = stat.S_ISREG(file.st_mode)
    # A process that was killed during a write leaves an incomplete line, which must not corrupt the next one.
    mended = regular and file.st_size and os.pread(fd, 1, file.st_size - 1) != b"\n"
    data = memoryview((b"\n" if mended else b"") + lines[start:end])
    written = 0
    try:
        while written < len(data):
            written += os.write(fd, data[written:])
    except OSError:
        before = start - bool(mended)
        whole = lines.rfind(b"\n", start, max(before + written, start)) + 1
        if regular:
            os.ftruncate(fd, file.st_size + (whole - before if whole else 0))
        if not whole:
            raise
        return whole
    return end


BLOCK = 64 * 1024
"""Bytes read at a time, from the end of the file."""

MAX_SCAN_BYTES = 16 * 1024 * 1024
"""The maximum number of bytes to search; a filter without matches must not read for minutes."""

AuditRecord = dict[str, Any]


class AuditTail(NamedTuple):
    """The matching lines, newest first."""

    lines: list[AuditRecord]
    complete: bool
    """True if there are no older matches."""


def read_tail(path: Path, backups: int, limit: int, fits: Callable[[AuditRecord], bool]) -> AuditTail:
    """Return the latest matching lines of a file and its rotated files."""
    found: list[AuditRecord] = []
    left = MAX_SCAN_BYTES
    for file in (path, *(path.with_name(f"{path.name}.{number}") for number in range(1, backups + 1))):
        for line in _backwards(file):
            left -= len(line)
            if left < 0:
                return AuditTail(found, complete=False)
            record = _read(line)
            if record is None or not fits(record):
                continue
            if len(found) == limit:
                return AuditTail(found, complete=False)
            found.append(record)
    return AuditTail(found, complete=True)


def _read(line: bytes) -> AuditRecord | None:
    """Parse a line; return None for a killed process's incomplete line."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


def _backwards(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file from the last to the first; nothing for a pipe."""
    try:
        # Opening a pipe without a writer would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return
        end = size = os.fstat(descriptor).st_size
        begun = b""
        # The second condition stops at a file without newlines, which is not a log.
        while end > 0 and size - end <= MAX_SCAN_BYTES:
            start = max(0, end - BLOCK)
            file.seek(start)
            first, *lines = (file.read(end - start) + begun).split(b"\n")
            yield from (line for line in reversed(lines) if line)
            # The text before the first newline continues in the previous block.
            begun, end = first, start
        if begun:
            yield begun

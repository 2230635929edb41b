"""A file of lines that several processes append to, and that makes room for itself.

Whoever writes holds a lock on the file. Under it the file is looked at afresh, so that one which was rotated
by another process, moved by an operator or lost with its folder is noticed before a line goes nowhere.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from jackfield.files import acquire_lock

_LOCK_SECONDS = 0.5
_REOPENINGS = 50

_log = logging.getLogger(__name__)


class Written(NamedTuple):
    """How much of what was given is in the file, in whole lines, and what kept out the rest."""

    length: int
    fault: OSError | None


class AuditFile:
    """Appends whole lines; never leaves part of one behind."""

    def __init__(self, path: Path, max_bytes: int, backups: int) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._fd: int | None = None
        self._may_rotate = True

    def append(self, lines: bytes) -> Written:
        """Write lines, the last of which ends in a newline too; a fault ends it and is returned."""
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
            return Written(done, fault)
        return Written(done, None)

    def open(self) -> int:
        """The open file; made when there is none, for its owner's eyes only."""
        if self._fd is None:
            self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        return self._fd

    def close(self) -> None:
        """Let go of the file, and with it of the lock."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    @contextmanager
    def _held(self) -> Iterator[int]:
        for _ in range(_REOPENINGS):
            fd = self.open()
            _lock(fd)
            if self._is_in_place(fd):
                try:
                    yield fd
                finally:
                    if self._fd == fd:
                        fcntl.flock(fd, fcntl.LOCK_UN)
                return
            self.close()
        raise OSError(errno.EBUSY, "the file is replaced again and again", str(self.path))

    def _is_in_place(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(fd))  # noqa: PTH116 - beside fstat
        except FileNotFoundError:
            return False

    def _fitting(self, lines: bytes, start: int, file: os.stat_result) -> int:
        """Where the lines end that go into the file as it is; 0 when it has to be rotated first."""
        room = self._max_bytes - file.st_size
        if not self._max_bytes or not stat.S_ISREG(file.st_mode) or len(lines) - start <= room:
            return len(lines)
        fitting = lines.rfind(b"\n", start, start + max(room, 0)) + 1
        if fitting:
            return fitting
        if file.st_size == 0:
            # A line that is longer than a file may be has one of its own.
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
            # A file that grows is better than lines that are lost.
            self._may_rotate = False
            _log.error("audit: %s cannot be rotated (%s) and will grow", self.path, fault)
        else:
            self.close()


def _lock(fd: int) -> None:
    # With a limit: the holder may have been suspended, and lines can wait in memory.
    if not acquire_lock(fd, _LOCK_SECONDS):
        raise BlockingIOError(errno.EAGAIN, "another process holds the lock")


def _write(fd: int, file: os.stat_result, lines: bytes, start: int, end: int) -> int:
    """Write lines and say where those end that are whole in the file; the fault is raised when none is."""
    regular = stat.S_ISREG(file.st_mode)
    # A process that was killed while it wrote leaves half a line, which must not spoil the next one.
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

"""Fair write access between processes, and write transactions.

SQLite grants its write lock to the process that asks while the file is free. That is usually the last writer:
it asks again within microseconds, while the others sleep between two attempts. On a slow disk one process
would write all the time, and the others would be rejected and considered dead. With this lock, one waiting
process is next, and the last writer queues behind it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType

import apsw

_FIRST_PAUSE, _LAST_PAUSE = 0.005, 0.0005
"""Seconds between attempts, at the start and at the end of a wait: the longest waiter polls most often."""


class WriterLock:
    """Advisory lock between the writer threads of all processes.

    It only orders the writers: after `seconds`, a writer proceeds without it, so that a stopped process does
    not block the others.
    """

    def __init__(self, store: Path, seconds: float) -> None:
        self._store = store
        self._path = store.with_name(f"{store.name}-lock")
        self._seconds = seconds
        self._descriptor: int | None = None

    def __enter__(self) -> None:
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        began = time.monotonic()
        while not _try_lock(self._descriptor):
            waited = (time.monotonic() - began) / self._seconds
            if waited >= 1:
                return
            time.sleep(_FIRST_PAUSE + (_LAST_PAUSE - _FIRST_PAUSE) * waited)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the lock file; the last process removes it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            # SQLite keeps its journal as long as a process uses the store.
            if not self._store.with_name(f"{self._store.name}-wal").exists():
                self._path.unlink(missing_ok=True)


def _try_lock(door: int) -> bool:
    try:
        fcntl.flock(door, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_NO_LOCK = nullcontext()


@contextmanager
def write_transaction(db: apsw.Connection, lock: AbstractContextManager[None] = _NO_LOCK) -> Iterator[None]:
    """Begin a write transaction under the lock; commit it, or roll it back on an error."""
    with lock:
        db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # Some errors, such as a full disk, have already rolled back.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise

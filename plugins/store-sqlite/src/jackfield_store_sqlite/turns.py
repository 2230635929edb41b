"""Writers of several processes take turns.

SQLite lets in whoever asks while the file is free, which is whoever wrote last: it asks again within
microseconds, and the others sleep between two looks. On a slow disk one process would write all the time, and
the others be refused and believed dead. Here one of those who wait stands at the door, and whoever comes out
goes behind it.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

_NEWCOMER, _OLD_HAND = 0.005, 0.0005
"""Seconds between two looks at the beginning and at the end of a wait: who waits longest looks most often."""


class Turn:
    """The place at the door, of which there is one for all processes, for the one thread that writes here.

    It is a courtesy and no lock: whoever stands there and never moves is passed by after `seconds`.
    """

    def __init__(self, store: Path, seconds: float) -> None:
        self._store = store
        self._path = store.with_name(f"{store.name}-turn")
        self._seconds = seconds
        self._door: int | None = None

    def __enter__(self) -> None:
        if self._door is None:
            self._door = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        began = time.monotonic()
        while not _taken(self._door):
            waited = (time.monotonic() - began) / self._seconds
            if waited >= 1:
                return
            time.sleep(_NEWCOMER + (_OLD_HAND - _NEWCOMER) * waited)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._door is not None:
            fcntl.flock(self._door, fcntl.LOCK_UN)

    def close(self) -> None:
        """Go home, and take the file along as the last one."""
        if self._door is not None:
            os.close(self._door)
            self._door = None
            # As long as somebody uses the store, SQLite leaves its own file beside it.
            if not self._store.with_name(f"{self._store.name}-wal").exists():
                self._path.unlink(missing_ok=True)


def _taken(door: int) -> bool:
    try:
        fcntl.flock(door, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

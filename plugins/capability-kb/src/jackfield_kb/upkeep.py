"""Both indexes kept up to date: when asked, and in the background when a search finds one missing or
behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from jackfield_kb.errors import LibraryError

Progress = Callable[[int, int], None]
_GRACE = 15.0
"""Seconds that an index may be behind before one who only searches sees to it; mostly whoever loads does."""


class OneIndex(Protocol):
    """What keeps one index."""

    def lacks(self, *, anew: bool) -> int:
        """How many records it has yet to take in, or all when it is made anew."""

    def refresh(self, count: Callable[[int], None], *, anew: bool = False, wait: bool = True) -> bool:
        """Bring it up to date, counting records as they are done; False when another process is at it."""


class _StoppedError(Exception):
    """The library is being closed."""


class Upkeep:
    """Looks after the indexes of a library, full text first because it is quick."""

    def __init__(self, indexes: list[OneIndex], notice: Callable[[str], None]) -> None:
        self._indexes = indexes
        self._notice = notice
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._behind_since: float | None = None
        self._closing = False
        self.finished = threading.Event()

    def refresh(self, progress: Progress | None = None, *, anew: bool = False) -> None:
        """Bring both up to date, or make both anew, and wait for it."""
        done, total = 0, 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            if progress is not None:
                progress(done, max(total, done))

        if progress is not None:
            total = sum(index.lacks(anew=anew) for index in self._indexes)
        for index in self._indexes:
            index.refresh(count, anew=anew)

    def behind(self, behind: bool) -> None:
        """Take note of whether an index lacks something, and see to it when that lasts."""
        now = time.monotonic()
        if not behind:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since > _GRACE:
            self._behind_since = now
            self.start()

    def start(self) -> None:
        """See to the indexes in the background, unless somebody is at it."""
        with self._lock:
            if self._closing or (self._thread is not None and self._thread.is_alive()):
                return
            self.finished.clear()
            self._thread = threading.Thread(target=self._run, name="jackfield-kb-upkeep", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop what runs in the background at the next record; what was done so far is kept."""
        with self._lock:
            self._closing = True
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        try:
            for index in self._indexes:
                index.refresh(self._count, wait=False)
                self.finished.set()
        except _StoppedError:
            return
        except LibraryError as error:
            self._notice(f"the indexes could not be brought up to date: {error}")
        finally:
            self.finished.set()

    def _count(self, more: int) -> None:  # noqa: ARG002
        if self._closing:
            raise _StoppedError

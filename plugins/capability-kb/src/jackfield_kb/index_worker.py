"""Keeps both indexes up to date: on request, and in the background if a search finds one out of date."""

from __future__ import annotations

import shutil
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from jackfield_kb.errors import DamagedIndexError, LibraryError
from jackfield_kb.files import locked, read_json, write_json
from jackfield_kb.records import statements
from jackfield_kb.records.database import RecordDatabase
from jackfield_kb.records.statements import Position

FORMAT = 1


class Generations:
    """The folders `g0`, `g1` and so on: one is in use, another may be under construction."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._current = folder / "current.json"

    def mark(self) -> tuple[int, int] | None:
        """A stamp that changes with every change of the index; None if there is no index."""
        try:
            found = self._current.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def discard(self) -> None:
        """Discard the index; the next refresh rebuilds it."""
        self._current.unlink(missing_ok=True)

    def _said(self) -> dict[str, Any] | None:
        """Read `current.json`; None if it does not exist."""
        try:
            said = read_json(self._current)
        except FileNotFoundError:
            return None
        if not isinstance(said, dict) or said.pop("format", None) != FORMAT:
            raise DamagedIndexError("it was made by a different version")
        return said

    def _say(self, fields: Mapping[str, Any]) -> None:
        write_json(self._current, {"format": FORMAT, **fields})

    def _new_generation(self) -> str:
        """Create an empty folder for a rebuild; it is used once a state is recorded."""
        names = {path.name for path in self.folder.glob("g*")}
        name = next(name for number in range(len(names) + 1) if (name := f"g{number}") not in names)
        (self.folder / name).mkdir(0o700, parents=True)
        return name

    def _keep_only(self, name: str) -> None:
        """Remove folders that are no longer used."""
        for path in self.folder.glob("g*"):
            if path.name != name:
                shutil.rmtree(path, ignore_errors=True)


def incomplete(error: Exception) -> DamagedIndexError:
    """The error for an incomplete `current.json`."""
    return DamagedIndexError(f"current.json is incomplete ({error})")


Notice = Callable[[str], None]
Count = Callable[[int], None]


class Followed(Protocol):
    """The state of an index."""

    @property
    def position(self) -> Position:
        """The position in the records that the index covers."""


S = TypeVar("S", bound=Followed)


class IncrementalIndex(ABC, Generic[S]):
    """Updates an index incrementally; the holder of the lock writes, other processes keep reading."""

    def __init__(self, database: RecordDatabase, folder: Path, notice: Notice) -> None:
        self._database = database
        self._notice = notice
        self._lock = folder / "lock"

    def lacks(self, *, anew: bool) -> int:
        """The number of records to index; all of them for a rebuild."""
        state = None if anew else self._usable()
        with self._database.reading() as db:
            return statements.count_after(db, state.position.number if state else 0)

    def refresh(self, count: Count, *, anew: bool = False, wait: bool = True) -> bool:
        """Update the index, or rebuild it; returns False if another process does so."""
        with locked(self._lock, wait=wait) as mine:
            if not mine:
                return False
            state = self._usable()
            with self._database.reading() as db:
                target = statements.position(db)
            if state is not None and not anew and state.position == target:
                return True
            if state is None or anew:
                self._fill(self._begun(), count, publish=state is None)
            else:
                self._extend(state, count)
            return True

    def _extend(self, state: S, count: Count) -> None:
        self._fill(state, count, publish=True)

    @abstractmethod
    def _usable(self) -> S | None:
        """The state to continue from; None if there is no usable one."""

    @abstractmethod
    def _begun(self) -> S:
        """Create an empty state for a rebuild."""

    @abstractmethod
    def _fill(self, state: S, count: Count, *, publish: bool) -> None:
        """Add the records after a state; `publish` makes partial progress visible to readers."""


Progress = Callable[[int, int], None]
_GRACE = 15.0
"""How long an index may be behind before a searching process updates it; usually the loader does."""


class Indexer(Protocol):
    """Maintains one index."""

    def lacks(self, *, anew: bool) -> int:
        """The number of records to index; all of them for a rebuild."""

    def refresh(self, count: Callable[[int], None], *, anew: bool = False, wait: bool = True) -> bool:
        """Update the index and count the records; returns False if another process does so."""


class _StoppedError(Exception):
    """The library was closed."""


class IndexWorker:
    """Updates the indexes of a library, full text first because it is faster."""

    def __init__(self, indexes: list[Indexer], notice: Callable[[str], None]) -> None:
        self._indexes = indexes
        self._notice = notice
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._behind_since: float | None = None
        self._closing = False
        self.finished = threading.Event()

    def refresh(self, progress: Progress | None = None, *, anew: bool = False) -> None:
        """Update or rebuild both indexes, and wait."""
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
        """Note whether an index is behind, and start an update if it stays behind."""
        now = time.monotonic()
        if not behind:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since > _GRACE:
            self._behind_since = now
            self.start()

    def start(self) -> None:
        """Update the indexes in the background, unless that is already running."""
        with self._lock:
            if self._closing or (self._thread is not None and self._thread.is_alive()):
                return
            self.finished.clear()
            self._thread = threading.Thread(target=self._run, name="jackfield-kb-upkeep", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop the background update at the next record and keep its progress."""
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
            self._notice(f"the indexes could not be updated: {error}")
        finally:
            self.finished.set()

    def _count(self, more: int) -> None:  # noqa: ARG002
        if self._closing:
            raise _StoppedError

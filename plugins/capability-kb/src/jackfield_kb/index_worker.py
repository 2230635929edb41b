"""Keeps both indexes up to date: on request, and in the background if a search finds one out of date."""

from __future__ import annotations

import shutil
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from jackfield_kb.errors import DamagedIndexError, LibraryError
from jackfield_kb.index_files import locked, read_json, write_json
from jackfield_kb.records.interface import Position, RecordLog


class Generations:
    """The folders `g0`, `g1` and so on: one is in use, another may be under construction."""

    format: ClassVar[int]
    """The version of the file format; an index in another version is rebuilt."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._current = folder / "current.json"

    def mark(self) -> tuple[int, int] | None:
        """Return a stamp that changes whenever the index does; None if there is no index."""
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
        if not isinstance(said, dict) or said.pop("format", None) != self.format:
            raise DamagedIndexError("it was made by a different version")
        return said

    def _say(self, fields: Mapping[str, Any]) -> None:
        write_json(self._current, {"format": self.format, **fields})

    def _new_generation(self) -> str:
        """Create an empty folder for a rebuild; readers use it once its state is recorded."""
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
    """Return the error for an incomplete `current.json`."""
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
    """Updates an index incrementally; the process that holds the lock writes, others keep reading."""

    def __init__(self, log: RecordLog, folder: Path, notice: Notice) -> None:
        self._log = log
        self._notice = notice
        self._lock = folder / "lock"

    def lacks(self, *, rebuild: bool) -> int:
        """Return the number of records to index; all of them for a rebuild."""
        state = None if rebuild else self._usable()
        return self._log.count_after(state.position.number if state else 0)

    def refresh(self, count: Count, *, rebuild: bool = False, wait: bool = True) -> bool:
        """Update the index, or rebuild it; returns False if another process is doing so."""
        with locked(self._lock, wait=wait) as mine:
            if not mine:
                return False
            state = self._usable()
            target = self._log.position()
            if state is not None and _is_ahead(state.position, target):
                self._notice("the records are older than an index, which is being rebuilt")
                self._discard()
                state = None
            if state is not None and not rebuild and state.position == target:
                return True
            if state is None or rebuild:
                self._fill(self._begun(), count, publish=state is None)
            else:
                self._extend(state, count)
            return True

    def _extend(self, state: S, count: Count) -> None:
        self._fill(state, count, publish=True)

    @abstractmethod
    def _discard(self) -> None:
        """Discard the index, because it covers other records."""

    @abstractmethod
    def _usable(self) -> S | None:
        """Return the state to continue from; None if no state is usable."""

    @abstractmethod
    def _begun(self) -> S:
        """Create an empty state for a rebuild."""

    @abstractmethod
    def _fill(self, state: S, count: Count, *, publish: bool) -> None:
        """Add the records after a state; `publish` makes partial progress visible to readers."""


def _is_ahead(position: Position, target: Position) -> bool:
    """Return whether an index is ahead of the records, because an older state of them was restored."""
    return position.number > target.number or position.step > target.step


Progress = Callable[[int, int], None]
_GRACE = 15.0
"""How long an index may be behind before a searching process updates it; usually the loader does."""


class Indexer(Protocol):
    """Maintains one index."""

    def lacks(self, *, rebuild: bool) -> int:
        """Return the number of records to index; all of them for a rebuild."""

    def refresh(self, count: Callable[[int], None], *, rebuild: bool = False, wait: bool = True) -> bool:
        """Update the index and count the records; returns False if another process is doing so."""


class UpkeepStoppedError(Exception):
    """The library was closed."""


class IndexWorker:
    """Updates the indexes of a library, full text first because it is faster."""

    def __init__(self, indexers: Callable[[], list[Indexer]], notice: Callable[[str], None]) -> None:
        self._indexers = indexers
        self._notice = notice
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._behind_since: float | None = None
        self._closing = False
        self.finished = threading.Event()

    def refresh(
        self, progress: Progress | None = None, *, rebuild: bool = False, before: Sequence[Indexer] = ()
    ) -> None:
        """Run the indexers in `before`, then update or rebuild both indexes; wait for all of them."""
        done, total = 0, 0
        indexers = [*before, *self._indexers()]

        def count(more: int) -> None:
            nonlocal done
            done += more
            if progress is not None:
                progress(done, max(total, done))

        if progress is not None:
            total = sum(index.lacks(rebuild=rebuild) for index in indexers)
        for index in indexers:
            index.refresh(count, rebuild=rebuild)

    def update(self) -> None:
        """Update the indexes that no other process is updating; `close` interrupts the update."""
        with suppress(UpkeepStoppedError):
            for index in self._indexers():
                index.refresh(self.count, wait=False)

    @property
    def is_closing(self) -> bool:
        """True if the library is being closed."""
        return self._closing

    def behind(self, behind: bool) -> None:
        """Record whether an index is behind, and start an update if it stays behind."""
        now = time.monotonic()
        if not behind:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since > _GRACE:
            self._behind_since = now
            self.start()

    def start(self) -> None:
        """Update the indexes in the background, unless an update is already running."""
        with self._lock:
            if self._closing or (self._thread is not None and self._thread.is_alive()):
                return
            self.finished.clear()
            self._thread = threading.Thread(target=self._run, name="jackfield-kb-upkeep", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop the background update after its current batch; the progress saved so far is kept."""
        with self._lock:
            self._closing = True
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        try:
            for index in self._indexers():
                index.refresh(self.count, wait=False)
                self.finished.set()
        except UpkeepStoppedError:
            return
        except LibraryError as error:
            self._notice(f"the indexes could not be updated: {error}")
        finally:
            self.finished.set()

    def count(self, more: int) -> None:  # noqa: ARG002
        """End background work if the library is being closed."""
        if self._closing:
            raise UpkeepStoppedError

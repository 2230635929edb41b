"""Keeps both indexes up to date: on request, and in the background when a search finds one behind."""

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
from jackfield_kb.records.database import Database
from jackfield_kb.records.statements import Position

FORMAT = 1


class Generations:
    """The folders `g0`, `g1` and so on, of which one is in use and another may be in the making."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._current = folder / "current.json"

    def mark(self) -> tuple[int, int] | None:
        """What changes with every change of the index; None when there is no index."""
        try:
            found = self._current.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def discard(self) -> None:
        """Forget the index; the next refresh makes it anew."""
        self._current.unlink(missing_ok=True)

    def _said(self) -> dict[str, Any] | None:
        """What `current.json` says; None when there is none."""
        try:
            said = read_json(self._current)
        except FileNotFoundError:
            return None
        if not isinstance(said, dict) or said.pop("format", None) != FORMAT:
            raise DamagedIndexError("it was made by another version")
        return said

    def _say(self, fields: Mapping[str, Any]) -> None:
        write_json(self._current, {"format": FORMAT, **fields})

    def _new_generation(self) -> str:
        """An empty folder for a rebuild; it is not in use before something is recorded."""
        names = {path.name for path in self.folder.glob("g*")}
        name = next(name for number in range(len(names) + 1) if (name := f"g{number}") not in names)
        (self.folder / name).mkdir(0o700, parents=True)
        return name

    def _keep_only(self, name: str) -> None:
        """Remove the folders that are no longer in use."""
        for path in self.folder.glob("g*"):
            if path.name != name:
                shutil.rmtree(path, ignore_errors=True)


def incomplete(error: Exception) -> DamagedIndexError:
    """The error for a `current.json` that lacks something."""
    return DamagedIndexError(f"current.json lacks what it should say ({error})")


Notice = Callable[[str], None]
Count = Callable[[int], None]


class Followed(Protocol):
    """How far an index has come."""

    @property
    def position(self) -> Position:
        """The last of the truth that it holds."""


S = TypeVar("S", bound=Followed)


class Following(ABC, Generic[S]):
    """Whoever holds the lock brings the index up to date; the others go on reading."""

    def __init__(self, database: Database, folder: Path, notice: Notice) -> None:
        self._database = database
        self._notice = notice
        self._lock = folder / "lock"

    def lacks(self, *, anew: bool) -> int:
        """How many records have yet to be indexed, or all when that is done anew."""
        state = None if anew else self._usable()
        with self._database.reading() as db:
            return statements.count_after(db, state.position.number if state else 0)

    def refresh(self, count: Count, *, anew: bool = False, wait: bool = True) -> bool:
        """Bring the index up to date, from nothing if asked; False when another process is at it."""
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
        """The state to go on from; None when there is none that fits."""

    @abstractmethod
    def _begun(self) -> S:
        """An empty state for a rebuild."""

    @abstractmethod
    def _fill(self, state: S, count: Count, *, publish: bool) -> None:
        """Add what the truth has beyond a state; `publish` shows readers what is done so far."""


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

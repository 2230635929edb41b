"""What all indexes do alike to keep in step with the truth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from jackfield_kb.files import locked
from jackfield_kb.truth import reading
from jackfield_kb.truth.database import Database
from jackfield_kb.truth.reading import Position

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
            return reading.count_after(db, state.position.number if state else 0)

    def refresh(self, count: Count, *, anew: bool = False, wait: bool = True) -> bool:
        """Bring the index up to date, from nothing if asked; False when another process is at it."""
        with locked(self._lock, wait=wait) as mine:
            if not mine:
                return False
            state = self._usable()
            with self._database.reading() as db:
                target = reading.position(db)
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

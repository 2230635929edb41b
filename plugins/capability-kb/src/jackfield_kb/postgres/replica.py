"""A copy of the records on this machine, which follows those in PostgreSQL.

The local indexes are built from the copy, and searches read their records from it. Searches therefore need no
connection, and work while the database cannot be reached. Records have the same numbers as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
from jackfield_capability_types.knowledge import Record

from jackfield_kb.access import Access
from jackfield_kb.index_files import locked
from jackfield_kb.postgres.records import Head, PostgresRecords, StoredRow
from jackfield_kb.records.interface import Changes, Numbered, Position
from jackfield_kb.records.rows import COLUMNS
from jackfield_kb.records.sqlite import SqliteRecords

if TYPE_CHECKING:
    from jackfield_kb.records.interface import PassageVectors

_BATCH = 1_000
_FOLLOWED = "CREATE TABLE IF NOT EXISTS followed (library TEXT NOT NULL, complete INTEGER NOT NULL) STRICT"
_VALUES = ", ?" * len(COLUMNS.split(","))
_INSERT = f"INSERT INTO records (number, digest, {COLUMNS}) VALUES (?, ?{_VALUES})"  # noqa: S608


class Replica:
    """A SQLite file with the records of a PostgreSQL database."""

    def __init__(self, path: Path, primary: PostgresRecords, replaced: Callable[[], None]) -> None:
        self._records = SqliteRecords(path)
        self._primary = primary
        self._lock = path.with_name("replica.lock")
        self._replaced = replaced
        """Called before the copy of another library is discarded."""
        self._complete = False
        self._prepared = False

    @property
    def complete(self) -> bool:
        """True once the copy has had all records."""
        if not self._complete:
            self._complete = bool(self._followed("complete"))
        return self._complete

    def _followed(self, column: str) -> Any:
        """Read a column about the copied library; None for a new copy."""
        if not self._prepared:
            with self._records.database.writing() as db:
                db.execute(_FOLLOWED)
            self._prepared = True
        with self._records.database.reading() as db:
            return db.execute(f"SELECT {column} FROM followed").get  # noqa: S608

    def pull(self, most: int, *, wait: bool = False) -> bool:
        """Copy up to `most` changed records; returns whether there are more.

        Only one process on this machine copies at a time. Without `wait`, the others return False.
        """
        with locked(self._lock, wait=wait) as mine:
            if not mine:
                return False
            head = self._primary.head()
            self._identify(head)
            if self.complete and head.position == self._records.position():
                return False
            copied = 0
            while copied < most:
                since = self._records.position()
                changes = self._primary.changes(since)
                rows = self._primary.rows_after(since.number, _BATCH)
                self._apply(changes, rows)
                copied += len(rows)
                if not rows:
                    return False
            return True

    def lacks(self) -> int:
        """Return the number of records to copy."""
        return self._primary.count_after(self._records.position().number)

    def _identify(self, head: Head) -> None:
        """Discard the copy if it is of another library, or is ahead of the database."""
        known = self._followed("library")
        mine = self._records.position()
        if known == head.library and mine.number <= head.position.number and mine.step <= head.position.step:
            return
        self._replaced()
        with self._records.database.writing() as db:
            for table in ("records", "removed", "followed", "sqlite_sequence"):
                db.execute(f"DELETE FROM {table}")  # noqa: S608
            db.execute("INSERT INTO followed (library, complete) VALUES (?, 0)", (head.library,))
        self._complete = False

    def _apply(self, changes: Changes, rows: Sequence[StoredRow]) -> None:
        target = changes.target
        number = rows[-1].number if rows else target.number
        with self._records.database.writing() as db:
            first = target.step - len(changes.removed) + 1
            for step, gone in enumerate(changes.removed, first):
                db.execute("DELETE FROM records WHERE number = ?", (gone,))
                db.execute("INSERT INTO removed (step, number) VALUES (?, ?)", (step, gone))
            for each in rows:
                # The removal of the id's previous record may only come with the next changes.
                db.execute("DELETE FROM records WHERE id = ?", (each.row[0],))
                db.execute(_INSERT, (each.number, each.digest, *each.row))
            _set_position(db, Position(number, target.step))
            if not rows:
                db.execute("UPDATE followed SET complete = 1")

    # The log that the local indexes follow

    def position(self) -> Position:
        """Return the position of the copy."""
        return self._records.position()

    def changes(self, since: Position) -> Changes:
        """Return the position of the copy, and the records that were removed since an earlier one."""
        return self._records.changes(since)

    def after(self, number: int, most: int) -> list[Numbered]:
        """Return the next records above a number; fewer than `most` if they are long."""
        return self._records.after(number, most)

    def count_after(self, number: int) -> int:
        """Return the number of records above a number."""
        return self._records.count_after(number)

    def vectors(self, model: str, items: Sequence[Numbered]) -> dict[int, PassageVectors]:
        """Return the vectors that are stored in PostgreSQL, up to the first record that has none yet."""
        return self._primary.vectors(model, items)

    def by_numbers(self, numbers: Sequence[int], access: Access) -> dict[int, Record]:
        """Return the existing records that the user may see, by number."""
        return self._records.by_numbers(numbers, access)

    def by_ids(self, ids: Sequence[str], access: Access) -> list[Record]:
        """Return the records that the user may see, by id, in the given order."""
        return self._records.by_ids(ids, access)

    def bytes(self) -> int:
        """Return the size of the copy on disk."""
        return self._records.bytes()

    def close(self) -> None:
        """Close the file."""
        self._records.close()


def _set_position(db: apsw.Connection, position: Position) -> None:
    for name, value in zip(("records", "removed"), position, strict=True):
        db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
        db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, value))

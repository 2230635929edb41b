"""Records in one SQLite file on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import apsw
from jackfield_capability_types.knowledge import Record

from jackfield_kb.access import PERSONAL, Access
from jackfield_kb.errors import ClaimedTwiceError
from jackfield_kb.records.database import RecordDatabase
from jackfield_kb.records.interface import (
    NOWHERE,
    Changes,
    Numbered,
    Position,
    Source,
    SourceAndOwner,
    SourceRecords,
)
from jackfield_kb.records.rows import COLUMNS, digest, from_row, refuse_doubles, to_row

_VALUES = ", ?" * len(COLUMNS.split(","))
_INSERT = f"INSERT INTO records (source, digest, {COLUMNS}) VALUES (?, ?{_VALUES})"  # noqa: S608
MOST_CHARACTERS = 4_000_000
"""The maximum number of characters read at once."""


class SqliteRecords:
    """The records of one SQLite file."""

    def __init__(self, path: Path) -> None:
        self.database = RecordDatabase(path)

    @property
    def place(self) -> str:
        """The location of the records."""
        return str(self.database.path)

    def write(self, put: Sequence[SourceRecords], drop: Iterable[str]) -> None:
        """Drop sources and replace the records of others, in one transaction."""
        refuse_doubles(put)
        with self.database.writing() as db:
            for uri in drop:
                numbers: Iterable[Any] = db.execute("SELECT number FROM records WHERE source = ?", (uri,))
                remove(db, [number for (number,) in numbers])
                db.execute("DELETE FROM sources WHERE uri = ?", (uri,))
            # Removals first, because a record may have moved from one file to another.
            for source, records in put:
                if source is not None:
                    _register(db, source)
                    _remove_missing(db, source.uri, {record.id for record in records})
            for source, records in put:
                for record in records:
                    _put(db, source, record)

    def delete(self, ids: Iterable[str]) -> None:
        """Remove records by id."""
        with self.database.writing() as db:
            numbers = [db.execute("SELECT number FROM records WHERE id = ?", (id_,)).get for id_ in ids]
            remove(db, [number for number in numbers if number is not None])

    def loading(self, uris: Sequence[str]) -> AbstractContextManager[None]:  # noqa: ARG002
        """Do nothing: SQLite's own lock orders the writers on one machine."""
        return nullcontext()

    def position(self) -> Position:
        """Return the current position."""
        with self.database.reading() as db:
            return _position(db)

    def changes(self, since: Position) -> Changes:
        """Return the current position, and the records that were removed since an earlier one."""
        with self.database.reading() as db:
            rows: Iterable[Any] = db.execute("SELECT number FROM removed WHERE step > ?", (since.step,))
            removed = [number for (number,) in rows] if since.number else []
            return Changes(_position(db), removed)

    def after(self, number: int, most: int) -> list[Numbered]:
        """Return the next records above a number; fewer than `most` if they are long."""
        found: list[Numbered] = []
        characters = 0
        with self.database.reading() as db:
            rows = db.execute(
                f"SELECT number, {COLUMNS} FROM records WHERE number > ? ORDER BY number LIMIT ?",  # noqa: S608
                (number, most),
            )
            for row in rows:
                found.append(Numbered(row[0], from_row(row[1:])))
                characters += len(found[-1].record.text)
                if characters > MOST_CHARACTERS:
                    break
        return found

    def count_after(self, number: int) -> int:
        """Return the number of records above a number."""
        with self.database.reading() as db:
            count: Any = db.execute("SELECT count(*) FROM records WHERE number > ?", (number,)).get
        return int(count)

    def vectors(self, model: str, items: Sequence[Numbered]) -> None:  # noqa: ARG002
        """Return None: the vectors are only in the index, which embeds the passages itself."""
        return

    def by_ids(self, ids: Sequence[str], access: Access) -> list[Record]:
        """Return the records that the user may see, by id, in the given order, each once."""
        condition, values = _visible(access)
        statement = f"SELECT {COLUMNS} FROM records WHERE id = ?{condition}"  # noqa: S608
        with self.database.reading() as db:
            found = [db.execute(statement, (id_, *values)).get for id_ in dict.fromkeys(ids)]
        return [from_row(row) for row in found if row is not None]

    def by_numbers(self, numbers: Sequence[int], access: Access) -> dict[int, Record]:
        """Return the existing records that the user may see, by number."""
        places = ", ".join("?" * len(numbers))
        condition, values = _visible(access)
        with self.database.reading() as db:
            rows = db.execute(
                f"SELECT number, {COLUMNS} FROM records WHERE number IN ({places}){condition}",  # noqa: S608
                (*numbers, *values),
            )
            return {row[0]: from_row(row[1:]) for row in rows}

    def page(self, after_id: str, most: int) -> list[Record]:
        """Return the next records, ordered by id."""
        with self.database.reading() as db:
            rows = db.execute(
                f"SELECT {COLUMNS} FROM records WHERE id > ? ORDER BY id LIMIT ?",  # noqa: S608
                (after_id, most),
            )
            return [from_row(row) for row in rows]

    def sources(self, collection: str | None) -> list[Source]:
        """Return the sources of a collection, or all sources, ordered by URI."""
        with self.database.reading() as db:
            rows = db.execute(
                "SELECT uri, digest, collection FROM sources WHERE ? IS NULL OR collection = ? ORDER BY uri",
                (collection, collection),
            )
            return [Source(*row) for row in rows]

    def holders(self, ids: Iterable[str]) -> dict[str, SourceAndOwner]:
        """Return the source and owner of each existing record."""
        found = {}
        with self.database.reading() as db:
            for id_ in ids:
                for uri, owner in db.execute("SELECT source, owner FROM records WHERE id = ?", (id_,)):
                    found[id_] = SourceAndOwner(uri or NOWHERE, owner)
        return found

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of records by namespace and type."""
        with self.database.reading() as db:
            rows = db.execute("SELECT namespace, type, count(*) FROM records GROUP BY namespace, type")
            return {(namespace, type_): count for namespace, type_, count in rows}

    def bytes(self) -> int:
        """Return the size of the file and its log."""
        path, total = self.database.path, 0
        for each in path.parent.glob(f"{path.name}*"):
            # SQLite deletes its journal at the end of a transaction.
            with suppress(FileNotFoundError):
                total += each.stat().st_size
        return total

    def close(self) -> None:
        """Close the connections."""
        self.database.close()


def remove(db: apsw.Connection, numbers: Iterable[int]) -> None:
    """Remove records, and log the removal for the indexes."""
    for number in numbers:
        db.execute("DELETE FROM records WHERE number = ?", (number,))
        db.execute("INSERT INTO removed (number) VALUES (?)", (number,))


def _visible(access: Access) -> tuple[str, tuple[str | None, ...]]:
    """Return the condition for the records that a user may see, and its values."""
    if access.unlimited:
        return "", ()
    shared = sorted(access.shared)
    places = ", ".join("?" * len(shared))
    # A comparison with NULL is never true, so without an owner no personal record is visible.
    return (
        f" AND (namespace <> '{PERSONAL}' AND namespace IN ({places})"
        f" OR namespace = '{PERSONAL}' AND owner = ?)",
        (*shared, access.owner),
    )


def _position(db: apsw.Connection) -> Position:
    rows: Iterable[Any] = db.execute("SELECT name, seq FROM sqlite_sequence")
    last: dict[str, int] = dict(rows)
    return Position(last.get("records", 0), last.get("removed", 0))


def _register(db: apsw.Connection, source: Source) -> None:
    db.execute(
        "INSERT INTO sources (uri, digest, collection) VALUES (?, ?, ?) "
        "ON CONFLICT (uri) DO UPDATE SET digest = excluded.digest, collection = excluded.collection",
        source,
    )


def _remove_missing(db: apsw.Connection, uri: str, ids: set[str]) -> None:
    known: Iterable[Any] = db.execute("SELECT number, id FROM records WHERE source = ?", (uri,))
    remove(db, [number for number, id_ in known if id_ not in ids])


def _put(db: apsw.Connection, source: Source | None, record: Record) -> None:
    row = to_row(record)
    mark = digest(row)
    uri = None if source is None else source.uri
    known = db.execute("SELECT number, source, digest FROM records WHERE id = ?", (record.id,)).get
    if known is not None:
        number, other, same = known
        if other != uri:
            raise ClaimedTwiceError(record.id, other or NOWHERE, uri or NOWHERE)
        if same == mark:
            return
        remove(db, [number])
    db.execute(_INSERT, (uri, mark, *row))

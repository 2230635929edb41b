"""Streams, in SQL."""

from __future__ import annotations

import apsw
from jackfield.store import Entry

from jackfield_store_sqlite.kept import after_all_that_begin_with


def append(db: apsw.Connection, stream: str, value: bytes, expires: float | None) -> int:
    """Add to the end. A stream remembers its last id for good, so that none is used twice."""
    number, last = db.execute(
        "INSERT INTO streams (name, last) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET last = last + 1 "
        "RETURNING number, last",
        (stream,),
    ).get
    db.execute(
        "INSERT INTO entries (stream, id, value, expires) VALUES (?, ?, ?, ?)", (number, last, value, expires)
    )
    return int(last)


def last(db: apsw.Connection, stream: str) -> int:
    """The id of the newest entry there ever was."""
    return db.execute("SELECT last FROM streams WHERE name = ?", (stream,)).get or 0


def names(db: apsw.Connection, now: float, prefix: str) -> list[str]:
    """The streams that begin so and hold an entry, sorted."""
    rows = db.execute(
        "SELECT name FROM streams WHERE name >= ? AND name < ? AND EXISTS (SELECT 1 FROM entries "
        "WHERE stream = number AND (expires IS NULL OR expires > ?)) ORDER BY name",
        (prefix, after_all_that_begin_with(prefix), now),
    )
    return [name for (name,) in rows]


def clear(db: apsw.Connection, now: float, stream: str) -> int:
    """Remove all entries; how many had not expired."""
    gone = db.execute(
        "DELETE FROM entries WHERE stream = (SELECT number FROM streams WHERE name = ?) "
        "RETURNING expires IS NULL OR expires > ?",
        (stream, now),
    )
    return sum(readable for (readable,) in gone)


def read(db: apsw.Connection, now: float, stream: str, after: int, limit: int) -> list[Entry]:
    """Entries behind an id, oldest first."""
    rows = db.execute(
        "SELECT id, value FROM entries WHERE stream = (SELECT number FROM streams WHERE name = ?) "
        "AND id > ? AND (expires IS NULL OR expires > ?) ORDER BY id LIMIT ?",
        (stream, after, now, limit),
    )
    return [Entry(*row) for row in rows]

"""Changing the truth: sources replaced by their new records, all or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw
from jackfield_capability_types.knowledge import Record

from jackfield_kb.errors import ClaimedTwiceError
from jackfield_kb.truth.rows import COLUMNS, digest, to_row


class Source(NamedTuple):
    """A file that records came from."""

    uri: str
    digest: str
    """SHA-256 of its content, by which a later load sees whether it has changed."""

    collection: str
    """What was asked to be loaded when it was found: a file, a folder or the root of a pattern."""


Put = tuple[Source | None, Sequence[Record]]

NOWHERE = "a record without a file"
_VALUES = ", ?" * len(COLUMNS.split(","))
_INSERT = f"INSERT INTO records (source, digest, {COLUMNS}) VALUES (?, ?{_VALUES})"  # noqa: S608


def write(db: apsw.Connection, put: Sequence[Put], drop: Iterable[str]) -> None:
    """Drop sources, then replace the records of others; to be called within a transaction."""
    _refuse_doubles(put)
    for uri in drop:
        remove(
            db, [number for (number,) in db.execute("SELECT number FROM records WHERE source = ?", (uri,))]
        )
        db.execute("DELETE FROM sources WHERE uri = ?", (uri,))
    # What a source no longer has goes first: a record may have moved from one file to another.
    for source, records in put:
        if source is not None:
            _register(db, source)
            _remove_missing(db, source.uri, {record.id for record in records})
    for source, records in put:
        for record in records:
            _put(db, source, record)


def remove(db: apsw.Connection, numbers: Iterable[int]) -> None:
    """Take records away, and note it for the indexes."""
    for number in numbers:
        db.execute("DELETE FROM records WHERE number = ?", (number,))
        db.execute("INSERT INTO removed (number) VALUES (?)", (number,))


def _refuse_doubles(put: Sequence[Put]) -> None:
    owners: dict[str, str] = {}
    for source, records in put:
        name = NOWHERE if source is None else source.uri
        for record in records:
            if record.id in owners:
                raise ClaimedTwiceError(record.id, owners[record.id], name)
            owners[record.id] = name


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

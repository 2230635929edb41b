"""Reads and writes records: by id, by number, by source, and those that an index has not read yet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import apsw
from jackfield_capability_types.knowledge import NAMESPACES, TYPES, Record

from jackfield_kb.access import PERSONAL
from jackfield_kb.errors import ClaimedTwiceError, RecordError

COLUMNS = "id, type, namespace, owner, title, text, tags, url, source_type, last_updated, metadata"
MOST_TEXT = 20_000_000
"""The maximum number of characters of a record's text; a long book has about one million."""

_MOST_ID, _MOST_TITLE, _MOST_TAGS, _MOST_TAG = 500, 2_000, 200, 200


def to_row(record: Record) -> tuple[Any, ...]:
    """The values for `COLUMNS`; raises `RecordError` for an invalid record."""
    _check(record)
    moment = record.last_updated
    try:
        row = (
            record.id,
            record.type,
            record.namespace,
            record.owner if record.namespace == PERSONAL else None,
            record.title,
            record.text,
            json.dumps(list(dict.fromkeys(record.tags)), ensure_ascii=False),
            record.url,
            record.source_type,
            None if moment is None else (moment if moment.tzinfo else in_utc(moment)).isoformat(),
            json.dumps(dict(record.metadata), ensure_ascii=False, sort_keys=True),
        )
        "\0".join(value for value in row if value is not None).encode()
    except (TypeError, ValueError) as error:
        raise RecordError(f"the record {record.id!r} is invalid: {error}") from None
    return row


def _check(record: Record) -> None:
    wrong = None
    if not record.id or len(record.id) > _MOST_ID or any(c.isspace() for c in record.id):
        wrong = f"its id must have 1 to {_MOST_ID} characters without spaces, such as `person:ada`"
    elif record.type not in TYPES:
        wrong = f"its type {record.type!r} is not one of {', '.join(TYPES)}"
    elif record.namespace not in NAMESPACES:
        wrong = f"its namespace {record.namespace!r} is not one of {', '.join(NAMESPACES)}"
    elif record.namespace == PERSONAL and not record.owner:
        wrong = "it is personal but has no owner, so no user could see it"
    elif len(record.title) > _MOST_TITLE:
        wrong = f"its title is longer than {_MOST_TITLE} characters"
    elif len(record.text) > MOST_TEXT:
        wrong = f"its text is longer than {MOST_TEXT:,} characters; split it into several records"
    elif len(record.tags) > _MOST_TAGS or any(not 0 < len(tag) <= _MOST_TAG for tag in record.tags):
        wrong = f"it may have {_MOST_TAGS} tags of 1 to {_MOST_TAG} characters each"
    if wrong:
        raise RecordError(f"the record {record.id[:_MOST_ID]!r} is invalid: {wrong}")


def digest(row: Sequence[Any]) -> bytes:
    """A hash that changes with the record."""
    return hashlib.blake2b(json.dumps(row, ensure_ascii=False).encode(), digest_size=16).digest()


def from_row(row: Sequence[Any]) -> Record:
    """The record of a row of `COLUMNS`."""
    id_, type_, namespace, owner, title, text, tags, url, source_type, last_updated, metadata = row
    return Record(
        id=id_,
        title=title,
        text=text,
        type=type_,
        namespace=namespace,
        owner=owner,
        tags=tuple(json.loads(tags)),
        url=url,
        source_type=source_type,
        last_updated=None if last_updated is None else datetime.fromisoformat(last_updated),
        metadata=json.loads(metadata),
    )


def in_utc(moment: datetime) -> datetime:
    """Convert a time to UTC; the default zone is UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def in_microseconds(moment: datetime) -> int:
    """A time as microseconds since 1970, as the indexes store it."""
    apart = in_utc(moment) - datetime(1970, 1, 1, tzinfo=UTC)
    return (apart.days * 86_400 + apart.seconds) * 1_000_000 + apart.microseconds


class Source(NamedTuple):
    """A file that contains records."""

    uri: str
    digest: str
    """SHA-256 of the content, which shows a later load whether the file changed."""

    collection: str
    """The path that was named when the file was loaded: the file or a folder."""


SourceRecords = tuple[Source | None, Sequence[Record]]

NOWHERE = "a record without a file"
_VALUES = ", ?" * len(COLUMNS.split(","))
_INSERT = f"INSERT INTO records (source, digest, {COLUMNS}) VALUES (?, ?{_VALUES})"  # noqa: S608


def write(db: apsw.Connection, put: Sequence[SourceRecords], drop: Iterable[str]) -> None:
    """Drop sources and replace the records of others; call it within a transaction."""
    _refuse_doubles(put)
    for uri in drop:
        remove(
            db, [number for (number,) in db.execute("SELECT number FROM records WHERE source = ?", (uri,))]
        )
        db.execute("DELETE FROM sources WHERE uri = ?", (uri,))
    # Removals first, because a record may have moved from one file to another.
    for source, records in put:
        if source is not None:
            _register(db, source)
            _remove_missing(db, source.uri, {record.id for record in records})
    for source, records in put:
        for record in records:
            _put(db, source, record)


def remove(db: apsw.Connection, numbers: Iterable[int]) -> None:
    """Remove records, and log the removal for the indexes."""
    for number in numbers:
        db.execute("DELETE FROM records WHERE number = ?", (number,))
        db.execute("INSERT INTO removed (number) VALUES (?)", (number,))


def _refuse_doubles(put: Sequence[SourceRecords]) -> None:
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


_MOST_CHARACTERS = 4_000_000
"""The maximum number of characters read at once."""


class Position(NamedTuple):
    """A position in the records: the highest record number and the last removal step."""

    number: int = 0
    step: int = 0


class Numbered(NamedTuple):
    """A record and its number, which stays the same until the record changes."""

    number: int
    record: Record


def position(db: apsw.Connection) -> Position:
    """The current position."""
    rows: Iterable[Any] = db.execute("SELECT name, seq FROM sqlite_sequence")
    last: dict[str, int] = dict(rows)
    return Position(last.get("records", 0), last.get("removed", 0))


def by_ids(db: apsw.Connection, ids: Sequence[str]) -> list[Record]:
    """Records by id in the given order, each once, without unknown ids."""
    found = (
        db.execute(f"SELECT {COLUMNS} FROM records WHERE id = ?", (id_,)).get  # noqa: S608
        for id_ in dict.fromkeys(ids)
    )
    return [from_row(row) for row in found if row is not None]


def by_numbers(db: apsw.Connection, numbers: Sequence[int]) -> dict[int, Record]:
    """Existing records by number."""
    places = ", ".join("?" * len(numbers))
    rows = db.execute(
        f"SELECT number, {COLUMNS} FROM records WHERE number IN ({places})",  # noqa: S608
        tuple(numbers),
    )
    return {row[0]: from_row(row[1:]) for row in rows}


def after(db: apsw.Connection, number: int, most: int) -> list[Numbered]:
    """The next records above a number; fewer if they are long."""
    rows = db.execute(
        f"SELECT number, {COLUMNS} FROM records WHERE number > ? ORDER BY number LIMIT ?",  # noqa: S608
        (number, most),
    )
    found: list[Numbered] = []
    characters = 0
    for row in rows:
        found.append(Numbered(row[0], from_row(row[1:])))
        characters += len(found[-1].record.text)
        if characters > _MOST_CHARACTERS:
            break
    return found


def count_after(db: apsw.Connection, number: int) -> int:
    """The number of records above a number."""
    count: Any = db.execute("SELECT count(*) FROM records WHERE number > ?", (number,)).get
    return int(count)


def removed_after(db: apsw.Connection, step: int) -> list[int]:
    """The record numbers that were removed after a step."""
    rows: Iterable[Any] = db.execute("SELECT number FROM removed WHERE step > ?", (step,))
    return [number for (number,) in rows]


def page(db: apsw.Connection, after_id: str, most: int) -> list[Record]:
    """The next records by id."""
    rows = db.execute(
        f"SELECT {COLUMNS} FROM records WHERE id > ? ORDER BY id LIMIT ?",  # noqa: S608
        (after_id, most),
    )
    return [from_row(row) for row in rows]


def sources(db: apsw.Connection, collection: str | None) -> Iterator[Source]:
    """The sources of a collection, or all."""
    rows = db.execute(
        "SELECT uri, digest, collection FROM sources WHERE ? IS NULL OR collection = ? ORDER BY uri",
        (collection, collection),
    )
    return (Source(*row) for row in rows)


def counts(db: apsw.Connection) -> dict[tuple[str, str], int]:
    """The number of records by namespace and type."""
    rows = db.execute("SELECT namespace, type, count(*) FROM records GROUP BY namespace, type")
    return {(namespace, type_): count for namespace, type_, count in rows}


class Holder(NamedTuple):
    """The source and owner of a record."""

    uri: str
    owner: str | None
    """The owner of a personal record."""


def holders(db: apsw.Connection, ids: Iterable[str]) -> dict[str, Holder]:
    """The source and owner of each existing record."""
    found = {}
    for id_ in ids:
        for uri, owner in db.execute("SELECT source, owner FROM records WHERE id = ?", (id_,)):
            found[id_] = Holder(uri or NOWHERE, owner)
    return found

"""Reading the truth: by id, by number, and what an index has yet to learn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw
from jackfield_capability_types.knowledge import Record

from jackfield_kb.truth.rows import COLUMNS, from_row
from jackfield_kb.truth.writing import NOWHERE, Source

_MOST_CHARACTERS = 4_000_000
"""Of the texts that are taken into memory at once."""


class Position(NamedTuple):
    """How far something has followed the truth: the highest number, and the last step of removals."""

    number: int = 0
    step: int = 0


class Numbered(NamedTuple):
    """A record under the number it has as long as it does not change."""

    number: int
    record: Record


def position(db: apsw.Connection) -> Position:
    """Where the truth stands."""
    rows: Iterable[Any] = db.execute("SELECT name, seq FROM sqlite_sequence")
    last: dict[str, int] = dict(rows)
    return Position(last.get("records", 0), last.get("removed", 0))


def by_ids(db: apsw.Connection, ids: Sequence[str]) -> list[Record]:
    """Records in the order asked, each once; those that are not there are left out."""
    found = (
        db.execute(f"SELECT {COLUMNS} FROM records WHERE id = ?", (id_,)).get  # noqa: S608
        for id_ in dict.fromkeys(ids)
    )
    return [from_row(row) for row in found if row is not None]


def by_numbers(db: apsw.Connection, numbers: Sequence[int]) -> dict[int, Record]:
    """Records by number; those that are no longer there are left out."""
    places = ", ".join("?" * len(numbers))
    rows = db.execute(
        f"SELECT number, {COLUMNS} FROM records WHERE number IN ({places})",  # noqa: S608
        tuple(numbers),
    )
    return {row[0]: from_row(row[1:]) for row in rows}


def after(db: apsw.Connection, number: int, most: int) -> list[Numbered]:
    """The next records above a number; fewer when they are long."""
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
    """How many records stand above a number."""
    count: Any = db.execute("SELECT count(*) FROM records WHERE number > ?", (number,)).get
    return int(count)


def removed_after(db: apsw.Connection, step: int) -> list[int]:
    """The numbers that went after a step."""
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
    """How many records there are of each namespace and type."""
    rows = db.execute("SELECT namespace, type, count(*) FROM records GROUP BY namespace, type")
    return {(namespace, type_): count for namespace, type_, count in rows}


class Holder(NamedTuple):
    """Who has an id."""

    uri: str
    owner: str | None
    """The user whose personal record it is."""


def holders(db: apsw.Connection, ids: Iterable[str]) -> dict[str, Holder]:
    """The source that each record comes from, and its owner; ids that nobody has are left out."""
    found = {}
    for id_ in ids:
        for uri, owner in db.execute("SELECT source, owner FROM records WHERE id = ?", (id_,)):
            found[id_] = Holder(uri or NOWHERE, owner)
    return found

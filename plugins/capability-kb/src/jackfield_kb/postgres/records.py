"""Records in PostgreSQL, shared by any number of hosts."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from jackfield_capability_types.knowledge import Record

from jackfield_kb.access import Access, scopes_of
from jackfield_kb.errors import ClaimedTwiceError, LibraryError
from jackfield_kb.postgres import passages
from jackfield_kb.postgres.database import SessionPool
from jackfield_kb.postgres.leases import SECONDS, Leases
from jackfield_kb.postgres.schema import Connection
from jackfield_kb.records.interface import (
    NOWHERE,
    Changes,
    Numbered,
    Position,
    Source,
    SourceAndOwner,
    SourceRecords,
)
from jackfield_kb.records.rows import COLUMNS, digest, from_row, in_microseconds, refuse_doubles, to_row
from jackfield_kb.records.sqlite import MOST_CHARACTERS

if TYPE_CHECKING:
    from jackfield_kb.records.interface import PassageVectors

EVERYTHING = Access.everything()
_STORED = f"number, source, digest, {COLUMNS}, scope, facets, updated, characters"
_INSERT = (
    f"INSERT INTO records ({_STORED}) "  # noqa: S608
    f"VALUES ({', '.join(f'${place}' for place in range(1, len(_STORED.split(',')) + 1))})"
)
_AFTER = f"""
    SELECT number, digest, {COLUMNS} FROM (
        SELECT *, sum(characters) OVER (ORDER BY number) - characters AS before
        FROM (SELECT * FROM records WHERE number > $1 ORDER BY number LIMIT $2) AS next
    ) AS counted
    WHERE before <= {MOST_CHARACTERS} ORDER BY number
"""  # noqa: S608
_VISIBLE = "($2::text[] IS NULL OR scope = ANY ($2))"


class StoredRow(NamedTuple):
    """A record as stored in the database, for a copy of the records."""

    number: int
    digest: bytes
    row: Sequence[Any]
    """The values of `COLUMNS`."""


class Head(NamedTuple):
    """The identity of the library, and its position."""

    library: str
    position: Position


class PostgresRecords:
    """The records of one database."""

    def __init__(self, database: SessionPool, *, lease: float = SECONDS) -> None:
        self.database = database
        self.leases = Leases(database, lease)

    @property
    def place(self) -> str:
        """The location of the records, without secrets."""
        return self.database.place

    def write(self, put: Sequence[SourceRecords], drop: Iterable[str]) -> None:
        """Drop sources and replace the records of others, in one transaction."""
        refuse_doubles(put)
        rows = {record.id: _prepared(source, record) for source, records in put for record in records}
        drop = list(drop)

        async def work(connection: Connection) -> None:
            writer = await _Writer.begun(connection, self.leases)
            if drop:
                await writer.remove("source = ANY ($1)", drop)
                await connection.execute("DELETE FROM sources WHERE uri = ANY ($1)", drop)
            # Removals first, because a record may have moved from one file to another.
            for source, records in put:
                if source is not None:
                    await connection.execute(_REGISTER, *source, socket.gethostname())
                    ids = [record.id for record in records]
                    await writer.remove("source = $1 AND NOT id = ANY ($2)", source.uri, ids)
            await writer.put(rows)
            await writer.finish()

        self.database.run(work, EVERYTHING)
        self.database.announce()

    def delete(self, ids: Iterable[str]) -> None:
        """Remove records by id."""
        gone = list(ids)

        async def work(connection: Connection) -> None:
            writer = await _Writer.begun(connection, self.leases)
            await writer.remove("id = ANY ($1)", gone)
            await writer.finish()

        self.database.run(work, EVERYTHING)
        self.database.announce()

    @contextmanager
    def loading(self, uris: Sequence[str]) -> Iterator[None]:
        """Lock these files and folders for one loader; raises `LibraryError` if another is loading them.

        A loader that died does not count: this waits until its lease has expired.
        """
        names = [f"load:{uri.rstrip('/')}" for uri in uris]
        with self.leases.held(names, wait=1.5 * self.leases.seconds) as other:
            if other is not None:
                raise LibraryError(
                    f"{other.name.removeprefix('load:')} is being loaded by {other.holder}; "
                    "run the command again when it has finished"
                )
            yield

    def head(self) -> Head:
        """Return the identity of the library, and its position."""
        return self.database.query(_head)

    def position(self) -> Position:
        """Return the current position."""
        return self.head().position

    def changes(self, since: Position) -> Changes:
        """Return the current position, and the records that were removed since an earlier one."""

        async def work(connection: Connection) -> Changes:
            # A removal after this position has a later step, so nothing is missed.
            head = await _head(connection)
            if not since.number:
                return Changes(head.position, [])
            rows = await connection.fetch(
                "SELECT number FROM removed WHERE step > $1 AND step <= $2 ORDER BY step",
                since.step,
                head.position.step,
            )
            return Changes(head.position, [number for (number,) in rows])

        return self.database.query(work)

    def rows_after(self, number: int, most: int) -> list[StoredRow]:
        """Return the next records above a number, as stored; fewer than `most` if they are long."""
        rows = self.database.run(lambda connection: connection.fetch(_AFTER, number, most), EVERYTHING)
        return [StoredRow(row[0], row[1], tuple(row)[2:]) for row in rows]

    def after(self, number: int, most: int) -> list[Numbered]:
        """Return the next records above a number; fewer than `most` if they are long."""
        return [Numbered(each.number, from_row(each.row)) for each in self.rows_after(number, most)]

    def count_after(self, number: int) -> int:
        """Return the number of records above a number."""
        return int(self._value("SELECT count(*) FROM records WHERE number > $1", number))

    def vectors(self, model: str, items: Sequence[Numbered]) -> dict[int, PassageVectors]:
        """Return the stored vectors of records by number, up to the first record that has none yet."""
        from jackfield_kb.postgres.embeddings import stored_vectors

        return self.database.query(
            lambda connection: stored_vectors(connection, model, [item.number for item in items])
        )

    def by_ids(self, ids: Sequence[str], access: Access) -> list[Record]:
        """Return the records that the user may see, by id, in the given order, each once."""
        # PostgreSQL cannot store zero bytes, so no record has an id with one.
        asked = [id_ for id_ in dict.fromkeys(ids) if "\0" not in id_]
        rows = self._visible("id", asked, access)
        found = {row["id"]: from_row(tuple(row)[1:]) for row in rows}
        return [found[id_] for id_ in asked if id_ in found]

    def by_numbers(self, numbers: Sequence[int], access: Access) -> dict[int, Record]:
        """Return the existing records that the user may see, by number."""
        return {row["number"]: from_row(tuple(row)[1:]) for row in self._visible("number", numbers, access)}

    def page(self, after_id: str, most: int) -> list[Record]:
        """Return the next records, ordered by id."""
        statement = f"SELECT {COLUMNS} FROM records WHERE id > $1 ORDER BY id LIMIT $2"  # noqa: S608
        return [from_row(tuple(row)) for row in self._rows(statement, after_id, most)]

    def sources(self, collection: str | None) -> list[Source]:
        """Return the sources of a collection, or all sources, ordered by URI."""
        rows = self._rows(
            "SELECT uri, digest, collection FROM sources "
            "WHERE $1::text IS NULL OR collection = $1 ORDER BY uri",
            collection,
        )
        return [Source(*row) for row in rows]

    def holders(self, ids: Iterable[str]) -> dict[str, SourceAndOwner]:
        """Return the source and owner of each existing record."""
        rows = self._rows(
            "SELECT id, source, owner, coalesce(host = $2, true) AS is_local "
            "FROM records LEFT JOIN sources ON uri = source WHERE id = ANY ($1)",
            list(ids),
            socket.gethostname(),
        )
        return {id_: SourceAndOwner(uri or NOWHERE, owner, is_local) for id_, uri, owner, is_local in rows}

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of records by namespace and type."""
        rows = self._rows("SELECT namespace, type, count(*) FROM records GROUP BY namespace, type")
        return {(namespace, type_): count for namespace, type_, count in rows}

    def bytes(self) -> int:
        """Return the size of the record tables."""
        return int(
            self._value("SELECT pg_total_relation_size('records') + pg_total_relation_size('removed')")
        )

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def _visible(self, column: str, values: Sequence[Any], access: Access) -> list[Any]:
        """Return the rows that the user may see; row-level security alone would be enough."""
        scopes = access.scopes(None)
        statement = (
            f"SELECT number, {COLUMNS} FROM records "  # noqa: S608
            f"WHERE {column} = ANY ($1) AND {_VISIBLE}"
        )
        asked = None if scopes is None else sorted(scopes)
        return self.database.run(lambda connection: connection.fetch(statement, list(values), asked), access)

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        return self.database.run(lambda connection: connection.fetch(statement, *values), EVERYTHING)

    def _value(self, statement: str, *values: Any) -> Any:
        return self.database.run(lambda connection: connection.fetchval(statement, *values), EVERYTHING)


_REGISTER = """
    INSERT INTO sources (uri, digest, collection, host) VALUES ($1, $2, $3, $4)
    ON CONFLICT (uri) DO UPDATE
    SET digest = excluded.digest, collection = excluded.collection, host = excluded.host
"""


async def _head(connection: Connection) -> Head:
    library, number, step = await connection.fetchrow("SELECT library, number, step FROM head")  # type: ignore[misc]
    return Head(library, Position(number, step))


class _Prepared(NamedTuple):
    source: str | None
    digest: bytes
    values: tuple[Any, ...]
    """The values of `_STORED` after the digest."""


def _prepared(source: Source | None, record: Record) -> _Prepared:
    row = to_row(record)
    moment = None if record.last_updated is None else in_microseconds(record.last_updated)
    # PostgreSQL cannot store zero bytes in text, where they have no meaning anyway.
    stored = tuple(value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in row)
    facets = [*(f"scope:{scope}" for scope in scopes_of(record)), f"type:{record.type}"]
    facets += [f"tag:{tag}" for tag in dict.fromkeys(record.tags)]
    own = (scopes_of(record)[-1], facets, moment, len(record.text))
    return _Prepared(None if source is None else source.uri, digest(row), (*stored, *own))


class _Writer:
    """One transaction that writes records; it locks the row of `head`."""

    def __init__(self, connection: Connection, position: Position) -> None:
        self._connection = connection
        self._number, self._step = position

    @classmethod
    async def begun(cls, connection: Connection, leases: Leases) -> _Writer:
        """Lock the head, and check that this process may still write."""
        row = await connection.fetchrow("SELECT number, step FROM head FOR UPDATE")
        await leases.check(connection)
        return cls(connection, Position(*row))  # type: ignore[misc]

    async def remove(self, condition: str, *values: Any) -> None:
        """Remove the records that match a condition, and log the removal for the indexes."""
        rows = await self._connection.fetch(
            f"SELECT number FROM records WHERE {condition} ORDER BY number",  # noqa: S608
            *values,
        )
        numbers = [number for (number,) in rows]
        if not numbers:
            return
        await passages.remove(self._connection, numbers)
        await self._connection.execute("DELETE FROM records WHERE number = ANY ($1)", numbers)
        await self._connection.execute(
            "INSERT INTO removed (step, number) "
            "SELECT $2 + place, number FROM unnest($1::bigint[]) WITH ORDINALITY AS gone (number, place)",
            numbers,
            self._step,
        )
        self._step += len(numbers)

    async def put(self, rows: dict[str, _Prepared]) -> None:
        """Add new and changed records; a record that did not change keeps its number."""
        known = await self._connection.fetch(
            "SELECT id, number, source, digest FROM records WHERE id = ANY ($1)", list(rows)
        )
        fresh = dict(rows)
        changed = []
        for id_, number, source, mark in known:
            if source != rows[id_].source:
                raise ClaimedTwiceError(id_, source or NOWHERE, rows[id_].source or NOWHERE)
            if mark == rows[id_].digest:
                del fresh[id_]
            else:
                changed.append(number)
        if changed:
            await self.remove("number = ANY ($1)", changed)
        await self._connection.executemany(
            _INSERT,
            [
                (number, each.source, each.digest, *each.values)
                for number, each in enumerate(fresh.values(), self._number + 1)
            ],
        )
        self._number += len(fresh)

    async def finish(self) -> None:
        """Publish the new position."""
        await self._connection.execute("UPDATE head SET number = $1, step = $2", self._number, self._step)

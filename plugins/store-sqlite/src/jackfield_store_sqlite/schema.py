"""The tables, and how a file from an older version gets them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import apsw
from jackfield.store import StoreUnavailableError

from jackfield_store_sqlite.transaction import writing

APPLICATION = 0x4A4B4644
"""What `file` and `PRAGMA application_id` show for a store, so that no other database is taken for one."""

# In the order in which they were released: the number of those a file has is its `user_version`. What stands
# here was released and never changes; a change is one more at the end.
MIGRATIONS: Sequence[str] = (
    """
    CREATE TABLE clock (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        boot TEXT NOT NULL, wall REAL NOT NULL, uptime REAL NOT NULL, latest REAL NOT NULL
    );
    CREATE TABLE owners (
        id TEXT PRIMARY KEY, boot TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL,
        namespace TEXT NOT NULL, lease REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE kept (key TEXT PRIMARY KEY, value BLOB NOT NULL, expires REAL);
    CREATE TABLE counters (key TEXT PRIMARY KEY, count INTEGER NOT NULL, expires REAL NOT NULL);
    CREATE TABLE claims (
        key TEXT PRIMARY KEY, fingerprint BLOB NOT NULL, owner TEXT NOT NULL, result BLOB, expires REAL
    );
    CREATE TABLE streams (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, last INTEGER NOT NULL);
    CREATE TABLE entries (
        stream INTEGER NOT NULL, id INTEGER NOT NULL, value BLOB NOT NULL, expires REAL,
        UNIQUE (stream, id)
    );
    CREATE INDEX kept_expiry ON kept (expires) WHERE expires IS NOT NULL;
    CREATE INDEX counters_expiry ON counters (expires);
    CREATE INDEX claims_expiry ON claims (expires) WHERE expires IS NOT NULL;
    CREATE INDEX entries_expiry ON entries (expires) WHERE expires IS NOT NULL;
    """,
    # What a person is told of a claim without a result; such a claim does not expire while it has a note.
    """
    ALTER TABLE claims ADD COLUMN note BLOB;
    CREATE INDEX claims_noted ON claims (key) WHERE note IS NOT NULL;
    """,
    # A file that has been in use before gets its id now; nobody knows when it was created.
    """
    CREATE TABLE identity (only INTEGER PRIMARY KEY CHECK (only = 1), id TEXT NOT NULL, created REAL);
    INSERT INTO identity SELECT 1, lower(hex(randomblob(16))),
        CASE WHEN EXISTS (SELECT 1 FROM clock) THEN NULL ELSE unixepoch('subsec') END;
    """,
)


class Identity(NamedTuple):
    """Which store a file holds: two stores never share an id, but a backup has the id of its store."""

    id: str
    created: float | None
    """Seconds since 1970; None where the file is older than this record."""


def identity(db: apsw.Connection) -> Identity:
    """The identity of a store that is up to date."""
    return Identity(*db.execute("SELECT id, created FROM identity").get)


def known_identity(db: apsw.Connection) -> Identity | None:
    """The identity of a store, unless it is from before stores had one."""
    return identity(db) if db.table_exists("main", "identity") else None


def is_empty(db: apsw.Connection) -> bool:
    """Whether a database holds no tables at all."""
    return bool(db.execute("SELECT count(*) FROM sqlite_schema").get == 0)


def why_not(db: apsw.Connection, path: Path, pinned: str | None) -> str | None:
    """Why a database is not the store that was asked for, and what to do; None when it is."""
    if is_empty(db):
        return (
            f"{path} is empty and not a store; put the file back or restore a backup, or, if this is a new "
            "deployment, remove the empty file and run `jackfield store create`"
        )
    if db.pragma("application_id") != APPLICATION:
        return f"{path} is another program's SQLite database; give the store another path"
    found = known_identity(db)
    if pinned is None or (found is not None and found.id == pinned):
        return None
    has = f"has the id {found.id}" if found else "is from an older version and has no id yet"
    return (
        f"the store {path} {has}, but [stores.sqlite] asks for the id {pinned}: it is not the same store; "
        "put the right file back, or, if you want to use this one, change the setting `id`"
    )


def bring_up_to_date(
    db: apsw.Connection, path: Path, patience: float, turn: AbstractContextManager[None]
) -> None:
    """Give an empty or older file the tables of this version; refuse a newer one."""
    _version(db, path)
    _switch_to_wal(db, patience)
    while _version(db, path) < len(MIGRATIONS):
        with writing(db, turn):
            # Asks for the version again: another process may have been faster.
            _next_migration(db, path)


def _next_migration(db: apsw.Connection, path: Path) -> None:
    version = _version(db, path)
    if version < len(MIGRATIONS):
        db.execute(MIGRATIONS[version])
        db.pragma("application_id", APPLICATION)
        db.pragma("user_version", version + 1)


def _version(db: apsw.Connection, path: Path) -> int:
    version: int = db.pragma("user_version")
    if version > len(MIGRATIONS):
        raise StoreUnavailableError(
            f"the store {path} was written by a newer version (its schema is {version}, this one knows up to "
            f"{len(MIGRATIONS)}); upgrade jackfield-store-sqlite"
        )
    return version


def _switch_to_wal(db: apsw.Connection, patience: float) -> None:
    """Done once in the life of a file: SQLite waits for nobody here, and two processes may start together."""
    until = time.monotonic() + patience
    while db.pragma("journal_mode") != "wal":
        try:
            db.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.002)

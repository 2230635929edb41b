"""Tables, migrations and identity of a store file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import apsw
from jackfield.store import StoreUnavailableError

from jackfield_store_sqlite.writer_lock import write_transaction

APPLICATION = 0x4A4B4644
"""`application_id` of a store, which distinguishes it from other SQLite databases."""

PAGE_BYTES = 2048
"""Page size of a new file. Most writes change a few short rows, and every page that changes is written."""

# `user_version` of a file is the number of migrations it has. Existing migrations never change; a change is
# appended as a new one.
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
    # The note describes a claim without a result to a person; a claim with a note does not expire.
    """
    ALTER TABLE claims ADD COLUMN note BLOB;
    CREATE INDEX claims_noted ON claims (key) WHERE note IS NOT NULL;
    """,
    # A file from an older version gets its id now; its creation time is unknown.
    """
    CREATE TABLE identity (only INTEGER PRIMARY KEY CHECK (only = 1), id TEXT NOT NULL, created REAL);
    INSERT INTO identity SELECT 1, lower(hex(randomblob(16))),
        CASE WHEN EXISTS (SELECT 1 FROM clock) THEN NULL ELSE unixepoch('subsec') END;
    """,
    # Without indexes on the expiry, see `expiry.py`. It is the first column, so that a search for expired
    # rows does not read the pages of long values.
    """
    DROP INDEX counters_expiry;
    ALTER TABLE kept RENAME TO kept_before;
    CREATE TABLE kept (expires REAL, key TEXT PRIMARY KEY, value BLOB NOT NULL);
    INSERT INTO kept (expires, key, value) SELECT expires, key, value FROM kept_before ORDER BY rowid;
    DROP TABLE kept_before;
    ALTER TABLE claims RENAME TO claims_before;
    CREATE TABLE claims (
        expires REAL, key TEXT PRIMARY KEY, fingerprint BLOB NOT NULL, owner TEXT NOT NULL, note BLOB,
        result BLOB
    );
    INSERT INTO claims (expires, key, fingerprint, owner, note, result)
        SELECT expires, key, fingerprint, owner, note, result FROM claims_before ORDER BY rowid;
    DROP TABLE claims_before;
    CREATE INDEX claims_noted ON claims (key) WHERE note IS NOT NULL;
    ALTER TABLE entries RENAME TO entries_before;
    CREATE TABLE entries (
        expires REAL, stream INTEGER NOT NULL, id INTEGER NOT NULL, value BLOB NOT NULL, UNIQUE (stream, id)
    );
    INSERT INTO entries (expires, stream, id, value)
        SELECT expires, stream, id, value FROM entries_before ORDER BY rowid;
    DROP TABLE entries_before;
    """,
)


class StoreIdentity(NamedTuple):
    """Identity of a store, unique per store; a backup has the id of its original."""

    id: str
    created: float | None
    """Seconds since 1970; None if the file is older than this column."""


def identity(db: apsw.Connection) -> StoreIdentity:
    """Return the identity of a migrated store."""
    return StoreIdentity(*db.execute("SELECT id, created FROM identity").get)


def known_identity(db: apsw.Connection) -> StoreIdentity | None:
    """Return the identity of a store, or None if its version has none."""
    return identity(db) if db.table_exists("main", "identity") else None


def is_empty(db: apsw.Connection) -> bool:
    """True if a database has no tables."""
    return bool(db.execute("SELECT count(*) FROM sqlite_schema").get == 0)


def rejection_reason(db: apsw.Connection, path: Path, pinned: str | None) -> str | None:
    """Return why a database is not the configured store and what to do; None if it is."""
    if is_empty(db):
        return (
            f"{path} is empty and not a store; put the file back or restore a backup, or, if this is a new "
            "deployment, remove the empty file and run `jackfield store create`"
        )
    if db.pragma("application_id") != APPLICATION:
        return f"{path} is another program's SQLite database; give the store a different path"
    found = known_identity(db)
    if pinned is None or (found is not None and found.id == pinned):
        return None
    has = f"has the id {found.id}" if found else "is from an older version and has no id yet"
    return (
        f"the store {path} {has}, but [stores.sqlite] requires the id {pinned}: it is not the same store; "
        "put the right file back, or, if you want to use this one, change the `id` setting"
    )


def migrate(db: apsw.Connection, path: Path, patience: float, lock: AbstractContextManager[None]) -> None:
    """Migrate an empty or older file to this version; reject a newer one."""
    _version(db, path)
    # Has no effect on a file that has pages already.
    db.pragma("page_size", PAGE_BYTES)
    _switch_to_wal(db, patience)
    while _version(db, path) < len(MIGRATIONS):
        with write_transaction(db, lock):
            # Reads the version again: another process may have migrated the file.
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
    """Switch to WAL with retries: SQLite does not wait here, and processes may start at the same time."""
    until = time.monotonic() + patience
    while db.pragma("journal_mode") != "wal":
        try:
            db.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.002)

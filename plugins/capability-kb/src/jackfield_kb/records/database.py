"""The SQLite file that holds every record; both indexes are built from it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from jackfield_kb.errors import LibraryError
from jackfield_kb.index_files import locked

_PATIENCE_MS = 30_000
"""How long a writer waits for another one; a load commits far more often."""


class RecordDatabase:
    """A SQLite file, created on first use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._idle: list[apsw.Connection] = []
        self._ready = False
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """Read in one transaction, which sees a consistent state."""
        with reported(self.path), self._connected() as db:
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """Write in one transaction, which is committed or rolled back."""
        with reported(self.path), self._connected() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            finally:
                # Some errors, such as a full disk, roll back on their own.
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def close(self) -> None:
        """Close idle connections; connections in use are closed when they are returned."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close(True)

    @contextmanager
    def _connected(self) -> Iterator[apsw.Connection]:
        with self._lock:
            if self._closed:
                raise LibraryError(f"the knowledge base {self.path} is closed")
            db = self._idle.pop() if self._idle else self._open()
        try:
            yield db
        finally:
            with self._lock:
                if self._closed:
                    db.close(True)
                else:
                    self._idle.append(db)

    def _open(self) -> apsw.Connection:
        if not self._ready:
            # Two processes that switch a new file to WAL mode at once would find it locked.
            with locked(self.path.with_name("creation.lock"), wait=True):
                self._prepare()
            self._ready = True
        db = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
        db.set_busy_timeout(_PATIENCE_MS)
        db.pragma("synchronous", "FULL")
        db.pragma("foreign_keys", True)
        return db

    def _prepare(self) -> None:
        # Readable by the owner only, because it contains personal records.
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        db = apsw.Connection(str(self.path))
        try:
            db.set_busy_timeout(_PATIENCE_MS)
            if db.pragma("journal_mode") != "wal":
                db.pragma("journal_mode", "wal")
            bring_up_to_date(db, self.path)
        finally:
            db.close()


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Turn SQLite and system errors into `LibraryError`."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise LibraryError(f"the knowledge base {path} {_why(error)}") from error


def _why(error: Exception) -> str:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return "is being written by another process, which did not finish in time; try again"
        case apsw.FullError():
            return "cannot be written: its disk is full"
        case apsw.CorruptError():
            return f"is damaged ({error}); keep the file, and restore a backup or load the documents again"
        case apsw.NotADBError():
            return "is not a SQLite database; move the file away, or use a different folder"
        case apsw.ReadOnlyError():
            return f"cannot be written ({error}); check the permissions of the file and of its folder"
    return f"cannot be reached ({error})"


VERSION = 1
_APPLICATION = 0x4A464B42  # "JFKB"

_TABLES = """
CREATE TABLE sources (
    uri TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    collection TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sources_by_collection ON sources (collection);

-- A record that changes gets a new number, and numbers are never reused. So what an index holds under a
-- number stays correct, and the index lacks exactly the records above its highest number.
CREATE TABLE records (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    source TEXT REFERENCES sources (uri),
    digest BLOB NOT NULL,
    type TEXT NOT NULL,
    namespace TEXT NOT NULL,
    owner TEXT,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    tags TEXT NOT NULL,
    url TEXT,
    source_type TEXT NOT NULL,
    last_updated TEXT,
    metadata TEXT NOT NULL
) STRICT;
CREATE INDEX records_by_source ON records (source, id);
CREATE INDEX records_by_kind ON records (namespace, type);

-- The numbers of deleted records, in the order of their deletion.
CREATE TABLE removed (
    step INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER NOT NULL
) STRICT;
"""


def bring_up_to_date(db: apsw.Connection, path: Path) -> None:
    """Create the tables in an empty file; reject other files and later versions."""
    db.execute("BEGIN IMMEDIATE")
    try:
        version, application = db.pragma("user_version"), db.pragma("application_id")
        if version == 0 and application == 0 and not db.execute("SELECT 1 FROM sqlite_schema").get:
            db.execute(_TABLES)
            db.pragma("application_id", _APPLICATION)
            db.pragma("user_version", VERSION)
        elif application != _APPLICATION:
            raise LibraryError(f"{path} is not a knowledge base; use a different folder")
        elif version > VERSION:
            raise LibraryError(
                f"{path} was created by a later version of jackfield-capability-kb; install that version"
            )
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")

"""The SQLite file of a store: one connection per thread, one clock per process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import apsw
from jackfield.store import StoreUnavailableError

from jackfield_store_sqlite import creation, process_identity, schema
from jackfield_store_sqlite.errors import closed_error, translate_errors
from jackfield_store_sqlite.process_identity import Machine
from jackfield_store_sqlite.writer_lock import WriterLock, write_transaction

_TRUST_SECONDS = 0.1
"""Seconds until the event loop and readers check again that their file is still at its path."""


Inode = tuple[int, int]
"""Device and inode number of a file; they identify it as long as it exists."""


class StoreConnection(apsw.Connection):
    """A connection that executes all statements with one cursor.

    Creating a cursor costs as much as a short statement. Because the cursor is shared, the caller must read a
    statement's rows before it executes the next statement.
    """

    def __init__(self, path: Path, patience: float) -> None:
        super().__init__(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        # One handler per connection: a connection that reads on the event loop must not block.
        self.set_busy_handler(_BusyHandler(patience))
        self.execute = self.cursor().execute  # type: ignore[method-assign]


@dataclass(slots=True)
class _ThreadConnection:
    connection: StoreConnection
    trusted_until: float = 0.0


class StoreDatabase:
    """A SQLite file, opened once and used only while the same file is at its path.

    Without `create`, a missing file or a file without a store is rejected. With `store_id`, a store with
    a different id is rejected.
    """

    def __init__(
        self,
        path: Path,
        machine: Machine,
        *,
        lease: float,
        patience: float,
        create: bool = True,
        store_id: str | None = None,
    ) -> None:
        self.path = path
        self.writer_lock = WriterLock(path, patience / 2)
        self._machine = machine
        self._lease = lease
        self._patience = patience
        self._create = create and store_id is None
        self._store_id = store_id
        self._preparing = threading.Lock()
        self._inode: Inode | None = None
        self.anchor: process_identity.Anchor | None = None
        """The file's clock; None until the file is open and has this version's tables."""
        self._uptime = machine.uptime
        self._boot = 0.0
        """The store's time at which the machine's uptime was 0."""
        self.log_pages = 0
        """The length of the write-ahead log when `read_log_pages` last read it."""
        self._local = threading.local()
        self._connections: list[_ThreadConnection] = []
        self._closed = False

    def now(self) -> float:
        """Return the store's time."""
        if self.anchor is None:
            self.prepare()
        return self._boot + self._uptime()

    def prepare(self) -> process_identity.Anchor:
        """Create the file if allowed, migrate it and read the clock anchor."""
        with self._preparing, translate_errors(self.path):
            if self._closed:
                raise closed_error(self.path)
            if self.anchor is None:
                if self._create and not self.path.exists():
                    self._create_file()
                self._inode = _identify(self.path)
                anchor = self._read_clock()
                self._boot = anchor.wall - anchor.uptime
                self.anchor = anchor
            return self.anchor

    def _create_file(self) -> None:
        try:
            creation.initialise(self.path)
        except StoreUnavailableError:
            # Another process that starts at the same time may have created it.
            if not self.path.exists():
                raise

    def _read_clock(self) -> process_identity.Anchor:
        if self.path.is_dir():
            raise StoreUnavailableError(f"{self.path} is a folder; the store needs the path of a file")
        db = StoreConnection(self.path, self._patience)
        try:
            why = schema.rejection_reason(db, self.path, self._store_id)
            if why and not (self._create and schema.is_empty(db)):
                raise StoreUnavailableError(why)
            schema.migrate(db, self.path, self._patience, self.writer_lock)
            with write_transaction(db, self.writer_lock):
                return process_identity.read_anchor(db, self._machine, self._lease)
        finally:
            db.close()

    def connection(self, *, wait_for_lock: bool = True) -> StoreConnection:
        """Return this thread's connection after checking that its file is still the one at the path.

        Without `wait_for_lock`, the connection fails at once on a locked file.
        """
        if self._closed:
            raise closed_error(self.path)
        now = self.now()
        # A lost file must not be recreated or replaced: the claims in it would be lost, and their calls
        # would run a second time.
        if _identify(self.path) != self._inode:
            raise StoreUnavailableError(
                f"a different file has replaced the store {self.path}; stop all processes that use it, "
                "remove the remaining files of the old one, and start them again"
            )
        cached: _ThreadConnection | None = getattr(self._local, "cached", None)
        if cached is None:
            cached = self._local.cached = _ThreadConnection(
                StoreConnection(self.path, self._patience if wait_for_lock else 0.0)
            )
            # Checkpoints flush, so SQLite must not add one to a write. The writer thread runs them.
            cached.connection.wal_autocheckpoint(0)
            if not wait_for_lock:
                # Writes on this connection are not flushed.
                cached.connection.pragma("synchronous", "NORMAL")
            self._connections.append(cached)
        cached.trusted_until = now + _TRUST_SECONDS
        return cached.connection

    def trusted_connection(self, now: float, *, wait_for_lock: bool = True) -> StoreConnection:
        """Return this thread's connection, whose file may have been replaced in the last 0.1 seconds."""
        cached: _ThreadConnection | None = getattr(self._local, "cached", None)
        if cached is not None and now < cached.trusted_until and not self._closed:
            return cached.connection
        return self.connection(wait_for_lock=wait_for_lock)

    @contextmanager
    def short_patience(self, seconds: float) -> Iterator[None]:
        """Let this thread's connection wait for locks only this long."""
        db = self.connection()
        db.set_busy_handler(_BusyHandler(seconds))
        try:
            yield
        finally:
            db.set_busy_handler(_BusyHandler(self._patience))

    @contextmanager
    def log_kept(self, patience: float) -> Iterator[None]:
        """Keep the write-ahead log from being restarted; `patience` is how long to wait for locks."""
        db = StoreConnection(self.path, patience)
        try:
            # SQLite does not restart the log while an open transaction is reading from it.
            db.execute("BEGIN")
            db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            yield
        finally:
            db.close(True)

    def read_log_pages(self, db: apsw.Connection) -> int:
        """Read the length of the write-ahead log, in pages.

        A hook that SQLite calls after each commit would cost more. An error must not make the commit appear
        to have failed; the next operation reports it.
        """
        with suppress(apsw.Error):
            self.log_pages, _ = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        return self.log_pages

    def disconnect(self) -> None:
        """Close this thread's connection after an error that the connection may have caused."""
        cached: _ThreadConnection | None = getattr(self._local, "cached", None)
        if cached is not None:
            self._local.cached = None
            self._connections.remove(cached)
            cached.connection.close(True)

    def close(self) -> None:
        """Close the connections of all threads; SQLite checkpoints when the last process closes the file."""
        self._closed = True
        in_place = self._is_same_file()
        while self._connections:
            db = self._connections.pop().connection
            # SQLite checkpoints by file name, and another file may have that name now.
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(not in_place))
            db.close(True)
        self.writer_lock.close()

    def _is_same_file(self) -> bool:
        with suppress(OSError, StoreUnavailableError):
            return _identify(self.path) == self._inode
        return False


def _identify(path: Path) -> Inode:
    """Return the identity of the file at a path."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise StoreUnavailableError(f"the store {path} is gone; put it back, or check the mount") from None
    return found.st_dev, found.st_ino


class _BusyHandler:
    """Waits for a lock in smaller steps than SQLite's default, which starves busy processes."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0

    def __call__(self, attempt: int) -> bool:
        if attempt == 0:
            self._until = time.monotonic() + self._seconds
        if time.monotonic() >= self._until:
            return False
        time.sleep(min(0.0002 * (attempt + 1), 0.005))
        return True

"""The file as the threads of one process see it: a connection for each, and one clock for all."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import apsw
from jackfield.store import StoreUnavailableError

from jackfield_store_sqlite import clock, creation, files, schema
from jackfield_store_sqlite.files import Inode
from jackfield_store_sqlite.machine import Machine
from jackfield_store_sqlite.transaction import writing
from jackfield_store_sqlite.turns import Turn

_LOOK_AGAIN = 0.1
"""For how many seconds a reader trusts that its file still stands at its path."""


@dataclass(slots=True)
class _Link:
    connection: apsw.Connection
    trusted_until: float = 0.0


class Database:
    """A SQLite file, opened once and used only as long as it is the file at its path.

    Without `create`, a file that does not exist or holds no store is refused. `store_id` refuses every store
    but the one with that id.
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
        self.turn = Turn(path, patience / 2)
        self._machine = machine
        self._lease = lease
        self._patience = patience
        self._create = create and store_id is None
        self._store_id = store_id
        self._preparing = threading.Lock()
        self._inode: Inode | None = None
        self._anchor: clock.Anchor | None = None
        self._here = threading.local()
        self._links: list[_Link] = []
        self._closed = False

    @property
    def prepared(self) -> bool:
        """Whether the file was opened and has the tables of this version."""
        return self._anchor is not None

    def now(self) -> float:
        """The store's time."""
        anchor = self._anchor or self.prepare()
        return anchor.wall + self._machine.uptime() - anchor.uptime

    def prepare(self) -> clock.Anchor:
        """Open the file, created first where that is wanted, bring it up to date, and learn the time."""
        with self._preparing:
            self._refuse_when_closed()
            if self._anchor is None:
                if self._create and not self.path.exists():
                    self._create_file()
                self._inode = files.identify(self.path)
                self._anchor = self._learn()
            return self._anchor

    def _create_file(self) -> None:
        try:
            creation.initialise(self.path)
        except StoreUnavailableError:
            # Another process that starts at the same time may have created it.
            if not self.path.exists():
                raise

    def _learn(self) -> clock.Anchor:
        if self.path.is_dir():
            raise StoreUnavailableError(f"{self.path} is a folder; the store needs the path of a file")
        db = self._open(self._patience)
        try:
            why = schema.why_not(db, self.path, self._store_id)
            if why and not (self._create and schema.is_empty(db)):
                raise StoreUnavailableError(why)
            schema.bring_up_to_date(db, self.path, self._patience, self.turn)
            with writing(db, self.turn):
                return clock.anchor(db, self._machine, self._lease)
        finally:
            db.close()

    def connection(self, *, patient: bool = True, certain: bool = True) -> apsw.Connection:
        """This thread's connection; impatient, it waits for no lock; uncertain, it may be a moment behind."""
        link: _Link | None = getattr(self._here, "link", None)
        moment = time.monotonic()
        if link is not None and not certain and moment < link.trusted_until and not self._closed:
            return link.connection
        self._refuse_when_closed()
        self.prepare()
        # A file that is gone is not made anew, nor is another one used in its place: what it knew would be
        # forgotten, and run a second time.
        if files.identify(self.path) != self._inode:
            raise StoreUnavailableError(
                f"another file has taken the place of the store {self.path}; stop all processes that use it, "
                "remove what is left of the old one, and start them again"
            )
        if link is None:
            link = self._here.link = _Link(self._open(self._patience if patient else 0.0))
            if not patient:
                # What is written here is not flushed. What moves it into the file for good is, and that is
                # left to the thread, which may wait; it writes several times in a lease.
                link.connection.pragma("synchronous", "NORMAL")
                link.connection.wal_autocheckpoint(0)
            self._links.append(link)
        link.trusted_until = moment + _LOOK_AGAIN
        return link.connection

    def disconnect(self) -> None:
        """Give up this thread's connection after an error that may be its own."""
        link: _Link | None = getattr(self._here, "link", None)
        if link is not None:
            self._here.link = None
            self._links.remove(link)
            link.connection.close(True)

    def close(self) -> None:
        """Close the connections of all threads; SQLite tidies up with the last one of all processes."""
        self._closed = True
        in_place = self._is_in_place()
        while self._links:
            db = self._links.pop().connection
            # SQLite tidies up by name, and the names may be another file's by now.
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(not in_place))
            db.close(True)
        self.turn.close()

    def _is_in_place(self) -> bool:
        with suppress(OSError, StoreUnavailableError):
            return files.identify(self.path) == self._inode
        return False

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise StoreUnavailableError(f"the store {self.path} is closed")

    def _open(self, patience: float) -> apsw.Connection:
        db = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
        # Every connection keeps its own, and one that is wanted for reading would wait on the loop.
        db.set_busy_handler(_Patience(patience))
        return db


class _Patience:
    """How long to wait for a lock, in smaller steps than SQLite's own, which let a busy process starve."""

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

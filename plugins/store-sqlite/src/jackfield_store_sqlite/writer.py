"""The writer thread: commits all waiting operations in one transaction and resolves them once it is on disk.

A transaction costs one disk flush whether it holds one operation or hundreds; operations queue up during a
flush. An event loop hands over all operations of an iteration together, and while it is busy, those of the
next iterations too. If an operation fails, the others in its transaction are retried, each in its own
transaction.

The thread also runs the checkpoints, which move the pages of the write-ahead log into the database. SQLite
would run them as part of a write, which would then wait for two more flushes.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import apsw
from jackfield.store import StoreUnavailableError

from jackfield_store_sqlite.database import StoreDatabase
from jackfield_store_sqlite.errors import OUTAGES, closed_error, unavailable_error
from jackfield_store_sqlite.notifier import Notifier, Topic
from jackfield_store_sqlite.process_identity import ClaimOwner
from jackfield_store_sqlite.writer_lock import write_transaction

Result = TypeVar("Result")
Work = Callable[..., Result]
"""An operation inside a transaction; it gets the connection, the store's time and its own arguments."""

_MAX_JOBS = 512
"""Operations per transaction; more would make the first ones wait for the last."""

_GATHER_SECONDS = 0.002
"""How long operations on a busy event loop wait for others that can share their transaction."""

_IDLE_SECONDS = 0.00005
"""An event loop is busy if an iteration takes longer."""

LOG_PAGES = 2000
"""The length of the write-ahead log at which a checkpoint is due.

A log that is restarted early is cheaper to write, because its blocks are still in memory.
"""

_CHECKPOINT_PATIENCE = 0.02
"""Seconds that a checkpoint waits for readers and writers; other writers wait for it meanwhile."""

_NO_LEASE = (0.0, 0.0)


@dataclass(slots=True)
class Job(Generic[Result]):
    """An operation for the writer thread, and its outcome."""

    work: Work[Result]
    arguments: tuple[Any, ...]
    durable: bool
    topic: Topic | None
    future: asyncio.Future[Result]
    """Resolves once the operation is committed."""
    result: Any = None
    error: BaseException | None = None
    resolved: bool = False
    """True if the caller's event loop knows the outcome; set on that loop."""
    lost: Callable[[Result], object] | None = None
    """Called with the result, on the caller's event loop, if the caller no longer waits for it."""


class StoreWriter:
    """Takes operations from any event loop and resolves their futures there."""

    def __init__(self, database: StoreDatabase, owner: ClaimOwner, notifier: Notifier) -> None:
        self.transactions = 0
        """Number of committed transactions."""
        self.lease_window = _NO_LEASE
        """The start and end of the time in which no other process can consider this one dead."""
        self.inline_writes = threading.Lock()
        """Held during a write on an event loop, from the lease check until the write is done."""
        self.idle = True
        """True if an operation would get a transaction of its own; may be wrong for a moment."""
        self._database = database
        self._owner = owner
        self._notifier = notifier
        self._gathered: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = {}
        """The operations that each event loop has not handed over yet."""
        self._waiting: queue.SimpleQueue[list[Job[Any]] | None] = queue.SimpleQueue()
        """Jobs that the thread has not received yet; None tells it to stop."""
        self._pending: deque[Job[Any]] = deque()
        """Jobs that the thread has received but not run yet."""
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="jackfield-store-writer", daemon=True)
        self._handing_over = threading.Lock()
        self._closed = False
        self._renewed: tuple[apsw.Connection | None, float] = (None, 0.0)
        self._flushes: tuple[apsw.Connection | None, bool] = (None, True)
        self._checkpoint_pages = LOG_PAGES
        self._checkpoint_requested = False

    def submit(
        self, work: Work[Result], *arguments: Any, durable: bool = True, topic: Topic | None = None
    ) -> Job[Result]:
        """Queue an operation for the next transaction."""
        loop = asyncio.get_running_loop()
        job = Job(work, arguments, durable, topic, loop.create_future())
        with self._handing_over:
            if self._closed:
                raise closed_error(self._database.path)
            self.idle = False
            gathered = self._gathered.get(loop)
            if gathered is None:
                self._gathered[loop] = [job]
                now = time.monotonic()
                loop.call_soon(self._hand_over, loop, now, now)
            else:
                gathered.append(job)
        return job

    def _hand_over(self, loop: asyncio.AbstractEventLoop, began: float, last: float) -> None:
        """Hand a loop's operations over to the thread once the loop is idle, or has been busy for long.

        A busy loop is running requests that are about to write too. They share the transaction, and the
        thread is woken once for all of them.
        """
        now = time.monotonic()
        if now - last > _IDLE_SECONDS and now - began < _GATHER_SECONDS:
            loop.call_soon(self._hand_over, loop, began, now)
            return
        with self._handing_over:
            # `close` has handed them over if the store was closed in between.
            if jobs := self._gathered.pop(loop, None):
                if not self._thread.ident:
                    self._thread.start()
                self._waiting.put(jobs)

    def request_checkpoint(self) -> None:
        """Wake the thread for a checkpoint if the log is long enough."""
        if self._database.log_pages < self._checkpoint_pages or self._checkpoint_requested:
            return
        with self._handing_over:
            if not self._closed:
                self._checkpoint_requested = True
                self._waiting.put([])

    def close(self) -> None:
        """Run all queued operations, then stop the thread; blocks until then."""
        with self._handing_over:
            first, self._closed = not self._closed, True
            if self._gathered and not self._thread.ident:
                self._thread.start()
            while self._gathered:
                self._waiting.put(self._gathered.popitem()[1])
        if self._thread.ident:
            if first:
                self._waiting.put(None)
            self._thread.join()

    def _run(self) -> None:
        pulse = self._owner.lease / 3
        while not self._ended or self._pending:
            self._receive(pulse)
            jobs = [self._pending.popleft() for _ in range(min(len(self._pending), _MAX_JOBS))]
            self._run_jobs(jobs, renew=not self._ended)
            self._checkpoint_if_due()
        self._resign()

    def _receive(self, seconds: float) -> None:
        """Take everything that is queued; if there is nothing to do, wait for it."""
        with suppress(queue.Empty):
            if not self._pending and not self._ended:
                self.idle = not self._gathered
                self._take(self._waiting.get(timeout=seconds))
            while not self._ended:
                self._take(self._waiting.get_nowait())
        self.idle = False

    def _take(self, jobs: list[Job[Any]] | None) -> None:
        if jobs is None:
            self._ended = True
        else:
            self._pending += jobs

    def _run_jobs(self, jobs: list[Job[Any]], *, renew: bool) -> None:
        """Run jobs in one transaction, or each alone if that fails, and resolve their futures."""
        try:
            self._commit(jobs, renew=renew)
        except OUTAGES as error:
            self._add_pending(jobs)
            self._refuse(jobs, error)
        except BaseException as error:  # noqa: BLE001 - every future must be resolved, whatever the error
            if len(jobs) > 1:
                self._run_each_alone(jobs)
            else:
                self._fail(jobs, error)
        self._report(jobs)

    def _run_each_alone(self, jobs: list[Job[Any]]) -> None:
        for number, job in enumerate(jobs):
            try:
                self._commit([job], renew=False)
            except OUTAGES as error:
                self._add_pending(jobs)
                self._refuse(jobs[number:], error)
                return
            except BaseException as error:  # noqa: BLE001
                self._fail([job], error)

    def _add_pending(self, jobs: list[Job[Any]]) -> None:
        """Add the jobs that were queued since an outage began: they would wait as long for the same error."""
        self._receive(0)
        jobs += self._pending
        self._pending.clear()

    def _commit(self, jobs: list[Job[Any]], *, renew: bool) -> None:
        db = self._database.connection()
        renew = renew and self._must_renew(db)
        if not jobs and not renew:
            return
        self._set_flush(db, renew or any(job.durable for job in jobs))
        with write_transaction(db, self._database.writer_lock):
            # Read the time inside the transaction: waiting for the lock takes time, and rows may expire.
            now = self._database.now()
            if renew:
                self._owner.renew(db, now)
            for job in jobs:
                job.result = job.work(db, now, *job.arguments)
        self._database.read_log_pages(db)
        self.transactions += 1
        if renew:
            self._renewed = (db, now)
            self.lease_window = (now, now + self._owner.lease * 2 / 3)

    def _must_renew(self, db: apsw.Connection) -> bool:
        known, renewed = self._renewed
        return known is not db or not renewed <= self._database.now() < renewed + self._owner.lease / 3

    def _set_flush(self, db: apsw.Connection, durable: bool) -> None:
        if self._flushes != (db, durable):
            db.pragma("synchronous", "FULL" if durable else "NORMAL")
            self._flushes = (db, durable)

    def _checkpoint_if_due(self) -> None:
        """Move the pages of a long log into the database, so that the log can be restarted."""
        if self._database.log_pages >= self._checkpoint_pages:
            # If the file cannot be written, the next operation reports that.
            with suppress(apsw.Error, OSError, StoreUnavailableError):
                self._checkpoint(self._database.connection())
            # A log that was not restarted grows to the next multiple of `LOG_PAGES` before the next attempt.
            self._checkpoint_pages = LOG_PAGES + self._database.log_pages // LOG_PAGES * LOG_PAGES
        self._checkpoint_requested = False

    def _checkpoint(self, db: apsw.Connection) -> None:
        # The first write to a new log flushes it, which must not happen on the event loop. Without a lease,
        # operations of the event loop wait for this thread. Once all pages are moved, any write would start
        # a new log, so the old one is kept until then.
        pages = self._database.read_log_pages(db)
        with self._database.log_kept(_CHECKPOINT_PATIENCE):
            _, moved = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if moved < pages:
                # A reader is in the way, so the log cannot be restarted.
                return
            with self.inline_writes:
                lease_window, self.lease_window = self.lease_window, _NO_LEASE
        if not self._restart_log(db):
            self.lease_window = lease_window

    def _restart_log(self, db: apsw.Connection) -> bool:
        """Move the pages that were written since the checkpoint began, and write to the new log."""
        try:
            # Other writers are blocked in the meantime, but only a few pages are left.
            with self._database.short_patience(_CHECKPOINT_PATIENCE):
                pages, moved = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
        except apsw.BusyError:
            return False
        if moved != pages:
            return False
        self._renewed = (None, 0.0)
        self._commit([], renew=True)
        return True

    def _refuse(self, jobs: Iterable[Job[Any]], error: Exception) -> None:
        """Fail the jobs; reconnect for the next ones unless the file was only busy."""
        if not isinstance(error, apsw.BusyError | StoreUnavailableError):
            with suppress(apsw.Error):
                self._database.disconnect()
        self._renewed, self._flushes = (None, 0.0), (None, False)
        self.lease_window = _NO_LEASE
        self._fail(jobs, error)

    def _fail(self, jobs: Iterable[Job[Any]], error: BaseException) -> None:
        for job in jobs:
            job.error = error
            if isinstance(error, apsw.Error | OSError | StoreUnavailableError):
                # One error per job, because each caller adds its own traceback.
                job.error = StoreUnavailableError(str(unavailable_error(self._database.path, error)))
                job.error.__cause__ = error

    def _report(self, jobs: Iterable[Job[Any]]) -> None:
        """Resolve futures with one wake-up per event loop, and notify the waiters."""
        by_loop: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = defaultdict(list)
        topics = []
        for job in jobs:
            by_loop[job.future.get_loop()].append(job)
            if job.topic is not None and job.error is None:
                topics.append(job.topic)
        for loop, done in by_loop.items():
            # A closed loop has no callers left.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, done)
        if topics and self._notifier.waiters:
            self._notifier.notify(topics)

    def _resign(self) -> None:
        # If this write fails, the lease expires by itself.
        with suppress(apsw.Error, OSError, StoreUnavailableError):
            db = self._database.connection()
            now = self._database.now()
            with write_transaction(db, self._database.writer_lock):
                self._owner.resign(db, now)
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _resolve(jobs: Iterable[Job[Any]]) -> None:
    """Resolve the futures of committed operations, on their callers' event loop."""
    for job in jobs:
        future = job.future
        job.resolved = True
        if future.done():
            if job.lost is not None and job.error is None:
                job.lost(job.result)
        elif job.error is None:
            future.set_result(job.result)
        else:
            future.set_exception(job.error)

"""The writer thread: commits all waiting operations in one transaction and resolves them once it is on disk.

A transaction costs one disk flush whether it holds one operation or hundreds; operations queue up during a
flush. If an operation fails, the others of its transaction are retried, each in its own transaction.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import apsw
from jackfield.store import StoreUnavailableError

from jackfield_store_sqlite.database import StoreDatabase
from jackfield_store_sqlite.errors import OUTAGES, closed_error, unavailable_error
from jackfield_store_sqlite.notifier import Notifier, Topic
from jackfield_store_sqlite.process import ClaimOwner
from jackfield_store_sqlite.writer_lock import write_transaction

Result = TypeVar("Result")
Work = Callable[[apsw.Connection, float], Result]
"""An operation inside a transaction; it gets the connection and the store's time."""

_MAX_JOBS = 512
"""Operations per transaction; more would make the first ones wait for the last."""


_NO_LEASE = (0.0, 0.0)


@dataclass(slots=True)
class _Job:
    work: Work[Any]
    durable: bool
    topic: Topic | None = None
    future: asyncio.Future[Any] | None = None
    result: Any = None
    error: BaseException | None = None


class StoreWriter:
    """Takes operations from any event loop and resolves their futures there."""

    def __init__(self, database: StoreDatabase, owner: ClaimOwner, notifier: Notifier) -> None:
        self.transactions = 0
        """Number of committed transactions."""
        self.lease_window = _NO_LEASE
        """The times between which the lease is so recent that no other process considers this one dead."""
        self._database = database
        self._owner = owner
        self._notifier = notifier
        self._waiting: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="jackfield-store-writer", daemon=True)
        self._starting = threading.Lock()
        self._closed = False
        self._renewed: tuple[apsw.Connection | None, float] = (None, 0.0)
        self._flushes: tuple[apsw.Connection | None, bool] = (None, True)

    def submit(
        self, work: Work[Result], *, durable: bool = True, topic: Topic | None = None
    ) -> asyncio.Future[Result]:
        """Queue an operation; the future resolves once its transaction is committed."""
        with self._starting:
            if self._closed:
                raise closed_error(self._database.path)
            if not self._thread.ident:
                self._thread.start()
            future = asyncio.get_running_loop().create_future()
            self._waiting.put(_Job(work, durable, topic, future))
        return future

    def close(self) -> None:
        """Run all queued operations, then stop the thread; blocks until then."""
        with self._starting:
            first, self._closed = not self._closed, True
        if self._thread.ident:
            if first:
                self._waiting.put(None)
            self._thread.join()

    def _run(self) -> None:
        pulse = self._owner.lease / 3
        going_on = True
        while going_on:
            jobs = []
            with suppress(queue.Empty):
                jobs.append(self._waiting.get(timeout=pulse))
                while len(jobs) < _MAX_JOBS:
                    jobs.append(self._waiting.get_nowait())
            going_on = None not in jobs
            self._run_jobs([job for job in jobs if job is not None], renew=going_on)
        self._resign()

    def _run_jobs(self, jobs: list[_Job], *, renew: bool) -> None:
        """Run jobs in one transaction, or each alone if that fails, and resolve their futures."""
        try:
            self._commit(jobs, renew=renew)
        except OUTAGES as error:
            jobs += self._drain_queue()
            self._refuse(jobs, error)
        except BaseException as error:  # noqa: BLE001 - every future must be resolved, whatever the error
            if len(jobs) > 1:
                self._run_each_alone(jobs)
            else:
                self._fail(jobs, error)
        self._report(jobs)

    def _run_each_alone(self, jobs: list[_Job]) -> None:
        for number, job in enumerate(jobs):
            try:
                self._commit([job], renew=False)
            except OUTAGES as error:
                self._refuse(jobs[number:], error)
                return
            except BaseException as error:  # noqa: BLE001
                self._fail([job], error)

    def _commit(self, jobs: list[_Job], *, renew: bool) -> None:
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
                job.result = job.work(db, now)
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

    def _drain_queue(self) -> list[_Job]:
        """Return the jobs queued in the meantime; they would wait as long for the same error."""
        jobs: list[_Job] = []
        with suppress(queue.Empty):
            while job := self._waiting.get_nowait():
                jobs.append(job)
            self._waiting.put(None)
        return jobs

    def _refuse(self, jobs: Iterable[_Job], error: Exception) -> None:
        """Fail the jobs; reconnect for the next ones unless the file was only busy."""
        if not isinstance(error, apsw.BusyError | StoreUnavailableError):
            with suppress(apsw.Error):
                self._database.disconnect()
        self._renewed, self._flushes = (None, 0.0), (None, False)
        self.lease_window = _NO_LEASE
        self._fail(jobs, error)

    def _fail(self, jobs: Iterable[_Job], error: BaseException) -> None:
        for job in jobs:
            job.error = error
            if isinstance(error, apsw.Error | OSError | StoreUnavailableError):
                # One error per job, because each caller adds its own traceback.
                job.error = StoreUnavailableError(str(unavailable_error(self._database.path, error)))
                job.error.__cause__ = error

    def _report(self, jobs: Iterable[_Job]) -> None:
        """Resolve futures with one wake-up per event loop, and notify the waiters."""
        by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = defaultdict(list)
        topics = []
        for job in jobs:
            if job.future is not None:
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


def _resolve(jobs: Iterable[_Job]) -> None:
    """Resolve the futures of committed operations, on the event loop of their callers."""
    for job in jobs:
        future = job.future
        if future is None or future.done():
            continue
        if job.error is None:
            future.set_result(job.result)
        else:
            future.set_exception(job.error)

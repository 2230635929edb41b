"""The one thread that writes: what waits goes into one transaction, and is answered once that is on disk.

A transaction costs a flush of the disk whether it holds one operation or hundreds, and while one is flushed
the next ones gather. An operation that fails does not take those along that shared its transaction: they are
tried again, each alone.
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

from jackfield_store_sqlite.bells import Bells, Topic
from jackfield_store_sqlite.database import Database
from jackfield_store_sqlite.faults import OUTAGES, unavailable
from jackfield_store_sqlite.owners import Owner
from jackfield_store_sqlite.transaction import writing

Result = TypeVar("Result")
Work = Callable[[apsw.Connection, float], Result]
"""What to do inside of a transaction, given the store's time."""

_MOST = 512
"""Operations in one transaction; more would make the first ones wait for the last."""


@dataclass(slots=True)
class _Job:
    work: Work[Any]
    durable: bool
    topic: Topic | None = None
    future: asyncio.Future[Any] | None = None
    result: Any = None
    error: BaseException | None = None


class Writer:
    """Takes operations from any loop and answers there."""

    def __init__(self, database: Database, owner: Owner, bells: Bells) -> None:
        self.transactions = 0
        """How many were committed."""
        self._database = database
        self._owner = owner
        self._bells = bells
        self._waiting: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="jackfield-store-writer", daemon=True)
        self._starting = threading.Lock()
        self._closed = False
        self._renewed: tuple[apsw.Connection | None, float] = (None, 0.0)
        self._flushes: tuple[apsw.Connection | None, bool] = (None, True)

    def submit(
        self, work: Work[Result], *, durable: bool = True, topic: Topic | None = None
    ) -> asyncio.Future[Result]:
        """Hand over an operation; the future is resolved once it cannot be lost any more."""
        with self._starting:
            if self._closed:
                raise StoreUnavailableError(f"the store {self._database.path} is closed")
            if not self._thread.ident:
                self._thread.start()
            future = asyncio.get_running_loop().create_future()
            self._waiting.put(_Job(work, durable, topic, future))
        return future

    @property
    def is_known(self) -> bool:
        """Whether others know that this process lives, and do not take its claims for a dead one's."""
        known, renewed = self._renewed
        return known is not None and renewed <= self._database.now() < renewed + self._owner.lease * 2 / 3

    def close(self) -> None:
        """Finish what is waiting, and end; takes as long as that takes."""
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
                while len(jobs) < _MOST:
                    jobs.append(self._waiting.get_nowait())
            going_on = None not in jobs
            self._settle([job for job in jobs if job is not None], renew=going_on)
        self._resign()

    def _settle(self, jobs: list[_Job], *, renew: bool) -> None:
        """Do them together, or each alone if that fails, and tell who waits."""
        try:
            self._commit(jobs, renew=renew)
        except OUTAGES as error:
            jobs += self._also_waiting()
            self._refuse(jobs, error)
        except BaseException as error:  # noqa: BLE001 - whoever waits has to be told, whatever it was
            if len(jobs) > 1:
                self._settle_each_alone(jobs)
            else:
                self._fail(jobs, error)
        self._tell(jobs)

    def _settle_each_alone(self, jobs: list[_Job]) -> None:
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
        renew = renew and self._has_to_renew(db)
        if not jobs and not renew:
            return
        self._flush_on_commit(db, renew or any(job.durable for job in jobs))
        with writing(db, self._database.turn):
            # Not before: it may have taken a while to be let in, and something may have expired meanwhile.
            now = self._database.now()
            if renew:
                self._owner.renew(db, now)
            for job in jobs:
                job.result = job.work(db, now)
        self.transactions += 1
        if renew:
            self._renewed = (db, now)

    def _has_to_renew(self, db: apsw.Connection) -> bool:
        known, renewed = self._renewed
        return known is not db or not renewed <= self._database.now() < renewed + self._owner.lease / 3

    def _flush_on_commit(self, db: apsw.Connection, durable: bool) -> None:
        if self._flushes != (db, durable):
            db.pragma("synchronous", "FULL" if durable else "NORMAL")
            self._flushes = (db, durable)

    def _also_waiting(self) -> list[_Job]:
        """What came meanwhile: it would wait as long again to be told the same."""
        jobs: list[_Job] = []
        with suppress(queue.Empty):
            while job := self._waiting.get_nowait():
                jobs.append(job)
            self._waiting.put(None)
        return jobs

    def _refuse(self, jobs: Iterable[_Job], error: Exception) -> None:
        """Give up for now, and come back with a new connection unless the old one only has to wait."""
        if not isinstance(error, apsw.BusyError | StoreUnavailableError):
            with suppress(apsw.Error):
                self._database.disconnect()
        self._renewed, self._flushes = (None, 0.0), (None, False)
        self._fail(jobs, error)

    def _fail(self, jobs: Iterable[_Job], error: BaseException) -> None:
        for job in jobs:
            job.error = error
            if isinstance(error, apsw.Error | OSError | StoreUnavailableError):
                # One for each: a traceback belongs to the one who sees it.
                job.error = StoreUnavailableError(str(unavailable(self._database.path, error)))
                job.error.__cause__ = error

    def _tell(self, jobs: Iterable[_Job]) -> None:
        """Wake every loop once, however many of its operations are done."""
        by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = defaultdict(list)
        topics = []
        for job in jobs:
            if job.future is not None:
                by_loop[job.future.get_loop()].append(job)
            if job.topic is not None and job.error is None:
                topics.append(job.topic)
        for loop, done in by_loop.items():
            # A loop that is closed has nobody left who could be told.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, done)
        self._bells.ring(topics)

    def _resign(self) -> None:
        # If this cannot be written, the lease runs out by itself.
        with suppress(apsw.Error, OSError, StoreUnavailableError):
            db = self._database.connection()
            now = self._database.now()
            with writing(db, self._database.turn):
                self._owner.resign(db, now)
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _resolve(jobs: Iterable[_Job]) -> None:
    for job in jobs:
        future = job.future
        if future is None or future.done():
            continue
        if job.error is None:
            future.set_result(job.result)
        else:
            future.set_exception(job.error)

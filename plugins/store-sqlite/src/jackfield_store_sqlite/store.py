"""`SqliteStore`: the store protocol on one SQLite file."""

from __future__ import annotations

import asyncio
import math
import os
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

import apsw
from jackfield.store import Claim, DoubtfulClaim, StoreUnavailableError, StreamEntry
from jackfield.store_limits import MAX_VALUE_BYTES, as_bytes, check

from jackfield_store_sqlite import expiry, statements
from jackfield_store_sqlite.database import StoreConnection, StoreDatabase
from jackfield_store_sqlite.errors import closed_error, translate_errors
from jackfield_store_sqlite.expiry import ExpirySearch
from jackfield_store_sqlite.notifier import Notifier, Topic, claim_version
from jackfield_store_sqlite.process_identity import ClaimOwner, Machine, this_machine
from jackfield_store_sqlite.statements import TooLargeForLoopError
from jackfield_store_sqlite.writer import LOG_PAGES, Job, StoreWriter, Work

Result = TypeVar("Result")
Undo = Callable[[apsw.Connection, float, str, ClaimOwner], None]

_HOLDER_CHECK_SECONDS = 0.25
"""Seconds between two checks by a waiter that the claim's holder is alive."""

_INLINE_ERRORS = (apsw.Error, OSError, StoreUnavailableError)
"""Errors after which a write on the event loop is left to the writer thread."""

_CLAIM_BYTES = 8 * 1024
"""Approximate size that a claim, or a completion without its result, adds to the write-ahead log."""

_LOG_READ_BYTES = 256 * 1024
"""How many bytes the event loop writes before it reads the length of the log again."""

_STORE_CHECK_SECONDS = 1.0
"""Seconds between two checks by a follower that the store is available."""


class SqliteStore:
    """Shared state in one SQLite file, for all processes of one machine.

    The file is opened at first use, or by `open`. `lease` is how long a process that does not respond is
    considered alive, `patience` how long to wait for a locked file, both in seconds. With `durable_appends`,
    streams survive a power cut like all other data, at the cost of a flush. Without `create`, a missing file
    is rejected. With `store_id`, a store with a different id is rejected.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        lease: float = 10.0,
        patience: float = 5.0,
        durable_appends: bool = False,
        create: bool = True,
        store_id: str | None = None,
        machine: Machine | None = None,
    ) -> None:
        for name, seconds in {"lease": lease, "patience": patience}.items():
            if not 0 < seconds < math.inf:
                raise ValueError(
                    f"{name} of the sqlite store must be a number of seconds above 0, not {seconds!r}"
                )
        machine = machine or this_machine()
        self._database = StoreDatabase(
            Path(path).absolute(),
            machine,
            lease=lease,
            patience=patience,
            create=create,
            store_id=store_id,
        )
        self._owner = ClaimOwner(machine, lease)
        self._notifier = Notifier(self._database)
        self._writer = StoreWriter(self._database, self._owner, self._notifier)
        self._reader = ThreadPoolExecutor(1, "jackfield-store-reader")
        self._durable_appends = durable_appends
        self._expiry = ExpirySearch()
        self._logged = 0
        """Approximate bytes written on event loops since one of them read the length of the log."""
        self._ready = False
        """True if the file is open and may be used; False again after `close` and in a forked child."""
        self._closed = False
        self._forked = False
        self.now = self._database.now
        """See `Store.now`."""
        _stores.add(self)

    @classmethod
    async def open(cls, path: str | Path, **options: Any) -> Self:
        """Return a store whose file has been opened successfully."""
        store = cls(path, **options)
        try:
            await store._write(lambda _db, _now: None)
        except BaseException:
            await store.close()
            raise
        return store

    def put(self, key: str, value: bytes, *, ttl: float | None = None) -> Awaitable[None]:
        """See `Store.put`."""
        # A buffer is copied now; the writer checks everything else.
        value = value if type(value) is bytes else as_bytes(value)
        return self._write(statements.put_value, key, value, ttl)

    async def get(self, key: str) -> bytes | None:
        """See `Store.get`."""
        try:
            return await self._read(statements.get_value, key, statements.INLINE_BYTES)
        except TooLargeForLoopError:
            return await self._read_in_thread(statements.get_value, key, MAX_VALUE_BYTES)

    async def delete(self, key: str) -> bool:
        """See `Store.delete`."""
        return await self._write(statements.delete_value, key)

    async def take(self, key: str) -> bytes | None:
        """See `Store.take`."""
        return await self._write(statements.take_value, key)

    async def keys(self, prefix: str) -> list[str]:
        """See `Store.keys`."""
        try:
            return await self._read(statements.value_keys, prefix, statements.INLINE_ROWS)
        except TooLargeForLoopError:
            return await self._read_in_thread(statements.value_keys, prefix, statements.MAX_ROWS)

    async def add(self, key: str, amount: int, *, window: float) -> int:
        """See `Store.add`."""
        return await self._write(statements.add_to_counter, key, amount, window, durable=False)

    async def claim(
        self,
        key: str,
        fingerprint: bytes,
        *,
        ttl: float,
        durable: bool = True,
        note: bytes = b"",
        result: bytes | None = None,
    ) -> Claim:
        """See `Store.claim`."""
        fingerprint = check(key, fingerprint, ttl)
        if note:
            note = check(key, note)
        if result is not None:
            result = check(key, result)
        if not self._ready:
            await self._make_ready()
        owner = self._owner
        if not durable:
            with self._writer.inline_writes:
                if (db := self._inline_connection(now := self.now())) is not None:
                    try:
                        made = statements.make_claim(db, now, key, fingerprint, owner, ttl, note, result)
                    except _INLINE_ERRORS:
                        db = None
            if db is not None:
                self._note_logged(db, _CLAIM_BYTES)
                return made
        return await self._claim_in_transaction((key, fingerprint, owner, ttl, note, result), durable)

    async def _claim_in_transaction(
        self, arguments: tuple[str, bytes, ClaimOwner, float, bytes, bytes | None], durable: bool
    ) -> Claim:
        """Make a claim in the writer thread, which can wait for locks and for the disk."""
        key, asked = arguments[0], arguments[:3]
        # If the claim exists already, a read answers the caller without a write. A claim that would share its
        # transaction with other operations is sent without this read, because the shared write costs less.
        if self._writer.idle:
            known = await self._read(statements.find_claim, *asked)
            if known is not None:
                return known
        try:
            job = self._writer.submit(statements.make_claim, *arguments, durable=durable)
            return await self._acquire(job, statements.RUN, key, statements.release_claim)
        except StoreUnavailableError:
            # A file that cannot be written can often still be read.
            known = await self._read(statements.find_claim, *asked)
            if known is not None:
                return known
            raise

    async def holds(self, key: str) -> bool:
        """See `Store.holds`."""
        if not self._ready:
            await self._make_ready()
        begin, end = self._writer.lease_window
        if begin <= self.now() < end:
            return await self._read(statements.holds_claim, key, self._owner)

        def renew_and_look(db: apsw.Connection, now: float) -> bool:
            self._owner.renew(db, now)
            return statements.holds_claim(db, now, key, self._owner)

        # The lease has expired or is about to. It is renewed in this transaction, because the writer renews
        # it only in some transactions. A claim that another process has taken over stays lost.
        return await self._writer.submit(renew_and_look).future

    async def reclaim(self, key: str) -> bool:
        """See `Store.reclaim`."""
        if not self._ready:
            await self._make_ready()
        job = self._writer.submit(statements.take_over_claim, key, self._owner)
        return await self._acquire(job, True, key, statements.abandon_claim)

    async def complete(
        self, key: str, result: bytes, *, durable: bool = True, ttl: float | None = None
    ) -> bool:
        """See `Store.complete`."""
        # The claim has a valid key, and almost every result is valid too.
        if type(result) is not bytes or len(result) > MAX_VALUE_BYTES or ttl is not None:
            result = check(key, result, ttl)
        if not self._ready:
            await self._make_ready()
        owner = self._owner
        if not durable:
            with self._writer.inline_writes:
                if (db := self._inline_connection(now := self.now())) is not None:
                    try:
                        done = statements.complete_claim(db, now, key, result, owner, ttl)
                    except _INLINE_ERRORS:
                        db = None
            if db is not None:
                self._note_logged(db, _CLAIM_BYTES + len(result))
                if self._notifier.waiters:
                    self._notifier.notify([Topic(claim_version, key)])
                return done
        topic = Topic(claim_version, key)
        job = self._writer.submit(
            statements.complete_claim, key, result, owner, ttl, durable=durable, topic=topic
        )
        return await job.future

    async def release(self, key: str) -> None:
        """See `Store.release`."""
        if not self._ready:
            await self._make_ready()
        await self._undo(key, statements.release_claim)

    async def abandon(self, key: str) -> None:
        """See `Store.abandon`."""
        if not self._ready:
            await self._make_ready()
        await self._undo(key, statements.abandon_claim)

    async def in_doubt(self, prefix: str) -> list[DoubtfulClaim]:
        """See `Store.in_doubt`."""
        return await self._read_in_thread(statements.claims_in_doubt, prefix, self._owner)

    async def outcome(self, key: str, *, within: float) -> Claim:
        """See `Store.outcome`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        found = await self._read(statements.claim_state, key, self._owner)
        if found is not statements.RUNNING:
            return found
        with self._notifier.subscribe(Topic(claim_version, key)) as waiter:
            while True:
                waiter.clear()
                found = await self._read(statements.claim_state, key, self._owner)
                remaining = deadline - loop.time()
                if found is not statements.RUNNING or remaining <= 0:
                    return found
                await waiter.wait(min(remaining, _HOLDER_CHECK_SECONDS))

    def append(self, stream: str, value: bytes, *more: bytes, ttl: float | None = None) -> Awaitable[int]:
        """See `Store.append`."""
        values = [each if type(each) is bytes else as_bytes(each) for each in (value, *more)]
        topic = Topic(statements.last_entry_id, stream)
        return self._write(
            statements.append_entries, stream, values, ttl, durable=self._durable_appends, topic=topic
        )

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[StreamEntry]:
        """See `Store.read`."""
        limit = max(limit, 0)
        try:
            return await self._read(statements.read_few_entries, stream, after, limit)
        except TooLargeForLoopError:
            return await self._read_in_thread(statements.read_entries, stream, after, limit)

    async def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[StreamEntry]:
        """See `Store.follow`."""
        with self._notifier.subscribe(Topic(statements.last_entry_id, stream)) as waiter:
            while True:
                waiter.clear()
                newest = await self._read(lambda db, _now: statements.last_entry_id(db, stream))
                while after < newest:
                    entries = await self.read(stream, after=after)
                    for entry in entries:
                        yield entry
                    # Entries missing in between have expired.
                    after = entries[-1].id if entries else newest
                await waiter.wait(_STORE_CHECK_SECONDS)

    async def streams(self, prefix: str) -> list[str]:
        """See `Store.streams`."""
        return await self._read_in_thread(statements.stream_names, prefix)

    async def clear(self, stream: str) -> int:
        """See `Store.clear`."""
        return await self._write(statements.clear_stream, stream)

    async def prune(self) -> int:
        """See `Store.prune`."""
        gone = 0
        for table in expiry.TABLES:
            start = 0
            while found := await self._read_in_thread(self._expiry.search, table, start):
                start = found.start + expiry.RANGE_ROWS
                if found.expired:
                    gone += await self._write(expiry.delete_expired, table, found.start, durable=False)
        await self._write(self._owner.remove_expired, durable=False)
        return gone

    async def close(self) -> None:
        """See `Store.close`."""
        self._check_fork()
        self._closed, self._ready = True, False
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._writer.close()
        self._notifier.close()
        self._reader.shutdown()
        with translate_errors(self._database.path):
            self._database.close()

    def disable_after_fork(self) -> None:
        """Refuse all operations in a forked child: its threads and connections belong to the parent."""
        self._forked, self._ready = True, False

    async def _make_ready(self) -> None:
        """Open the file; raise if the store cannot be used any more."""
        self._check_fork()
        if self._closed:
            raise closed_error(self._database.path)
        await asyncio.to_thread(self._database.prepare)
        self._ready = not self._closed

    def _check_fork(self) -> None:
        if self._forked:
            raise RuntimeError(
                f"the store {self._database.path} was created before a fork and cannot be used after it; "
                "create one in every process"
            )

    def _write(
        self, work: Work[Result], *arguments: Any, durable: bool = True, topic: Topic | None = None
    ) -> Awaitable[Result]:
        """Queue an operation for the writer thread; the file is opened first if necessary."""
        try:
            asyncio.get_running_loop()
            ready = self._ready
        except RuntimeError:
            # Called before an event loop runs, so return a coroutine for it.
            ready = False
        if not ready:
            return self._open_and_write(work, arguments, durable, topic)
        return self._writer.submit(work, *arguments, durable=durable, topic=topic).future

    async def _open_and_write(
        self, work: Work[Result], arguments: tuple[Any, ...], durable: bool, topic: Topic | None
    ) -> Result:
        await self._make_ready()
        return await self._writer.submit(work, *arguments, durable=durable, topic=topic).future

    def _inline_connection(self, now: float) -> StoreConnection | None:
        """Return a connection for an unflushed write on the loop; None if the write needs the writer thread.

        A switch to the writer thread and back takes longer than the write itself. The write happens outside a
        transaction, so a single statement has to do all of it. If it fails, nothing has changed, and the
        writer thread takes over: it may wait for locks, and reports the error if the file cannot be written
        at all. The writer thread is also needed if the lease must be renewed first.
        """
        begin, end = self._writer.lease_window
        if not begin <= now < end:
            return None
        try:
            return self._database.trusted_connection(now, wait_for_lock=False)
        except _INLINE_ERRORS:
            return None

    def _note_logged(self, db: StoreConnection, size: int) -> None:
        """Count the bytes written on the loop, and sometimes check whether a checkpoint is due."""
        self._logged += size
        if self._logged > _LOG_READ_BYTES:
            self._logged = 0
            if self._database.read_log_pages(db) >= LOG_PAGES:
                self._writer.request_checkpoint()

    async def _acquire(self, job: Job[Result], won: Result, key: str, undo: Undo) -> Result:
        """Wait until a claim is acquired; undo the acquisition if the caller is cancelled in the meantime."""
        try:
            return await job.future
        except asyncio.CancelledError:

            def undo_if_won(result: Result) -> None:
                if result == won:
                    with suppress(StoreUnavailableError):
                        self._undo(key, undo)

            if not job.resolved:
                job.lost = undo_if_won
            elif job.error is None:
                undo_if_won(job.result)
            raise

    def _undo(self, key: str, undo: Undo) -> asyncio.Future[None]:
        return self._writer.submit(undo, key, self._owner, topic=Topic(claim_version, key)).future

    async def _read(self, query: Work[Result], *arguments: Any) -> Result:
        """Read on the loop, which is faster than a switch to a thread; fall back to the reader thread."""
        if not self._ready:
            await self._make_ready()
        try:
            now = self.now()
            return query(self._database.trusted_connection(now, wait_for_lock=False), now, *arguments)
        except (apsw.Error, OSError):
            # The reader thread may wait for locks; if the file cannot be read at all, it raises the error.
            return await self._read_in_thread(query, *arguments)

    async def _read_in_thread(self, query: Work[Result], *arguments: Any) -> Result:
        if not self._ready:
            await self._make_ready()

        def read() -> Result:
            with translate_errors(self._database.path):
                try:
                    now = self.now()
                    return query(self._database.trusted_connection(now), now, *arguments)
                except apsw.Error:
                    self._database.disconnect()
                    raise

        return await asyncio.get_running_loop().run_in_executor(self._reader, read)


_stores: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


def _disable_in_child() -> None:
    for store in list(_stores):
        store.disable_after_fork()


os.register_at_fork(after_in_child=_disable_in_child)

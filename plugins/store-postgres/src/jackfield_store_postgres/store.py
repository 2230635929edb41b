"""`PostgresStore`: the store protocol on a PostgreSQL database."""

from __future__ import annotations

import asyncio
import math
import os
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Self, TypeVar

from jackfield.store import Claim, DoubtfulClaim, StoreUnavailableError, StreamEntry
from jackfield.store_limits import check, check_amount, prefix_end

from jackfield_store_postgres import statements
from jackfield_store_postgres.claims import FREE, RUNNING, OwnClaims, to_claim
from jackfield_store_postgres.clock import SAMPLES, StoreClock
from jackfield_store_postgres.connection import ConnectionOptions
from jackfield_store_postgres.database import PostgresDatabase, StoreId
from jackfield_store_postgres.errors import closed_error
from jackfield_store_postgres.notifier import ChangeNotifier, claim_topic, stream_topic
from jackfield_store_postgres.owner import LeaseOwner
from jackfield_store_postgres.schema import SINGLE, Shard
from jackfield_store_postgres.statements import from_text, seconds, to_text
from jackfield_store_postgres.writer import EntryWriter

Result = TypeVar("Result")

_HOLDER_CHECK_SECONDS = 0.5
"""Seconds between two checks by a waiter that the claim's holder is alive."""

_STREAM_CHECK_SECONDS = 2.0
"""Seconds between two reads by a follower that gets no notification."""

_READ_ENTRIES = 1000

_PRUNE_ROWS = 500
_PRUNE_PAUSE = 0.02
"""Rows per statement, and the shortest pause between two of them, so that pruning does not delay claims."""


class PostgresStore:
    """Shared state in a PostgreSQL database, for hosts on any number of machines.

    The database is opened at first use, or by `open`. `lease` is how long a host that does not respond is
    considered alive, `patience` how long to wait for a server that does not answer, both in seconds. Without
    `durable_appends`, a crash of the server may lose the end of a stream. Without `create`, a missing store
    is rejected. With `store_id`, a store with a different id is rejected. `shard` is which of several
    databases this is (`ShardedStore`). `connection` holds further fields of `ConnectionOptions`. A store
    belongs to the event loop in which it is first used.
    """

    def __init__(
        self,
        url: str,
        *,
        lease: float = 10.0,
        patience: float = 5.0,
        pool_size: int = 8,
        durable_appends: bool = True,
        create: bool = True,
        store_id: StoreId | str | None = None,
        shard: Shard = SINGLE,
        **connection: Any,
    ) -> None:
        for name, number in {"lease": lease, "patience": patience}.items():
            if not 0 < number < math.inf:
                raise ValueError(
                    f"{name} of the postgres store must be a number of seconds above 0, not {number!r}"
                )
        self._database = PostgresDatabase(
            ConnectionOptions(url, **connection),
            patience=patience,
            pool_size=pool_size,
            create=create,
            store_id=store_id if isinstance(store_id, StoreId) else StoreId(store_id),
            shard=shard,
        )
        self._clock = StoreClock()
        self._owner = LeaseOwner(self._database, self._clock, lease)
        self._notifier = ChangeNotifier(self._database)
        self._claims = OwnClaims(self._database, self._owner, self._notifier)
        self._writer = EntryWriter(self._database, self._notifier, durable_appends=durable_appends)
        self._writes: set[asyncio.Task[Any]] = set()
        """The writes under way; they continue if their callers are cancelled."""
        self._ready = False
        """True if the store is open and may be used; False again after `close` and in a forked child."""
        self._closed = False
        self._forked = False
        _stores.add(self)

    @classmethod
    async def open(cls, url: str, **options: Any) -> Self:
        """Return a store that has been opened successfully and is ready to make claims."""
        store = cls(url, **options)
        try:
            await store._register()
        except BaseException:
            await store.close()
            raise
        return store

    def now(self) -> float:
        """See `Store.now`."""
        if not self._clock.is_set:
            self._check_usable()
            self._clock.synchronise_blocking(self._database)
        return self._clock.now()

    def put(self, key: str, value: bytes, *, ttl: float | None = None) -> Awaitable[None]:
        """See `Store.put`."""
        value = check(key, value, ttl)
        return self._begin(self._writer.put, key, value, ttl)

    async def get(self, key: str) -> bytes | None:
        """See `Store.get`."""
        check(key)
        rows = await self._read(statements.GET, to_text(key))
        return rows[0]["value"] if rows else None

    async def delete(self, key: str) -> bool:
        """See `Store.delete`."""
        check(key)
        rows = await self._write(self._fetch(statements.DELETE, to_text(key)))
        return bool(rows and rows[0]["current"])

    async def take(self, key: str) -> bytes | None:
        """See `Store.take`."""
        check(key)
        rows = await self._write(self._fetch(statements.TAKE, to_text(key)))
        return rows[0]["value"] if rows and rows[0]["current"] else None

    async def keys(self, prefix: str) -> list[str]:
        """See `Store.keys`."""
        check(prefix)
        return [from_text(row["key"]) for row in await self._read(statements.KEYS, *_range(prefix))]

    async def add(self, key: str, amount: int, *, window: float) -> int:
        """See `Store.add`."""
        check(key, ttl=window)
        amount = check_amount(amount)
        rows = await self._write(self._fetch(statements.ADD, to_text(key), amount, seconds(window)))
        return int(rows[0]["count"])

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
        kept_note = check(key, note) if note and result is None else None
        if result is not None:
            result = check(key, result)
        if not self._owner.id:
            await self._register()
        if not self._ready:
            await self._make_ready()
        return await self._claims.make(key, fingerprint, ttl, kept_note, result, durable)

    async def holds(self, key: str) -> bool:
        """See `Store.holds`."""
        check(key)
        held = self._owner.held.get(key)
        if held is None:
            return False
        for _ in range(2):
            rows = await self._read(statements.HOLDS, to_text(key), held.fence, self._owner.id)
            if not rows:
                return False
            if rows[0]["fresh"]:
                return True
            # The host was cut off, paused or slow. The claim may change hands until the lease is renewed, so
            # only an answer given after the renewal counts.
            await self._owner.renew()
            if self._owner.held.get(key) is not held:
                return False
        raise StoreUnavailableError(
            f"the store {self._database.place} answers too slowly to hold a claim; check its load, or use a "
            "longer `lease`"
        )

    async def reclaim(self, key: str) -> bool:
        """See `Store.reclaim`."""
        check(key)
        if not self._owner.id:
            await self._register()
        taking = self._start(self._claims.take_over(key))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(partial(self._undo_takeover, key))
            raise

    async def complete(
        self, key: str, result: bytes, *, durable: bool = True, ttl: float | None = None
    ) -> bool:
        """See `Store.complete`."""
        result = check(key, result, ttl)
        if not self._ready:
            await self._make_ready()
        return await self._claims.complete(key, result, ttl, durable)

    async def release(self, key: str) -> None:
        """See `Store.release`."""
        check(key)
        await self._write(self._claims.end(statements.RELEASE, key))

    async def abandon(self, key: str) -> None:
        """See `Store.abandon`."""
        check(key)
        await self._write(self._claims.end(statements.ABANDON, key))

    async def in_doubt(self, prefix: str) -> list[DoubtfulClaim]:
        """See `Store.in_doubt`."""
        check(prefix)
        rows = await self._read(statements.IN_DOUBT, *_range(prefix), self._owner.id)
        return [DoubtfulClaim(from_text(row["key"]), row["note"]) for row in rows]

    async def outcome(self, key: str, *, within: float) -> Claim:
        """See `Store.outcome`."""
        check(key)
        deadline = time.monotonic() + within
        found = await self._claim_state(key)
        if found is not RUNNING:
            return found
        with self._notifier.subscribe(claim_topic(key)) as waiter:
            while True:
                waiter.clear()
                found = await self._claim_state(key)
                remaining = deadline - time.monotonic()
                if found is not RUNNING or remaining <= 0:
                    return found
                await waiter.wait(min(remaining, _HOLDER_CHECK_SECONDS))

    def append(self, stream: str, value: bytes, *more: bytes, ttl: float | None = None) -> Awaitable[int]:
        """See `Store.append`."""
        values = [check(stream, each, ttl) for each in (value, *more)]
        return self._begin(self._writer.append, stream, values, ttl)

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[StreamEntry]:
        """See `Store.read`."""
        check(stream)
        rows = await self._read(statements.READ, to_text(stream), after, max(limit, 0))
        return [StreamEntry(*row) for row in rows]

    async def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[StreamEntry]:
        """See `Store.follow`."""
        check(stream)
        await self._make_ready()
        with self._notifier.subscribe(stream_topic(stream)) as waiter:
            while True:
                waiter.clear()
                entries = await self.read(stream, after=after, limit=_READ_ENTRIES)
                for entry in entries:
                    after = entry.id
                    yield entry
                if len(entries) < _READ_ENTRIES:
                    await waiter.wait(_STREAM_CHECK_SECONDS)

    async def streams(self, prefix: str) -> list[str]:
        """See `Store.streams`."""
        check(prefix)
        return [from_text(row["name"]) for row in await self._read(statements.STREAMS, *_range(prefix))]

    async def clear(self, stream: str) -> int:
        """See `Store.clear`."""
        check(stream)
        rows = await self._write(self._fetch(statements.CLEAR, to_text(stream)))
        return int(rows[0]["count"])

    async def prune(self) -> int:
        """See `Store.prune`."""
        gone = 0
        for statement in statements.PRUNE:
            while removed := await self._prune_some(statement):
                gone += removed
        await self._write(self._execute(statements.PRUNE_OWNERS))
        return gone

    async def close(self) -> None:
        """See `Store.close`."""
        self._check_fork()
        self._closed, self._ready = True, False
        await self._writer.close()
        await self._claims.finish()
        while self._writes:
            await asyncio.wait(self._writes)
        await self._notifier.close()
        await self._owner.resign()
        await self._database.close()

    def disable_after_fork(self) -> None:
        """Refuse all operations in a forked child: its connections belong to the parent."""
        self._forked, self._ready = True, False

    async def _claim_state(self, key: str) -> Claim:
        rows = await self._read(statements.CLAIM_STATE, self._owner.id, to_text(key))
        return to_claim(rows[0]) if rows else FREE

    def _undo_takeover(self, key: str, taking: asyncio.Task[bool]) -> None:
        """Give up a claim whose caller was cancelled before it got the answer."""
        if not taking.cancelled() and not taking.exception() and taking.result():
            self._start(self._claims.end(statements.ABANDON, key))

    async def _make_ready(self) -> None:
        """Open the store; raise if it cannot be used any more."""
        self._check_usable()
        await self._database.prepare()
        if not self._clock.is_set:
            await self._database.run(
                lambda connection: self._clock.synchronise(connection, SAMPLES), repeatable=True
            )
        self._ready = not self._closed

    def _check_usable(self) -> None:
        self._check_fork()
        if self._closed:
            raise closed_error(self._database.place)

    def _check_fork(self) -> None:
        if self._forked:
            raise RuntimeError(
                f"the store {self._database.place} was created before a fork and cannot be used after it; "
                "create one in every process"
            )

    async def _register(self) -> None:
        if not self._ready:
            await self._make_ready()
        await self._owner.register()

    def _begin(self, submit: Callable[..., asyncio.Future[Result]], *arguments: Any) -> Awaitable[Result]:
        """Queue an operation for the writer; the store is opened first if necessary."""
        if not self._ready:
            return self._open_and_begin(submit, arguments)
        return submit(*arguments)

    async def _open_and_begin(
        self, submit: Callable[..., asyncio.Future[Result]], arguments: tuple[Any, ...]
    ) -> Result:
        await self._make_ready()
        return await submit(*arguments)

    async def _read(self, sql: str, *arguments: Any) -> list[Any]:
        if not self._ready:
            await self._make_ready()
        return await self._database.fetch(sql, *arguments, repeatable=True)

    async def _fetch(self, sql: str, *arguments: Any) -> list[Any]:
        return await self._database.fetch(sql, *arguments)

    async def _execute(self, sql: str, *arguments: Any) -> int:
        """Run a statement and return how many rows it changed."""
        status = await self._database.run(
            lambda connection: connection.execute(sql, *arguments), repeatable=True
        )
        return int(status.rpartition(" ")[2])

    async def _prune_some(self, statement: str) -> int:
        began = time.monotonic()
        removed = await self._write(self._execute(statement, _PRUNE_ROWS))
        if removed == _PRUNE_ROWS:
            # Pause for as long as the statement took, so that pruning runs at most half of the time.
            await asyncio.sleep(max(_PRUNE_PAUSE, time.monotonic() - began))
        return removed

    def _start(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Start a write; it is finished even if its caller is cancelled, because it may have been sent."""
        task = asyncio.ensure_future(work)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return task

    async def _write(self, work: Coroutine[Any, Any, Result]) -> Result:
        try:
            if not self._ready:
                await self._make_ready()
        except BaseException:
            work.close()
            raise
        return await asyncio.shield(self._start(work))


def _range(prefix: str) -> tuple[str, str]:
    text = to_text(prefix)
    return text, prefix_end(text)


_stores: weakref.WeakSet[PostgresStore] = weakref.WeakSet()


def _disable_in_child() -> None:
    for store in list(_stores):
        store.disable_after_fork()


os.register_at_fork(after_in_child=_disable_in_child)

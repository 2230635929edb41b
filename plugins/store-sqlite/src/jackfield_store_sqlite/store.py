"""The store: every method of the protocol, told in terms of the file's parts."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import apsw
from jackfield.store import Claim, Doubt, Entry, StoreUnavailableError

from jackfield_store_sqlite import claims, kept, limits, pruning, streams
from jackfield_store_sqlite.bells import Bells, Topic, claim_mark
from jackfield_store_sqlite.database import Database
from jackfield_store_sqlite.faults import reported
from jackfield_store_sqlite.kept import TooBigHereError
from jackfield_store_sqlite.machine import Machine, this_machine
from jackfield_store_sqlite.owners import Owner
from jackfield_store_sqlite.transaction import writing
from jackfield_store_sqlite.writer import Work, Writer

Result = TypeVar("Result")
Undo = Callable[[apsw.Connection, str, Owner], None]

_STILL_ALIVE = 0.25
"""How often whoever waits for a claim asks whether its holder lives."""

_STILL_THERE = 1.0
"""How often whoever follows a stream asks whether the store can be reached."""


class SqliteStore:
    """Shared state in one file of SQLite, for every process of one machine.

    The file is opened at first use, or by `open`. `lease` is for how long a process that can no longer be
    asked is believed to live, `patience` how long to wait for a file that others locked, both in seconds.
    With `durable_appends` streams survive a power cut as everything else does, at the price of a flush.
    Without `create` a file that does not exist is refused; so is, with `store_id`, a store with another id.
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
        lease, patience = limits.patience("lease", lease), limits.patience("patience", patience)
        machine = machine or this_machine()
        self._database = Database(
            Path(path).absolute(),
            machine,
            lease=lease,
            patience=patience,
            create=create,
            store_id=store_id,
        )
        self._owner = Owner(machine, lease)
        self._bells = Bells(self._database)
        self._writer = Writer(self._database, self._owner, self._bells)
        self._aside = ThreadPoolExecutor(1, "jackfield-store-reader")
        self._durable_appends = durable_appends
        self._pid = os.getpid()
        self._closed = False

    @classmethod
    async def open(cls, path: str | Path, **options: Any) -> Self:
        """A store whose file is known to be there, and to be one."""
        store = cls(path, **options)
        try:
            await store._write(lambda _db, _now: None)
        except BaseException:
            await store.close()
            raise
        return store

    def now(self) -> float:
        """See `Store.now`."""
        with reported(self._database.path):
            return self._database.now()

    async def put(self, key: str, value: bytes, *, ttl: float | None = None) -> None:
        """See `Store.put`."""
        key, value, lasts = limits.key(key), limits.value(value), _lasting(ttl)
        await self._write(lambda db, now: kept.put(db, key, value, lasts(now)))

    async def get(self, key: str) -> bytes | None:
        """See `Store.get`."""
        limits.key(key)
        return await self._read(
            partial(kept.get, key=key, up_to=kept.INLINE_BYTES),
            otherwise=partial(kept.get, key=key, up_to=limits.MAX_VALUE_BYTES),
        )

    async def delete(self, key: str) -> bool:
        """See `Store.delete`."""
        return await self._write(partial(kept.delete, key=limits.key(key)))

    async def take(self, key: str) -> bytes | None:
        """See `Store.take`."""
        return await self._write(partial(kept.take, key=limits.key(key)))

    async def keys(self, prefix: str) -> list[str]:
        """See `Store.keys`."""
        return await self._read_aside(partial(kept.keys, prefix=limits.key(prefix)))

    async def add(self, key: str, amount: int, *, window: float) -> int:
        """See `Store.add`."""
        work = partial(
            kept.add, key=limits.key(key), amount=limits.amount(amount), window=limits.seconds(window)
        )
        return await self._write(work, durable=False)

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
        key, fingerprint, lasts = limits.key(key), limits.value(fingerprint), _lasting(ttl)
        outcome = None if result is None else limits.value(result)
        note = limits.value(note)
        known = await self._read(partial(claims.known, key=key, fingerprint=fingerprint, owner=self._owner))
        if known is not None:
            return known

        def work(db: apsw.Connection, now: float) -> Claim:
            return claims.claim(
                db, now, key, fingerprint, expires=lasts(now), owner=self._owner, note=note, result=outcome
            )

        if not durable and (made := self._at_once(work)) is not None:
            return made
        return await self._hold(key, work, claims.RUN, claims.release, durable=durable)

    async def holds(self, key: str) -> bool:
        """See `Store.holds`."""
        look = partial(claims.holds, key=limits.key(key), owner=self._owner)
        await self._ready()
        if not self._writer.is_known:
            # The lease ran out or is about to. A write renews it, and claims that were lost stay lost.
            return await self._writer.submit(look)
        return await self._read(look)

    async def reclaim(self, key: str) -> bool:
        """See `Store.reclaim`."""
        limits.key(key)
        return await self._hold(key, partial(claims.reclaim, key=key, owner=self._owner), True, claims.disown)

    async def complete(
        self, key: str, result: bytes, *, durable: bool = True, ttl: float | None = None
    ) -> bool:
        """See `Store.complete`."""
        work = partial(
            claims.complete,
            key=limits.key(key),
            result=limits.value(result),
            owner=self._owner,
            ttl=None if ttl is None else limits.seconds(ttl),
        )
        topic = Topic(claim_mark, key)
        await self._ready()
        if not durable and (done := self._at_once(work)) is not None:
            self._bells.ring([topic])
            return done
        return await self._writer.submit(work, durable=durable, topic=topic)

    async def release(self, key: str) -> None:
        """See `Store.release`."""
        limits.key(key)
        await self._ready()
        await self._undo(key, claims.release)

    async def abandon(self, key: str) -> None:
        """See `Store.abandon`."""
        limits.key(key)
        await self._ready()
        await self._undo(key, claims.disown)

    async def in_doubt(self, prefix: str) -> list[Doubt]:
        """See `Store.in_doubt`."""
        return await self._read_aside(partial(claims.in_doubt, prefix=limits.key(prefix), owner=self._owner))

    async def outcome(self, key: str, *, within: float) -> Claim:
        """See `Store.outcome`."""
        look = partial(claims.state, key=limits.key(key), owner=self._owner)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        found = await self._read(look)
        if found is not claims.RUNNING:
            return found
        with self._bells.listen(Topic(claim_mark, key)) as bell:
            while True:
                bell.hush()
                found = await self._read(look)
                remaining = deadline - loop.time()
                if found is not claims.RUNNING or remaining <= 0:
                    return found
                await bell.heard(min(remaining, _STILL_ALIVE))

    async def append(self, stream: str, value: bytes, *, ttl: float | None = None) -> int:
        """See `Store.append`."""
        stream, value, lasts = limits.key(stream), limits.value(value), _lasting(ttl)
        return await self._write(
            lambda db, now: streams.append(db, stream, value, lasts(now)),
            durable=self._durable_appends,
            topic=Topic(streams.last, stream),
        )

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Entry]:
        """See `Store.read`."""
        return await self._read_aside(
            partial(streams.read, stream=limits.key(stream), after=after, limit=max(limit, 0))
        )

    async def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[Entry]:
        """See `Store.follow`."""
        limits.key(stream)
        with self._bells.listen(Topic(streams.last, stream)) as bell:
            while True:
                bell.hush()
                newest = await self._read(lambda db, _now: streams.last(db, stream))
                while after < newest:
                    entries = await self.read(stream, after=after)
                    for entry in entries:
                        yield entry
                    # What is missing in between has expired.
                    after = entries[-1].id if entries else newest
                await bell.heard(_STILL_THERE)

    async def streams(self, prefix: str) -> list[str]:
        """See `Store.streams`."""
        return await self._read_aside(partial(streams.names, prefix=limits.key(prefix)))

    async def clear(self, stream: str) -> int:
        """See `Store.clear`."""
        return await self._write(partial(streams.clear, stream=limits.key(stream)))

    async def prune(self) -> int:
        """See `Store.prune`."""
        gone = 0
        while chunk := await self._write(pruning.prune, durable=False):
            gone += chunk
        await self._write(self._owner.forget_the_dead, durable=False)
        return gone

    async def close(self) -> None:
        """See `Store.close`."""
        self._refuse_in_a_child()
        self._closed = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._writer.close()
        self._bells.close()
        self._aside.shutdown()
        with reported(self._database.path):
            self._database.close()

    async def _ready(self) -> None:
        self._refuse_in_a_child()
        if self._closed:
            raise StoreUnavailableError(f"the store {self._database.path} is closed")
        if not self._database.prepared:
            with reported(self._database.path):
                await asyncio.to_thread(self._database.prepare)

    def _refuse_in_a_child(self) -> None:
        if self._pid != os.getpid():
            raise RuntimeError(
                f"the store {self._database.path} was made before a fork and cannot be used behind it; "
                "make one in every process"
            )

    async def _write(self, work: Work[Result], *, durable: bool = True, topic: Topic | None = None) -> Result:
        await self._ready()
        return await self._writer.submit(work, durable=durable, topic=topic)

    def _at_once(self, work: Work[Result]) -> Result | None:
        """Write on the loop what need not be flushed; nothing, and nothing done, if somebody is in the way.

        Handing it to the thread and being woken by it takes longer than the writing.
        """
        if not self._writer.is_known:
            return None
        try:
            db = self._database.connection(patient=False)
            with writing(db):
                return work(db, self._database.now())
        except (apsw.Error, OSError):
            return None

    async def _hold(
        self, key: str, work: Work[Result], won: Result, undo: Undo, *, durable: bool = True
    ) -> Result:
        """Get hold of a claim; let go of it if whoever wanted it was cancelled meanwhile."""
        await self._ready()
        future = self._writer.submit(work, durable=durable)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:

            def let_go(done: asyncio.Future[Result]) -> None:
                if not done.cancelled() and done.exception() is None and done.result() == won:
                    with suppress(StoreUnavailableError):
                        self._undo(key, undo)

            future.add_done_callback(let_go)
            raise

    def _undo(self, key: str, undo: Undo) -> asyncio.Future[None]:
        return self._writer.submit(lambda db, _now: undo(db, key, self._owner), topic=Topic(claim_mark, key))

    async def _read(self, query: Work[Result], *, otherwise: Work[Result] | None = None) -> Result:
        """Read on the loop, which takes less time than to ask a thread; on the thread what takes longer."""
        await self._ready()
        try:
            db = self._database.connection(patient=False, certain=False)
            return query(db, self._database.now())
        except (apsw.Error, OSError, TooBigHereError):
            # If it cannot be read at all, the other thread says so, after it has waited for whom it has to.
            return await self._read_aside(otherwise or query)

    async def _read_aside(self, query: Work[Result]) -> Result:
        await self._ready()

        def read() -> Result:
            with reported(self._database.path):
                try:
                    return query(self._database.connection(certain=False), self._database.now())
                except apsw.Error:
                    self._database.disconnect()
                    raise

        return await asyncio.get_running_loop().run_in_executor(self._aside, read)


def _lasting(ttl: float | None) -> Callable[[float], float | None]:
    """From the time of the transaction to when something expires, if ever."""
    if ttl is None or limits.seconds(ttl) == math.inf:
        return lambda _now: None
    return lambda now: now + ttl

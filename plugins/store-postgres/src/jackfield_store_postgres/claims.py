"""Claims: how an owner makes, completes, ends and takes over claims.

If the connection breaks during a statement, its outcome is unknown, and the statement is sent again. That is
safe: each attempt leaves its number in the row or needs the current fence, so the effect of an earlier
attempt is recognised. A row that an earlier attempt wrote is written again before it counts, so that its
commit has reached the synchronous standby.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from jackfield.store import Claim, ClaimState, StoreUnavailableError
from jackfield_postgres.session import Connection

from jackfield_store_postgres import statements
from jackfield_store_postgres.batches import BatchLane, resolve
from jackfield_store_postgres.database import PostgresDatabase
from jackfield_store_postgres.notifier import ChangeNotifier, claim_topic
from jackfield_store_postgres.owner import HeldClaim, LeaseOwner
from jackfield_store_postgres.statements import seconds, to_text

RUN, RUNNING = Claim(ClaimState.RUN), Claim(ClaimState.RUNNING)
IN_DOUBT, CONFLICT, FREE = Claim(ClaimState.IN_DOUBT), Claim(ClaimState.CONFLICT), Claim(ClaimState.FREE)

_WIDTH = 2
"""Concurrent statements of one kind: while one waits for its commit, the next one is sent."""


@dataclass(slots=True)
class NewClaim:
    """A claim to be made."""

    key: str
    fingerprint: bytes
    ttl: float
    note: bytes | None
    result: bytes | None
    attempt: int
    future: asyncio.Future[Claim]

    @property
    def size(self) -> int:
        """Approximate number of bytes that it sends."""
        return len(self.fingerprint) + len(self.note or b"") + len(self.result or b"")


@dataclass(slots=True)
class Completion:
    """The result of a claim that is held."""

    key: str
    held: HeldClaim
    result: bytes
    ttl: float | None
    future: asyncio.Future[bool]

    @property
    def size(self) -> int:
        """Approximate number of bytes that it sends."""
        return len(self.result)


class OwnClaims:
    """Changes claims on behalf of one owner."""

    def __init__(self, database: PostgresDatabase, owner: LeaseOwner, notifier: ChangeNotifier) -> None:
        self._database = database
        self._owner = owner
        self._notifier = notifier
        self._attempts = itertools.count(1)
        self._new: dict[bool, BatchLane[NewClaim]] = {}
        self._completions: dict[bool, BatchLane[Completion]] = {}
        for durable in (True, False):
            self._new[durable] = BatchLane(partial(self._make, durable), _WIDTH)
            self._completions[durable] = BatchLane(partial(self._complete, durable), _WIDTH)
        self._undoing: set[asyncio.Task[None]] = set()

    async def make(  # noqa: PLR0917 - the fields of a claim
        self,
        key: str,
        fingerprint: bytes,
        ttl: float,
        note: bytes | None,
        result: bytes | None,
        durable: bool,
    ) -> Claim:
        """Make a claim, or return the state of the existing one; undone if the caller is cancelled."""
        future: asyncio.Future[Claim] = asyncio.get_running_loop().create_future()
        job = NewClaim(key, fingerprint, ttl, note, result, next(self._attempts), future)
        self._new[durable].submit(job)
        try:
            return await future
        except asyncio.CancelledError:
            # Cancelled between the answer and this line.
            if not future.cancelled() and not future.exception() and future.result() is RUN:
                self._undo(key)
            raise

    async def complete(self, key: str, result: bytes, ttl: float | None, durable: bool) -> bool:
        """Record a result; return whether this owner still held the claim."""
        held = self._owner.held.get(key)
        if held is None:
            return False
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._completions[durable].submit(Completion(key, held, result, ttl, future))
        return await future

    async def end(self, statement: str, key: str) -> None:
        """Release or abandon a claim; does nothing if it is not held."""
        held = self._owner.held.get(key)
        if held is not None:
            await self._database.fetch(statement, to_text(key), held.fence, repeatable=True)
            self._forget(key, held)
            self._notifier.publish([claim_topic(key)])

    async def take_over(self, key: str) -> bool:
        """Take over a claim in doubt; return whether that succeeded."""
        owner, attempt, text = self._owner.id, next(self._attempts), to_text(key)
        repetitions = itertools.count()

        async def take(connection: Connection) -> list[Any]:
            repeated = next(repetitions) > 0
            rows = await connection.fetch(statements.RECLAIM, text, owner, attempt)
            if not rows and repeated:
                rows = await connection.fetch(statements.CONFIRM_CLAIMS, owner, [text], [attempt])
            return rows

        rows = await self._database.run(take, repeatable=True)
        if rows:
            self._owner.held.note(key, rows[0]["fence"], None)
        return bool(rows)

    async def finish(self) -> None:
        """Wait until all operations that have begun are done."""
        for durable in (True, False):
            await self._new[durable].finish()
            await self._completions[durable].finish()
        while self._undoing:
            await asyncio.wait(self._undoing)

    async def _make(self, durable: bool, jobs: list[NewClaim]) -> None:
        owner = self._owner.id
        waiting = {job.attempt: job for job in jobs}
        while waiting:
            rows = await self._make_some(owner, list(waiting.values()), durable)
            # A job without a row: another caller has just made or ended the claim. The next query sees that.
            for row in rows:
                job = waiting.pop(row["wanted"])
                if row["made"]:
                    self._won(job, row["fence"])
                else:
                    same = row["fingerprint"] == job.fingerprint
                    resolve(job.future, to_claim(row) if same else CONFLICT)

    async def _make_some(self, owner: str, jobs: list[NewClaim], durable: bool) -> list[Any]:
        jobs.sort(key=lambda job: job.key)
        arguments = (
            owner,
            [to_text(job.key) for job in jobs],
            [job.attempt for job in jobs],
            [job.fingerprint for job in jobs],
            [seconds(job.ttl) for job in jobs],
            [job.note for job in jobs],
            [job.result for job in jobs],
            durable,
        )

        async def make(connection: Connection) -> list[Any]:
            rows: list[Any] = await connection.fetch(statements.MAKE_CLAIMS, *arguments)
            earlier = [row["wanted"] for row in rows if not row["made"] and row["is_own"]]
            if not earlier:
                return rows
            # The connection broke after an earlier attempt, but that attempt did make these claims.
            keys = [to_text(job.key) for job in jobs if job.attempt in earlier]
            confirmed = await connection.fetch(statements.CONFIRM_CLAIMS, owner, keys, earlier)
            return [row for row in rows if row["wanted"] not in earlier] + confirmed

        return await self._database.run(make, repeatable=True)

    def _won(self, job: NewClaim, fence: int) -> None:
        if job.result is None:
            self._owner.held.note(job.key, fence, None if job.note else seconds(job.ttl))
        if not resolve(job.future, RUN):
            self._undo(job.key)

    def _undo(self, key: str) -> None:
        """Release a claim whose caller was cancelled before it got the answer."""
        task = asyncio.create_task(self._release(key))
        self._undoing.add(task)
        task.add_done_callback(self._undoing.discard)

    async def _release(self, key: str) -> None:
        with suppress(StoreUnavailableError):
            await self.end(statements.RELEASE, key)

    async def _complete(self, durable: bool, jobs: list[Completion]) -> None:
        jobs.sort(key=lambda job: job.key)
        columns = (
            [to_text(job.key) for job in jobs],
            [job.held.fence for job in jobs],
            [job.result for job in jobs],
        )
        ttls = [None if job.ttl is None else _lasting(job.ttl) for job in jobs]
        numbers = list(range(len(jobs)))
        repetitions = itertools.count()

        async def complete(connection: Connection) -> set[int]:
            repeated = next(repetitions) > 0
            done = _numbers(await connection.fetch(statements.COMPLETE, *columns, numbers, ttls, durable))
            if repeated and len(done) < len(jobs):
                done |= _numbers(await connection.fetch(statements.CONFIRM_RESULTS, *columns, numbers))
            return done

        done = await self._database.run(complete, repeatable=True)
        for number, job in enumerate(jobs):
            self._forget(job.key, job.held)
            resolve(job.future, number in done)
        self._notifier.publish(claim_topic(job.key) for job in jobs)

    def _forget(self, key: str, held: HeldClaim) -> None:
        if self._owner.held.get(key) is held:
            del self._owner.held[key]


def to_claim(row: Any) -> Claim:
    """Return the claim of a row."""
    if row["result"] is not None:
        return Claim(ClaimState.DONE, row["result"])
    return RUNNING if row["alive"] else IN_DOUBT


def _lasting(ttl: float) -> float:
    """Return a new time to live for `COMPLETE`; negative if the claim must not expire."""
    return -1.0 if seconds(ttl) is None else ttl


def _numbers(rows: Iterable[Any]) -> set[int]:
    return {row["number"] for row in rows}

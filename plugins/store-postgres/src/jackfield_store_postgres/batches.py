"""Batches: waiting operations of one kind share one statement.

A commit costs a flush, a round trip and perhaps the answer of a standby, whether it holds one operation or
hundreds. A lone operation is sent at once; operations that arrive while a statement is running form the next
batch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from jackfield.store import StoreUnavailableError

_MAX_JOBS = 512
"""Operations per batch; more would make the first ones wait for the last."""
_MAX_BYTES = 16 * 1024 * 1024


class BatchJob(Protocol):
    """An operation that is waiting for its batch."""

    @property
    def size(self) -> int:
        """Approximate number of bytes that it sends."""

    @property
    def future(self) -> asyncio.Future[Any]:
        """Resolves once the operation is committed."""


AnyJob = TypeVar("AnyJob", bound=BatchJob)


class BatchLane(Generic[AnyJob]):
    """Runs jobs in batches, up to `width` at a time; a width of 1 keeps their order.

    `run` writes a batch and resolves its futures. If it raises, the batch fails, and so do all waiting jobs:
    they would wait as long for the same error, and no job may be accepted after an earlier one was refused.
    """

    def __init__(self, run: Callable[[list[AnyJob]], Awaitable[None]], width: int = 1) -> None:
        self.batches = 0
        """Number of batches written."""
        self._run = run
        self._width = width
        self._waiting: deque[AnyJob] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = False
        """True if a task will take the waiting jobs in the loop's next iteration."""

    def submit(self, job: AnyJob) -> None:
        """Queue an operation."""
        self._waiting.append(job)
        if not self._starting and len(self._tasks) < self._width:
            # The task starts in the loop's next iteration, so all jobs from this one share a batch.
            self._starting = True
            self._tasks.add(asyncio.create_task(self._run_all(), name="jackfield-store-batch"))

    async def finish(self) -> None:
        """Wait until all queued jobs have been written or have failed."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run_all(self) -> None:
        self._starting = False
        while self._waiting:
            jobs = self._next_batch()
            try:
                await self._run(jobs)
                self.batches += 1
            except Exception as error:  # noqa: BLE001 - every future must be resolved
                _fail([*jobs, *self._waiting], error)
                self._waiting.clear()
        # Not in a done callback, which runs later: a job that is submitted from here on needs a new task.
        if task := asyncio.current_task():
            self._tasks.discard(task)

    def _next_batch(self) -> list[AnyJob]:
        jobs = [self._waiting.popleft()]
        size = jobs[0].size
        while self._waiting and len(jobs) < _MAX_JOBS and size + self._waiting[0].size <= _MAX_BYTES:
            jobs.append(self._waiting.popleft())
            size += jobs[-1].size
        return jobs


def resolve(future: asyncio.Future[Any], result: Any) -> bool:
    """Resolve a future; return False if its caller was cancelled and no longer waits."""
    if future.done():
        return False
    future.set_result(result)
    return True


def _fail(jobs: Iterable[BatchJob], error: Exception) -> None:
    for job in jobs:
        if not job.future.done():
            # One error per caller, because each adds its own traceback.
            own = type(error)(str(error)) if isinstance(error, StoreUnavailableError) else error
            own.__cause__ = error.__cause__
            job.future.set_exception(own)

"""Appends and puts: all waiting ones are written by one statement, in the order of the calls."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jackfield_store_postgres import statements
from jackfield_store_postgres.batches import BatchLane, resolve
from jackfield_store_postgres.database import PostgresDatabase
from jackfield_store_postgres.errors import closed_error
from jackfield_store_postgres.notifier import ChangeNotifier, stream_topic
from jackfield_store_postgres.statements import seconds, to_text


@dataclass(slots=True)
class Append:
    """Entries for a stream."""

    stream: str
    values: Sequence[bytes]
    ttl: float | None
    future: asyncio.Future[int]

    @property
    def size(self) -> int:
        """Approximate number of bytes that it sends."""
        return sum(map(len, self.values))


@dataclass(slots=True)
class Put:
    """A value for a key."""

    key: str
    value: bytes
    ttl: float | None
    future: asyncio.Future[None]

    @property
    def size(self) -> int:
        """Approximate number of bytes that it sends."""
        return len(self.value)


class EntryWriter:
    """Takes appends and puts and resolves their futures once they are committed."""

    def __init__(
        self, database: PostgresDatabase, notifier: ChangeNotifier, *, durable_appends: bool
    ) -> None:
        self._database = database
        self._notifier = notifier
        self._durable_appends = durable_appends
        self._lane: BatchLane[Append | Put] = BatchLane(self._write)
        self._closed = False

    @property
    def batches(self) -> int:
        """The number of statements that were committed."""
        return self._lane.batches

    def append(self, stream: str, values: Sequence[bytes], ttl: float | None) -> asyncio.Future[int]:
        """Queue entries; the future resolves to the id of the last one."""
        job = Append(stream, values, ttl, asyncio.get_running_loop().create_future())
        self._submit(job)
        return job.future

    def put(self, key: str, value: bytes, ttl: float | None) -> asyncio.Future[None]:
        """Queue a value."""
        job = Put(key, value, ttl, asyncio.get_running_loop().create_future())
        self._submit(job)
        return job.future

    async def close(self) -> None:
        """Write everything that was queued."""
        self._closed = True
        await self._lane.finish()

    def _submit(self, job: Append | Put) -> None:
        if self._closed:
            raise closed_error(self._database.place)
        self._lane.submit(job)

    async def _write(self, jobs: list[Append | Put]) -> None:
        appends = [job for job in jobs if isinstance(job, Append)]
        puts = [job for job in jobs if isinstance(job, Put)]
        # Of several puts of one key, the last one counts.
        last_puts = {job.key: job for job in puts}
        kept = [last_puts[key] for key in sorted(last_puts)]
        entries = [(job.stream, value, job.ttl) for job in appends for value in job.values]
        counts = Counter(stream for stream, _, _ in entries)
        streams = sorted(counts)
        rows = await self._database.fetch(
            statements.WRITE_BATCH,
            [to_text(stream) for stream in streams],
            [counts[stream] for stream in streams],
            [to_text(stream) for stream, _, _ in entries],
            _following([stream for stream, _, _ in entries], counts),
            [value for _, value, _ in entries],
            [seconds(ttl) for _, _, ttl in entries],
            [to_text(job.key) for job in kept],
            [job.value for job in kept],
            [seconds(job.ttl) for job in kept],
            bool(kept) or self._durable_appends,
        )
        last = {row["name"]: row["last"] for row in rows}
        used = {stream: last[to_text(stream)] - counts[stream] for stream in streams}
        for job in appends:
            used[job.stream] += len(job.values)
            resolve(job.future, used[job.stream])
        for put in puts:
            resolve(put.future, None)
        self._notifier.publish(map(stream_topic, streams))


def _following(streams: Iterable[str], counts: Counter[str]) -> list[int]:
    """Return for each entry how many entries of its stream follow it in the batch."""
    remaining = counts.copy()
    following = []
    for stream in streams:
        remaining[stream] -= 1
        following.append(remaining[stream])
    return following

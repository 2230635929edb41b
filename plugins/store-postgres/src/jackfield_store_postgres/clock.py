"""The store's clock: the server's time, advanced by this machine's uptime between two queries.

The host's wall clock is not used. The server reads its time at some moment between the query and the answer;
the shorter that interval, the more precise the answer. The most precise answer is used until a better one
arrives, or until the server's clock is set and a new answer contradicts it. The time never goes back: if the
server's clock is set back, the store's time stands still in this process until the server has caught up.
"""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from typing import NamedTuple

from jackfield.store import StoreUnavailableError
from jackfield_postgres.session import Connection, close

from jackfield_store_postgres import statements
from jackfield_store_postgres.database import PostgresDatabase

SAMPLES = 5
"""Number of queries for the first anchor."""
_DRIFT = 0.0002
"""Seconds per second by which two clocks may drift apart."""

# CLOCK_BOOTTIME also counts while the machine sleeps; it exists on Linux only.
uptime = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class ServerTime(NamedTuple):
    """One moment, as server time and as uptime, and the possible error in seconds."""

    server: float
    uptime: float
    error: float

    def error_at(self, moment: float) -> float:
        """Return the anchor's possible error at a later moment."""
        return self.error + (moment - self.uptime) * _DRIFT


class StoreClock:
    """Returns the server's time without asking the server."""

    def __init__(self) -> None:
        self._anchor: ServerTime | None = None
        self._latest = 0.0

    @property
    def is_set(self) -> bool:
        """True if the server has been asked."""
        return self._anchor is not None

    def now(self) -> float:
        """Return the store's time."""
        anchor = self._anchor
        if anchor is None:
            raise StoreUnavailableError("the store's clock is not known yet")
        self._latest = max(self._latest, anchor.server + uptime() - anchor.uptime)
        return self._latest

    async def synchronise(self, connection: Connection, samples: int = 1) -> None:
        """Ask the server for its time."""
        for _ in range(samples):
            before = uptime()
            server = float(await connection.fetchval(statements.READ_TIME))
            after = uptime()
            self.offer(ServerTime(server, (before + after) / 2, (after - before) / 2))

    def offer(self, sample: ServerTime) -> None:
        """Use an answer from the server if it is more precise than the current anchor, or contradicts it."""
        current = self._anchor
        if current is not None:
            expected = current.server + sample.uptime - current.uptime
            error = current.error_at(sample.uptime)
            if sample.error >= error and abs(sample.server - expected) <= sample.error + error:
                return
        self._anchor = sample

    def synchronise_blocking(self, database: PostgresDatabase) -> None:
        """Ask the server on a thread and block until it answers; for a `now()` before any operation."""
        problems: list[BaseException] = []

        async def ask() -> None:
            try:
                own = database.copy()
                await own.prepare()
                connection = await own.connect()
                await self.synchronise(connection, SAMPLES)
                await close(connection)
            except BaseException as error:  # noqa: BLE001 - raised in the other thread
                problems.append(error)

        thread = threading.Thread(target=lambda: asyncio.run(ask()), name="jackfield-store-clock")
        thread.start()
        thread.join()
        if problems:
            raise problems[0]

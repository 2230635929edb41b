"""Sessions whose statement gets no answer: checks whether the server is still running it.

A connection can be cut silently, by a firewall or a machine that failed. It then looks like a connection with
a slow statement, and waiting until `patience` has passed would be pointless. A new session asks the server:
if it is running nothing for the silent session, no answer can come any more, and the session is dropped at
once. A statement that waits for a lock or for the synchronous standby is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple
from weakref import WeakKeyDictionary

from jackfield_postgres.errors import UNREACHABLE
from jackfield_postgres.session import Connection

from jackfield_store_postgres import statements

_SILENCE_SECONDS = 1.0
"""Seconds that a statement may take before the server is asked about it, and between two queries."""

_ARRIVAL_SECONDS = 0.25
"""Seconds that an answer may be in transit."""

_ANSWER_SECONDS = 2.0
"""Seconds that the new session may take to answer."""


class ServerProcess(NamedTuple):
    """The server's process for a session; pids are reused, so its start time identifies it as well."""

    pid: int
    began: datetime


class SilentSessions:
    """One database's sessions that have been waiting unusually long for an answer."""

    def __init__(
        self, connect: Callable[[], Awaitable[Connection]], drop: Callable[[Connection], None]
    ) -> None:
        self.drop = drop
        self._connect = connect
        self._processes: WeakKeyDictionary[Connection, ServerProcess] = WeakKeyDictionary()
        self._silent: set[Connection] = set()
        self._asking: asyncio.Task[None] | None = None

    async def register(self, connection: Connection) -> None:
        """Note the server's process of a new session."""
        row = await connection.fetchrow(statements.OWN_PROCESS)
        if row is not None:
            self._processes[connection] = ServerProcess(*row)

    def watch(self, connection: Connection, seconds: float) -> StatementWatch:
        """Watch a session that starts a statement, and drop it after this many seconds in any case."""
        return StatementWatch(self, connection, seconds)

    def add(self, connection: Connection) -> None:
        """Ask the server about a session repeatedly, until the session is removed."""
        if connection in self._processes:
            self._silent.add(connection)
            if self._asking is None:
                self._asking = asyncio.create_task(self._ask(), name="jackfield-store-silent-sessions")

    def remove(self, connection: Connection) -> None:
        """Forget a session whose statement has ended."""
        self._silent.discard(connection)

    async def close(self) -> None:
        """Stop asking."""
        if self._asking is not None:
            self._asking.cancel()
            with suppress(asyncio.CancelledError):
                await self._asking

    async def _ask(self) -> None:
        try:
            while self._silent:
                # If the server cannot be reached, nothing is known, and the session is dropped at its
                # deadline.
                with suppress(*UNREACHABLE):
                    for connection in await self._lost():
                        self.drop(connection)
                await asyncio.sleep(_SILENCE_SECONDS)
        finally:
            self._asking = None

    async def _lost(self) -> set[Connection]:
        """Return the silent sessions that cannot get an answer any more."""
        asking = await self._connect()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                lost = await self._not_busy(asking)
                if lost:
                    # The answer may be in transit. If it is still missing after this pause, it is lost.
                    await asyncio.sleep(_ARRIVAL_SECONDS)
                    lost &= await self._not_busy(asking)
                return lost & self._silent
        finally:
            asking.terminate()

    async def _not_busy(self, asking: Connection) -> set[Connection]:
        silent = {each: self._processes[each] for each in self._silent}
        rows = await asking.fetch(statements.BUSY_PROCESSES, [process.pid for process in silent.values()])
        busy = {ServerProcess(*row) for row in rows}
        return {connection for connection, process in silent.items() if process not in busy}


class StatementWatch:
    """Drops the session of a statement that gets no answer; call `end` when the statement has ended."""

    __slots__ = ("_connection", "_deadline", "_loop", "_sessions", "_timer")

    def __init__(self, sessions: SilentSessions, connection: Connection, seconds: float) -> None:
        self._sessions = sessions
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._deadline = now + seconds
        self._timer = self._loop.call_at(min(self._deadline, now + _SILENCE_SECONDS), self._remains_silent)

    def end(self) -> None:
        """Stop watching, because the statement has ended."""
        self._timer.cancel()
        self._sessions.remove(self._connection)

    def _remains_silent(self) -> None:
        if self._loop.time() >= self._deadline:
            # Not cancelled on the server: a commit whose wait for the synchronous standby is cancelled counts
            # at once, although a failover could still lose it.
            self._sessions.drop(self._connection)
        else:
            self._sessions.add(self._connection)
            self._timer = self._loop.call_at(self._deadline, self._remains_silent)

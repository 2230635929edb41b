"""Connections to the server: configured sessions, and a pool of them.

asyncpg has a pool too, but it resets a session whenever it is returned, which is one more round trip, and
starts a task for that. This store's statements leave nothing behind that would have to be reset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from jackfield_postgres import session
from jackfield_postgres.session import (
    KEEPALIVE,
    Connection,
    close,
    display_url,
    invalid_url_reason,
    session_options,
)

from jackfield_store_postgres.errors import RefusedError

_UNACKNOWLEDGED_MS = 11_000
"""Milliseconds without an acknowledgement after which the server drops a session; as long as `KEEPALIVE`."""


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The database's address and schema, and a session's time limits in seconds."""

    url: str
    schema: str = "jackfield"
    connect_timeout: float = 3.0
    statement_timeout: float = 5.0
    lock_timeout: float = 3.0
    application_name: str = "jackfield"

    @property
    def place(self) -> str:
        """The address and the schema for messages, without the password."""
        return f"{display_url(self.url)} (schema {self.schema})"


async def connect(options: ConnectionOptions) -> Connection:
    """Return a configured session with a server that accepts writes."""
    async with asyncio.timeout(options.connect_timeout):
        try:
            connection = await session.connect(
                options.url, **session_options(options.application_name, timeout=options.connect_timeout)
            )
        except ValueError as error:
            raise RefusedError(invalid_url_reason("store", error)) from None
        try:
            await connection.execute(_session_settings(options))
        except BaseException:
            connection.terminate()
            raise
    return connection


def _session_settings(options: ConnectionOptions) -> str:
    statement_ms, lock_ms = (
        max(1, int(seconds * 1000)) for seconds in (options.statement_timeout, options.lock_timeout)
    )
    # Every statement finds its rows by an index. Without these settings, a plan that was cached while a table
    # was small would still read the whole table long after it has grown.
    plans = " ".join(f"SET enable_{kind} = off;" for kind in ("seqscan", "hashjoin", "mergejoin"))
    # A server whose default is weaker, such as `off` or `local`, would lose acknowledged writes.
    return f"""
        SET search_path TO "{options.schema}";
        SET statement_timeout = {statement_ms};
        SET lock_timeout = {lock_ms};
        SET idle_in_transaction_session_timeout = {statement_ms};
        SET default_transaction_isolation = 'read committed';
        SET jit = off;
        {plans}
        {KEEPALIVE}
        SET tcp_user_timeout = {_UNACKNOWLEDGED_MS};
        SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');
    """


class ConnectionPool:
    """Up to `size` sessions; the last one used is the first one reused, so that low load uses few of them."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int) -> None:
        self._connect = connect
        self._slots = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._closed = False

    async def acquire(self) -> Connection:
        """Return a session for exclusive use; the caller must `release` it."""
        await self._slots.acquire()
        try:
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_closed():
                    return connection
                self._all.discard(connection)
            connection = await self._connect()
        except BaseException:
            self._slots.release()
            raise
        self._all.add(connection)
        return connection

    def release(self, connection: Connection) -> None:
        """Put a session back; a broken one is dropped."""
        if self._closed or connection.is_closed():
            self.drop(connection)
        else:
            self._idle.append(connection)
        self._slots.release()

    def drop(self, connection: Connection) -> None:
        """End a session at once, without cancelling what the server is still doing for it."""
        self._all.discard(connection)
        connection.terminate()

    def drop_idle(self) -> None:
        """End all idle sessions: whatever broke one session has probably broken these too."""
        while self._idle:
            self.drop(self._idle.pop())

    async def close(self) -> None:
        """End all sessions."""
        self._closed = True
        for connection in list(self._all):
            await close(connection)
        self._all.clear()
        self._idle.clear()

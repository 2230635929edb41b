"""The owner of claims: one open store, its lease, and the claims that it holds.

The lease is renewed several times per `grace`. Others regard the owner as dead when `grace` has passed since
the last renewal and its session lock is free, or when the whole lease has passed. So a killed process is
noticed within `grace`, a host that is busy or paused keeps its claims for the lease, and a host whose
connection breaks has `grace` to reconnect. Neither lock nor lease protects a claim by itself: every change of
owner raises the claim's fence, and only the holder of the current fence can end the claim.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from contextlib import suppress
from typing import NamedTuple

from jackfield.store import StoreUnavailableError
from jackfield_postgres.errors import UNREACHABLE
from jackfield_postgres.session import Connection, close

from jackfield_store_postgres import statements
from jackfield_store_postgres.clock import StoreClock, uptime
from jackfield_store_postgres.database import PostgresDatabase
from jackfield_store_postgres.errors import unavailable_error

_log = logging.getLogger(__name__)

_GRACE = 1 / 4
"""The part of the lease for which an owner keeps its claims if its session is gone too."""

_RENEWALS = 3
"""Renewals per `grace`; `holds` needs one that is no older than half of `grace`."""

_SPARE_SECONDS = 60.0


class HeldClaim(NamedTuple):
    """A claim that this owner holds: its fence, and when it has certainly expired in the store."""

    fence: int
    until: float


class HeldClaims(dict[str, HeldClaim]):
    """The claims that an owner holds, by key; claims that expire without being ended are dropped later."""

    def __init__(self) -> None:
        super().__init__()
        self._sweep_at = 1024

    def note(self, key: str, fence: int, ttl: float | None) -> None:
        """Add a claim; without a ttl it does not expire."""
        now = uptime()
        self[key] = HeldClaim(fence, float("inf") if ttl is None else now + ttl + _SPARE_SECONDS)
        if len(self) >= self._sweep_at:
            for expired in [each for each, held in self.items() if held.until < now]:
                del self[expired]
            self._sweep_at = max(1024, 2 * len(self))


class LeaseOwner:
    """Renews a lease in the background, on a session of its own whose lock shows that it is connected."""

    def __init__(self, database: PostgresDatabase, clock: StoreClock, lease: float) -> None:
        self.id = ""
        """Empty until the owner is registered; replaced if others have removed the owner as dead."""
        self.held = HeldClaims()
        self._database = database
        self._clock = clock
        self._lease = lease
        self._grace = lease * _GRACE
        self._session = 0
        self._connection: Connection | None = None
        self._renewing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._host = f"{socket.gethostname()}:{os.getpid()}"

    async def register(self) -> None:
        """Register the owner and start to renew its lease regularly; do nothing if it is registered."""
        if not self.id:
            await self.renew()
            if self._task is None:
                self._task = asyncio.create_task(self._keep_lease(), name="jackfield-store-lease")

    async def renew(self) -> None:
        """Renew the lease now; raise `StoreUnavailableError` if that is not possible."""
        async with self._renewing:
            try:
                await self._renew(await self._connected())
            except UNREACHABLE as error:
                self._disconnect()
                raise unavailable_error(self._database.place, error) from error
            except BaseException:
                # An interrupted statement leaves the session in an unknown state.
                self._disconnect()
                raise

    async def _connected(self) -> Connection:
        connection = self._connection
        if connection is None or connection.is_closed():
            connection = await self._database.connect()
            self._connection = connection
            self._session = 0
        return connection

    async def _renew(self, connection: Connection) -> None:
        watch = self._database.watch(connection)
        try:
            if not self._session:
                # A new number for each session: a broken session's lock may remain held for a while.
                number = secrets.randbits(63)
                await connection.execute(statements.LOCK_SESSION, number)
                self._session = number
            if not self.id or not await connection.fetch(statements.RENEW_OWNER, self.id, self._session):
                await self._register(connection)
            await self._clock.synchronise(connection)
        finally:
            watch.end()

    async def _register(self, connection: Connection) -> None:
        if self.id:
            _log.warning("this host was paused or disconnected for so long that it lost all its claims")
        self.held.clear()
        name = secrets.token_hex(8)
        await connection.execute(
            statements.REGISTER_OWNER, name, self._session, self._lease, self._grace, self._host
        )
        self.id = name

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(self._grace / _RENEWALS)
            # Operations report that the database is unavailable; this task just keeps trying.
            with suppress(StoreUnavailableError):
                await self.renew()

    async def resign(self) -> None:
        """End the lease; claims still held are in doubt from now on."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self.id:
            # If this fails, the lease expires by itself.
            with suppress(StoreUnavailableError):
                await self._database.fetch(statements.RESIGN_OWNER, self.id, repeatable=True)
        connection, self._connection = self._connection, None
        if connection is not None:
            await close(connection)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

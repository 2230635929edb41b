"""A store's database: it repeats statements until they succeed or fail for good, or `patience` has passed.

After a broken connection, a statement that never began is retried. One that may have been committed is
retried only if that is safe, as for reads and for writes that recognise what an earlier attempt did. All
others raise `OutcomeUnknownError`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg
from jackfield.store import StoreUnavailableError
from jackfield_postgres.errors import DEMOTED, UNREACHABLE
from jackfield_postgres.session import Connection, close

from jackfield_store_postgres import schema
from jackfield_store_postgres.connection import ConnectionOptions, ConnectionPool, connect
from jackfield_store_postgres.errors import (
    BROKEN,
    NOT_DONE,
    POOLED,
    OutcomeUnknownError,
    RefusedError,
    closed_error,
    unavailable_error,
)
from jackfield_store_postgres.server_check import check_server
from jackfield_store_postgres.silent_sessions import SilentSessions, StatementWatch

Result = TypeVar("Result")
Work = Callable[[Connection], Awaitable[Result]]
"""Work for one session; it is called again if the session breaks and the work is repeatable."""

_FIRST_PAUSE, _MAX_PAUSE, _PAUSE_FACTOR = 0.02, 0.4, 1.7
"""Seconds between two attempts to reach a server that does not answer."""


@dataclass(slots=True)
class StoreId:
    """The id shared by all databases of a store; unless given, None until the first one is opened."""

    value: str | None = None


class PostgresDatabase:
    """A schema in a PostgreSQL database, checked at first use.

    Without `create`, a schema without a store is rejected. With `store_id`, a store with a different id is
    rejected; so is any other store that later answers at the same address. A database that is not the
    expected `shard` is rejected as well.
    """

    def __init__(
        self,
        options: ConnectionOptions,
        *,
        patience: float,
        pool_size: int,
        create: bool,
        store_id: StoreId,
        shard: schema.Shard = schema.SINGLE,
    ) -> None:
        self.options = options
        self.place = options.place
        self.patience = patience
        self._create = create and store_id.value is None
        self._store_id = store_id
        self._shard = shard
        self._pool = ConnectionPool(self.connect, pool_size)
        self._silent = SilentSessions(lambda: connect(options), self._give_up)
        self._preparing = asyncio.Lock()
        self._prepared = False
        self._closed = False

    def copy(self) -> PostgresDatabase:
        """Return the same database for another event loop."""
        return PostgresDatabase(
            self.options,
            patience=self.patience,
            pool_size=1,
            create=self._create,
            store_id=self._store_id,
            shard=self._shard,
        )

    async def prepare(self) -> None:
        """Check the server and the store, create the store if allowed, and migrate it."""
        if not self._prepared:
            async with self._preparing:
                if not self._prepared:
                    await self._repeat(self._prepare)
                    self._prepared = True

    async def connect(self) -> Connection:
        """Return a new session with the checked store; the caller closes it."""
        # One time limit covers all steps, so that a server that stops responding between them does not take
        # longer to fail than any other.
        async with asyncio.timeout(self.options.connect_timeout):
            connection = await self._open()
            try:
                await self._check_identity(connection)
            except BaseException:
                connection.terminate()
                raise
        return connection

    def watch(self, connection: Connection) -> StatementWatch:
        """Watch a session that starts a statement; drop it if no answer can come, or none comes in time."""
        return self._silent.watch(connection, self.patience)

    async def run(self, work: Work[Result], *, repeatable: bool) -> Result:
        """Run work on a session from the pool, for at most `patience`."""
        return await self._repeat(lambda deadline: self._run_once(work, deadline, repeatable))

    async def fetch(self, sql: str, *arguments: Any, repeatable: bool = False) -> list[Any]:
        """Run one statement and return its rows."""
        return await self.run(lambda connection: connection.fetch(sql, *arguments), repeatable=repeatable)

    async def close(self) -> None:
        """End all sessions."""
        self._closed = True
        await self._silent.close()
        await self._pool.close()

    async def _repeat(self, action: Callable[[float], Awaitable[Result]]) -> Result:
        """Repeat an action until it succeeds or fails for good, or `patience` has passed."""
        deadline = time.monotonic() + self.patience
        pause = _FIRST_PAUSE
        while True:
            if self._closed:
                raise closed_error(self.place)
            try:
                return await action(deadline)
            except (StoreUnavailableError, asyncpg.DataError):
                raise
            except POOLED as error:
                raise unavailable_error(self.place, error) from error
            except UNREACHABLE as error:
                if time.monotonic() + pause >= deadline or _is_permanent(error):
                    raise unavailable_error(self.place, error) from error
            await asyncio.sleep(pause)
            pause = min(pause * _PAUSE_FACTOR, _MAX_PAUSE)

    async def _run_once(self, work: Work[Result], deadline: float, repeatable: bool) -> Result:
        async with asyncio.timeout(deadline - time.monotonic()):
            connection = await self._pool.acquire()
        watch = self._silent.watch(connection, deadline - time.monotonic())
        try:
            return await work(connection)
        except NOT_DONE:
            raise
        except DEMOTED:
            self._give_up(connection)
            raise
        except asyncpg.DataError:
            raise
        except BROKEN as error:
            self._give_up(connection)
            if repeatable:
                raise
            raise OutcomeUnknownError(
                f"the store {self.place} did not answer; the operation may or may not have taken effect"
            ) from error
        finally:
            watch.end()
            self._pool.release(connection)

    def _give_up(self, connection: Connection) -> None:
        self._pool.drop(connection)
        self._pool.drop_idle()

    async def _prepare(self, _deadline: float) -> None:
        options = self.options
        connection = await self._open()
        # Migrations may take long, so there is no deadline: the wait ends early only if the server is no
        # longer busy with the statement.
        watch = self._silent.watch(connection, math.inf)
        try:
            await check_server(connection, options)
            await self._check_store(connection)
        finally:
            watch.end()
            await close(connection)

    async def _open(self) -> Connection:
        """Return a session that can be watched."""
        async with asyncio.timeout(self.options.connect_timeout):
            connection = await connect(self.options)
            try:
                await self._silent.register(connection)
            except BaseException:
                connection.terminate()
                raise
        return connection

    async def _check_identity(self, connection: Connection) -> None:
        """Raise unless the session is connected to the same store as all others.

        A failover must not lead to a store without a record of the calls that have run.
        """
        try:
            found = await schema.identity(connection)
        except asyncpg.UndefinedTableError:
            raise RefusedError(f"the store {self.place} is gone; restore a backup") from None
        if reason := schema.rejection_reason(found, self.place, self._store_id.value, self._shard):
            raise RefusedError(reason)

    async def _check_store(self, connection: Connection) -> None:
        name = self.options.schema
        found = await schema.state(connection, name)
        if not found.is_store:
            if found.has_tables or not self._create:
                raise RefusedError(absent_reason(found, self.options, self._store_id.value))
            await create_store(connection, self.options)
        reason = await unusable_reason(connection, self.options, self._store_id.value, self._shard)
        if reason:
            raise RefusedError(reason)
        await schema.migrate(connection, name)
        self._store_id.value = (await schema.identity(connection)).id


async def create_store(
    connection: Connection,
    options: ConnectionOptions,
    *,
    store_id: str | None = None,
    shard: schema.Shard = schema.SINGLE,
) -> str | None:
    """Create a store, or a shard of one, and return its id; None if another process has just created one."""
    try:
        return await schema.create(connection, options.schema, store_id=store_id, shard=shard)
    except FileExistsError:
        return None
    except asyncpg.InsufficientPrivilegeError as error:
        raise RefusedError(
            f"the store {options.place} cannot be created: {error}; ask an administrator to run CREATE "
            f'SCHEMA "{options.schema}" AUTHORIZATION with the name of the user in the URL'
        ) from None


async def unusable_reason(
    connection: Connection,
    options: ConnectionOptions,
    pinned: str | None,
    shard: schema.Shard = schema.SINGLE,
) -> str | None:
    """Return why an existing store cannot be used and what to do; None if it can."""
    lacking = await schema.missing_rights(connection, options.schema)
    if lacking:
        return (
            f"the user of the store {options.place} lacks rights on {', '.join(lacking)}; grant USAGE on the "
            "schema, SELECT, INSERT, UPDATE and DELETE on its tables and USAGE on its sequences"
        )
    found = await schema.identity(connection)
    return schema.rejection_reason(found, options.place, pinned, shard)


def absent_reason(found: schema.SchemaState, options: ConnectionOptions, pinned: str | None) -> str:
    """Return why there is no store to open and what to do."""
    place = options.place
    if found.has_tables:
        return (
            f"the schema {options.schema} of {place} contains another program's tables; choose a different "
            "`schema`"
        )
    if pinned:
        return (
            f"the store {place} does not exist, and [stores.postgres] requires the one with the id {pinned}; "
            "correct the URL or restore a backup; for a new store, remove the `id` setting first"
        )
    return (
        f"the store {place} does not exist; if this is a new deployment, run `jackfield store create`; "
        "otherwise correct the URL or restore a backup"
    )


def _is_permanent(error: BaseException) -> bool:
    """True if a retry cannot help: a wrong password, a missing database, a missing right."""
    return isinstance(
        error,
        asyncpg.InvalidAuthorizationSpecificationError
        | asyncpg.InvalidCatalogNameError
        | asyncpg.InsufficientPrivilegeError
        | asyncpg.SyntaxOrAccessError,
    )

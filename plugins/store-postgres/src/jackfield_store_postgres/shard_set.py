"""The databases of a store, each with one open session: how they are created together, and inspected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple, Self

from jackfield_postgres.errors import UNREACHABLE
from jackfield_postgres.session import Connection, close

from jackfield_store_postgres import schema
from jackfield_store_postgres.connection import ConnectionOptions, connect
from jackfield_store_postgres.database import absent_reason, create_store, unusable_reason
from jackfield_store_postgres.errors import RefusedError, unavailable_error
from jackfield_store_postgres.schema import SchemaIdentity, SchemaState, Shard
from jackfield_store_postgres.server_check import ServerFacts, check_server


class ShardSession(NamedTuple):
    """A session with one of the databases, and the facts about its server."""

    connection: Connection
    options: ConnectionOptions
    shard: Shard
    facts: ServerFacts

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Turn every connection error into a `StoreUnavailableError` that names the database."""
        try:
            yield
        except UNREACHABLE as error:
            raise unavailable_error(self.options.place, error) from error

    async def state(self) -> SchemaState:
        """Return what the schema contains."""
        with self.errors_named():
            return await schema.state(self.connection, self.options.schema)

    async def identity(self) -> SchemaIdentity:
        """Return the identity of an existing store."""
        with self.errors_named():
            return await schema.identity(self.connection)


class ShardSet:
    """All databases of a store, in their order; a store in one database has one."""

    def __init__(self, sessions: Sequence[ShardSession]) -> None:
        self.sessions = sessions
        self.place = " and ".join(each.options.place for each in sessions)

    @classmethod
    @asynccontextmanager
    async def connect(cls, options: Sequence[ConnectionOptions]) -> AsyncIterator[Self]:
        """Open a session with every database; raise if one cannot be reached or cannot hold a store."""
        shards = [Shard(number, len(options)) for number in range(1, len(options) + 1)]
        opened = await asyncio.gather(*map(_open, options, shards), return_exceptions=True)
        sessions = [each for each in opened if isinstance(each, ShardSession)]
        try:
            for each in opened:
                if isinstance(each, BaseException):
                    raise each
            yield cls(sessions)
        finally:
            for session in sessions:
                await close(session.connection)

    async def unusable_reason(self, pinned: str | None) -> str | None:
        """Return why the store cannot be opened and what to do; None if it can."""
        expected = pinned
        for session in self.sessions:
            state = await session.state()
            if not state.is_store:
                return absent_reason(state, session.options, pinned)
            with session.errors_named():
                reason = await unusable_reason(session.connection, session.options, expected, session.shard)
            if reason:
                return reason
            expected = (await session.identity()).id
        return None

    async def create(self, pinned: str | None) -> tuple[str, bool]:
        """Create the store or finish an earlier attempt; return its id, and False if it was already complete.

        Nothing is created unless every database is reachable and either empty or part of an unfinished
        attempt. Once all databases exist, they are marked as complete. From then on, a missing database
        counts as lost and is not replaced by an empty one.
        """
        found = [await self._inspect(session, pinned) for session in self.sessions]
        existing = [each for each in found if each]
        store_id = existing[0].id if existing else None
        self._check_existing(found, store_id)
        if len(existing) == len(found) and all(each.complete for each in existing):
            return existing[0].id, False
        is_new = False
        # The first database decides the id, so that two processes cannot create two halves.
        for session, present in zip(self.sessions, found, strict=True):
            if present is None:
                with session.errors_named():
                    created = await create_store(
                        session.connection, session.options, store_id=store_id, shard=session.shard
                    )
                is_new = is_new or created is not None
            identity = present or await session.identity()
            _check_identity(session, identity, store_id)
            store_id = identity.id
        for session in self.sessions:
            with session.errors_named():
                await schema.mark_complete(session.connection)
        return str(store_id), is_new or bool(existing)

    async def _inspect(self, session: ShardSession, pinned: str | None) -> SchemaIdentity | None:
        """Return the identity of an existing database; raise if it is absent but cannot be created."""
        state = await session.state()
        if state.is_store:
            return await session.identity()
        if pinned or state.has_tables:
            raise RefusedError(f"nothing was created: {absent_reason(state, session.options, pinned)}")
        return None

    def _check_existing(self, found: Sequence[SchemaIdentity | None], store_id: str | None) -> None:
        for session, identity in zip(self.sessions, found, strict=True):
            if identity is not None:
                _check_identity(session, identity, store_id)
        if any(each and each.complete for each in found) and not all(found):
            lost = self.sessions[found.index(None)]
            raise RefusedError(
                f"nothing was created: {lost.shard} of the store with the id {store_id} is missing from "
                f"{lost.options.place}; correct the URL or restore a backup of this database"
            )


def _check_identity(session: ShardSession, identity: SchemaIdentity, store_id: str | None) -> None:
    reason = schema.rejection_reason(
        identity._replace(complete=True), session.options.place, store_id, session.shard
    )
    if reason:
        raise RefusedError(f"the store was not created: {reason}")


async def _open(options: ConnectionOptions, shard: Shard) -> ShardSession:
    try:
        connection = await connect(options)
        try:
            return ShardSession(connection, options, shard, await check_server(connection, options))
        except BaseException:
            connection.terminate()
            raise
    except UNREACHABLE as error:
        raise unavailable_error(options.place, error) from error

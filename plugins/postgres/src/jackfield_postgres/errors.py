"""Which errors of asyncpg mean that the server cannot be used, regardless of the statement."""

from __future__ import annotations

import asyncpg

CONNECTION_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    EOFError,
)
"""There is no connection, or it broke. A timeout is an `OSError`."""

UNREACHABLE = (*CONNECTION_LOST, asyncpg.PostgresError)
"""Errors of an attempt to connect; no statement has begun."""

DEMOTED = (asyncpg.ReadOnlySQLTransactionError,)
"""The server does not accept writes any more: another one does, and the connection must be replaced."""

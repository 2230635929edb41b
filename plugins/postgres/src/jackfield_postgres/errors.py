"""asyncpg errors that mean that the server cannot be used, whatever the statement."""

from __future__ import annotations

import asyncpg

CONNECTION_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    EOFError,
)
"""There is no connection, or it broke. Timeouts are included: a timeout is an `OSError`."""

UNREACHABLE = (*CONNECTION_LOST, asyncpg.PostgresError)
"""Errors of a failed attempt to connect; no statement has begun."""

DEMOTED = (asyncpg.ReadOnlySQLTransactionError,)
"""The server no longer accepts writes. Another one does, so the connection must be replaced."""

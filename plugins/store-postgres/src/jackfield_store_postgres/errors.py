"""What connection errors mean: whether the statement ran, and what an operator should do."""

from __future__ import annotations

import re

import asyncpg
from jackfield.store import StoreUnavailableError
from jackfield_postgres.errors import CONNECTION_LOST, DEMOTED

NOT_DONE = (
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.InsufficientResourcesError,
)
"""The server has rolled the statement back, so it can be repeated."""

BROKEN = (
    *CONNECTION_LOST,
    asyncpg.OperatorInterventionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
"""The connection broke in the middle of a statement: it is unknown whether it was committed."""

POOLED = (
    asyncpg.InvalidSQLStatementNameError,
    asyncpg.DuplicatePreparedStatementError,
)
"""A prepared statement is missing or already exists: a pooler sent two statements to different sessions."""

POOLER_REASON = (
    "is behind a connection pooler in transaction mode, which breaks session locks and notifications; give "
    "the store a URL that connects to PostgreSQL directly, or to a pooler in session mode"
)


class OutcomeUnknownError(StoreUnavailableError):
    """The connection broke after the statement was sent, so it may have been committed."""


class RefusedError(StoreUnavailableError):
    """The server answers, but cannot be used; trying again does not help."""


_REASONS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    # Covers wrong passwords too. The server's message contains the user's name, never the password.
    (
        asyncpg.InvalidAuthorizationSpecificationError,
        "rejected the user or the password ({}); correct the URL of the store",
    ),
    (
        asyncpg.InvalidCatalogNameError,
        "does not exist ({}); create the database, or correct the URL of the store",
    ),
    (
        asyncpg.TargetServerAttributeNotMatched,
        "has no server that accepts writes; check that one of the URL's hosts is the primary",
    ),
    (DEMOTED, "accepts no writes: it is a standby, or was made one; the URL can name several hosts"),
    (
        asyncpg.TooManyConnectionsError,
        "has no free connection; raise the server's max_connections or lower `pool_size`",
    ),
    (
        asyncpg.InsufficientPrivilegeError,
        "denies a right that the store needs ({}); grant it to the store's user",
    ),
    (
        (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError),
        "is busy: another session has locked the rows for too long",
    ),
    (asyncpg.QueryCanceledError, "did not finish a statement in time ({})"),
    (asyncpg.DiskFullError, "cannot be written: the server's disk is full"),
    (POOLED, POOLER_REASON),
    (TimeoutError, "did not answer in time"),
)


def unavailable_error(place: str, error: BaseException) -> StoreUnavailableError:
    """Return the error to raise for a connection error; it contains no part of the password."""
    if isinstance(error, StoreUnavailableError):
        return error
    found = (reason for kinds, reason in _REASONS if isinstance(error, kinds))
    why = next(found, "cannot be reached ({})").format(_brief(error) or type(error).__name__)
    return StoreUnavailableError(f"the store {place} {why}")


def closed_error(place: str) -> StoreUnavailableError:
    """Return the error to raise for an operation on a closed store."""
    return StoreUnavailableError(f"the store {place} is closed")


def _brief(error: BaseException) -> str:
    """Return the first line of a message, without any address that may contain a password."""
    return re.sub(r"\S+://\S+", "...", str(error).strip().partition("\n")[0])[:200]

"""Leases: only one loader at a time loads a file or folder, and only one host at a time embeds or indexes.

A holder renews its lease until it is done. The lease of a dead holder expires. Every write of a holder checks
its lease in the same transaction, so a holder that was cut off for too long cannot interfere with its
successor. Leases expire by the server's clock.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from jackfield_kb.errors import LibraryError
from jackfield_kb.postgres.database import SessionPool
from jackfield_kb.postgres.schema import Connection

SECONDS = 10.0
"""How long a lease lasts without renewal."""

_LOOK = 0.2

_CONFLICT = """
    SELECT name, holder FROM leases
    WHERE until > clock_timestamp() AND EXISTS (
        SELECT FROM unnest($1::text[]) AS asked
        WHERE name = asked OR starts_with(name, asked || '/') OR starts_with(asked, name || '/')
    )
    LIMIT 1
"""
_TAKE = """
    INSERT INTO leases (name, token, holder, until)
    SELECT asked, $2, $3, clock_timestamp() + make_interval(secs => $4) FROM unnest($1::text[]) AS asked
    ON CONFLICT (name) DO UPDATE SET token = excluded.token, holder = excluded.holder, until = excluded.until
"""
_RENEW = """
    UPDATE leases SET until = clock_timestamp() + make_interval(secs => $2)
    WHERE token = $1 AND until > clock_timestamp()
"""


class Held(NamedTuple):
    """A lease that another process holds."""

    name: str
    holder: str


class Leases:
    """The leases of this process."""

    def __init__(self, database: SessionPool, seconds: float = SECONDS) -> None:
        self._database = database
        self._seconds = seconds
        self._lock = threading.Lock()
        self._tokens: dict[str, int] = {}

    @contextmanager
    def held(self, names: Sequence[str], *, wait: float = 0.0) -> Iterator[Held | None]:
        """Hold a lease for each name and yield None, or yield the lease that another process holds.

        A folder includes everything below it. `wait` is how many seconds to wait for the current holder.
        """
        token, names = uuid.uuid4().hex, sorted(set(names))
        held = self._acquired(names, token, wait)
        if held is not None:
            yield held
            return
        with self._lock:
            self._tokens[token] = len(names)
        renewal = self._database.start(self._renew(token))
        try:
            yield None
        finally:
            renewal.cancel()
            with self._lock:
                del self._tokens[token]
            with suppress(LibraryError):
                self._database.query(
                    lambda connection: connection.execute("DELETE FROM leases WHERE token = $1", token)
                )

    async def check(self, connection: Connection) -> None:
        """Raise `LibraryError` within a transaction if a lease of this process has expired."""
        with self._lock:
            expected = dict(self._tokens)
        if not expected:
            return
        count = await connection.fetchval(
            "SELECT count(*) FROM leases WHERE token = ANY ($1) AND until > clock_timestamp()",
            list(expected),
        )
        if count != sum(expected.values()):
            raise LibraryError(
                "the connection to the database was lost for so long that another host may be loading the "
                "same files; nothing more was written, so run the command again"
            )

    def any(self) -> bool:
        """Return whether any process holds a lease."""

        async def ask(connection: Connection) -> Any:
            return await connection.fetchval(
                "SELECT EXISTS (SELECT FROM leases WHERE until > clock_timestamp())"
            )

        return bool(self._database.query(ask))

    @property
    def seconds(self) -> float:
        """How long a lease lasts without renewal."""
        return self._seconds

    def _acquired(self, names: Sequence[str], token: str, wait: float) -> Held | None:
        deadline = time.monotonic() + wait
        while (held := self._try(names, token)) is not None and time.monotonic() < deadline:
            time.sleep(_LOOK)
        return held

    def _try(self, names: Sequence[str], token: str) -> Held | None:
        async def take(connection: Connection) -> Held | None:
            async with connection.transaction():
                await connection.execute("LOCK TABLE leases IN SHARE ROW EXCLUSIVE MODE")
                found = await connection.fetchrow(_CONFLICT, names)
                if found is None:
                    await connection.execute(_TAKE, names, token, _me(), self._seconds)
                return None if found is None else Held(*found)

        return self._database.query(take)

    async def _renew(self, token: str) -> None:
        while True:
            await asyncio.sleep(self._seconds / 4)
            with suppress(Exception):
                await self._database.once(lambda connection: connection.execute(_RENEW, token, self._seconds))


def _me() -> str:
    return f"{socket.gethostname()}, process {os.getpid()}"

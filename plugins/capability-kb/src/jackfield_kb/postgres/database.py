"""Connections to PostgreSQL, for code that runs on threads.

asyncpg needs an event loop, and a library is used from several threads. One thread runs the loop; `run`
starts a coroutine there and waits for its result. The tables are created on first use.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg
from jackfield_postgres import session
from jackfield_postgres.errors import CONNECTION_LOST, DEMOTED
from jackfield_postgres.listener import ChannelListener
from jackfield_postgres.session import display_url, invalid_url_reason, session_options

from jackfield_kb.access import Access
from jackfield_kb.errors import DatabaseUnavailableError, LibraryError
from jackfield_kb.postgres import schema
from jackfield_kb.postgres.schema import Connection

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
Work = Callable[[Connection], Awaitable[T]]

CHANNEL = "jackfield_kb"
"""The channel on which a host announces that it changed something; the message is empty."""

_CONNECT, _COMMAND = 5.0, 60.0
"""How many seconds a connection and a statement may take."""

_RECONNECT = 1.0
_OPTIONS: dict[str, Any] = {
    **session_options("jackfield-kb", timeout=_CONNECT),
    "command_timeout": _COMMAND,
}
_UNAVAILABLE = (
    *CONNECTION_LOST,
    *DEMOTED,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.QueryCanceledError,
)
"""Errors of a database that cannot be used at the moment; the same statement may succeed later."""


class _Session(asyncpg.Connection):
    """A session that is not reset between uses, because its statements leave nothing behind."""

    def get_reset_query(self) -> str:
        return ""


_POOL_OPTIONS: dict[str, Any] = {
    **_OPTIONS,
    "connect": session.connect,
    "connection_class": _Session,
}


class SessionPool:
    """A pool of sessions, and a session that listens for changes."""

    def __init__(self, url: str, *, sessions: int = 6) -> None:
        self._url = url
        self._size = sessions
        self.place = display_url(url)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pool: asyncpg.Pool[Any] | None = None
        self._opening: asyncio.Lock | None = None
        self._bypasses = False
        self._closed = False

    def run(self, work: Work[T], access: Access) -> T:
        """Run statements in one transaction, which sees only the records that the access allows."""

        async def within() -> T:
            pool = await self._opened()
            async with pool.acquire(timeout=_CONNECT) as connection, connection.transaction():
                await self._narrow(connection, access)
                return await work(connection)

        return self.wait(within())  # type: ignore[no-any-return]

    def query(self, work: Work[T]) -> T:
        """Run statements that read no records, without a transaction."""

        return self.wait(self.once(work))  # type: ignore[no-any-return]

    async def once(self, work: Work[T]) -> T:
        """Like `query`, on the loop's thread."""
        pool = await self._opened()
        async with pool.acquire(timeout=_CONNECT) as connection:
            return await work(connection)

    def wait(self, coroutine: Any) -> Any:
        """Run a coroutine on the loop's thread, and wait for its result."""
        with self.reported():
            return self.start(coroutine).result()

    def start(self, coroutine: Any) -> Future[Any]:
        """Start a coroutine on the loop's thread."""
        with self._lock:
            if self._closed:
                coroutine.close()
                raise LibraryError(f"the knowledge base {self.place} is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="jackfield-kb-postgres", daemon=True
                )
                self._thread.start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def announce(self) -> None:
        """Tell other hosts that something changed; they poll too, so a failure does no harm."""
        with suppress(LibraryError):
            self.query(lambda connection: connection.execute("SELECT pg_notify($1, '')", CHANNEL))

    def listen(self, changed: Callable[[], None]) -> Future[Any]:
        """Call a function after each announced change and each connection, until the future is cancelled."""

        async def connect() -> asyncpg.Connection[Any]:
            await self._opened()
            return await self.connect()

        listener = ChannelListener(
            connect,
            CHANNEL,
            notified=lambda _payload: changed(),
            # Notifications are lost while no session is listening.
            connected=changed,
            retry_on=(LibraryError,),
            retry_seconds=_RECONNECT,
            answer_within=_CONNECT,
        )
        return self.start(listener.run())

    def close(self) -> None:
        """Close all sessions, and stop the thread."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._end(), loop).result(_CONNECT)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Turn database errors into `LibraryError`, without secrets."""
        try:
            yield
        except CancelledError:
            raise LibraryError(f"the knowledge base {self.place} is closed") from None
        except _UNAVAILABLE as error:
            raise DatabaseUnavailableError(
                f"the database {self.place} cannot be used at the moment ({_first_line(error)})"
            ) from error
        except asyncpg.PostgresError as error:
            raise LibraryError(
                f"the database {self.place} rejected a statement ({_first_line(error)})"
            ) from error

    async def connect(self) -> asyncpg.Connection[Any]:
        """Open a session outside the pool."""
        try:
            return await session.connect(self._url, **_OPTIONS)
        except (ValueError, OverflowError) as error:
            raise LibraryError(invalid_url_reason("records", error)) from None

    async def _opened(self) -> asyncpg.Pool[Any]:
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._pool is None:
                connection = await self.connect()
                try:
                    self._bypasses = await schema.bring_up_to_date(connection, self.place)
                finally:
                    await connection.close(timeout=1)
                self._pool = await asyncpg.create_pool(
                    self._url,
                    min_size=0,
                    max_size=self._size,
                    **_POOL_OPTIONS,
                    init=schema.prepare_session,
                )
            return self._pool

    async def _narrow(self, connection: Connection, access: Access) -> None:
        """Make row-level security enforce the access in this transaction."""
        scopes = access.scopes(None)
        if scopes is None:
            await connection.fetchval(
                "SELECT set_config('jackfield_kb.scopes', $1::text[]::text, true)", [schema.ALL]
            )
            return
        # Row-level security does not apply to superusers, so their session switches to another role.
        role = schema.READER if self._bypasses else "none"
        await connection.fetchval(
            "SELECT set_config('jackfield_kb.scopes', $1::text[]::text, true), set_config('role', $2, true)",
            sorted(scopes),
            role,
        )

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._pool is not None:
            self._pool.terminate()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

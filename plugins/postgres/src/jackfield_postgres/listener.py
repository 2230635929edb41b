"""A listener for notifications, which reconnects when its session breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from jackfield_postgres.errors import UNREACHABLE
from jackfield_postgres.session import Connection, close

_CHECK_SECONDS = 5.0
"""Seconds between two checks that the session still answers."""


class ChannelListener:
    """Listens on a channel until the task that runs it is cancelled.

    `notified` gets the payload of each notification. `connected` is called whenever a session has begun to
    listen: earlier notifications are lost, so the caller must check for changes itself. If `connect` raises
    an error in `retry_on`, or one that means that the server is unreachable, it is called again after
    `retry_seconds`. With `answer_within`, a session that does not answer within that many seconds counts as
    broken.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        channel: str,
        *,
        notified: Callable[[str], None],
        connected: Callable[[], None],
        retry_on: tuple[type[Exception], ...],
        retry_seconds: float,
        answer_within: float | None = None,
    ) -> None:
        self._connect = connect
        self._channel = channel
        self._notified = notified
        self._connected = connected
        self._retry_on: tuple[type[Exception], ...] = (*UNREACHABLE, *retry_on)
        self._retry_seconds = retry_seconds
        self._answer_within = answer_within
        self.listening = asyncio.Event()
        """Set while the session is listening."""

    async def run(self) -> None:
        """Listen, and reconnect when the session breaks."""
        while True:
            try:
                connection = await self._connect()
            except self._retry_on:
                await asyncio.sleep(self._retry_seconds)
                continue
            try:
                await self._hear(connection)
            except UNREACHABLE:
                await asyncio.sleep(self._retry_seconds)
            finally:
                self.listening.clear()
                connection.terminate()

    async def _hear(self, connection: Connection) -> None:
        """Pass notifications on as they arrive, until the session breaks."""
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _connection: ended.set())
        async with asyncio.timeout(self._answer_within):
            await connection.add_listener(self._channel, self._receive)
        self.listening.set()
        self._connected()
        check_seconds = None if self._answer_within is None else _CHECK_SECONDS
        try:
            while not ended.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(check_seconds):
                        await ended.wait()
                if not ended.is_set():
                    # A connection that was cut silently looks like an idle one.
                    await connection.execute("SELECT", timeout=self._answer_within)
        except asyncio.CancelledError:
            await close(connection)
            raise

    def _receive(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        self._notified(str(payload))

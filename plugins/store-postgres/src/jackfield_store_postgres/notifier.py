"""Wakes waiters when a claim or a stream changes, in this process and in others.

Writes of this process wake their waiters directly. Other processes are notified with NOTIFY, after the write
was committed and never inside its transaction: the server commits only one transaction with a notification at
a time. Notifications are collected for a few milliseconds and can be lost, so waiters also check the store
from time to time.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from jackfield.store import StoreUnavailableError
from jackfield_postgres.listener import ChannelListener

from jackfield_store_postgres import statements
from jackfield_store_postgres.database import PostgresDatabase

_COLLECT_SECONDS = 0.002
_RETRY_SECONDS = 0.25
_MAX_TOPICS = 1000
"""Topics per statement."""


def claim_topic(key: str) -> str:
    """Return the topic of a claim."""
    return _topic("c", key)


def stream_topic(stream: str) -> str:
    """Return the topic of a stream."""
    return _topic("s", stream)


def _topic(kind: str, name: str) -> str:
    # A hash has a fixed length and reveals no keys to other users of the database. If two names have the same
    # hash, a waiter may wake without a change.
    return kind + hashlib.blake2b(name.encode(), digest_size=9).hexdigest()


class ChangeWaiter:
    """Waits for a wake-up or a timeout."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Wake the waiter."""
        self._event.set()

    def clear(self) -> None:
        """Reset the event; read the store after this call, not before."""
        self._event.clear()

    async def wait(self, within: float) -> None:
        """Wait for a wake-up or the timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._event.wait()


class ChangeNotifier:
    """All waiters of this process, one listening session, and the topics to be sent."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._channel = f"jackfield_{database.options.schema}"
        self._sender = secrets.token_hex(4)
        self._waiters: dict[str, set[ChangeWaiter]] = {}
        self._unsent: set[str] = set()
        self._sending: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._closed = False
        self._listener = ChannelListener(
            database.connect,
            self._channel,
            notified=self._receive,
            # Nothing was listening until now, so every waiter has to check the store itself.
            connected=self._wake_all,
            retry_on=(StoreUnavailableError,),
            retry_seconds=_RETRY_SECONDS,
            answer_within=database.patience,
        )
        self.listening = self._listener.listening
        """Set while this process receives notifications from others."""

    @contextmanager
    def subscribe(self, topic: str) -> Iterator[ChangeWaiter]:
        """Yield a waiter that wakes when a topic changes, and sometimes without a change."""
        waiter = ChangeWaiter()
        self._waiters.setdefault(topic, set()).add(waiter)
        if self._listening is None and not self._closed:
            self._listening = asyncio.create_task(self._listener.run(), name="jackfield-store-listener")
        try:
            yield waiter
        finally:
            self._waiters[topic].discard(waiter)
            if not self._waiters[topic]:
                del self._waiters[topic]

    def publish(self, topics: Iterable[str]) -> None:
        """Wake the waiters of committed changes, here and soon in other processes."""
        for topic in topics:
            self._unsent.add(topic)
            self._wake(topic)
        if self._sending is None and self._unsent and not self._closed:
            self._sending = asyncio.create_task(self._send(), name="jackfield-store-notifications")

    async def close(self) -> None:
        """Send what is left, wake all waiters, and stop listening."""
        self._closed = True
        if self._sending is not None:
            await self._sending
        self._wake_all()
        if self._listening is not None:
            self._listening.cancel()
            with suppress(asyncio.CancelledError):
                await self._listening

    def _wake(self, topic: str) -> None:
        for waiter in self._waiters.get(topic, ()):
            waiter.wake()

    def _wake_all(self) -> None:
        for topic in self._waiters:
            self._wake(topic)

    async def _send(self) -> None:
        try:
            while self._unsent:
                if not self._closed:
                    await asyncio.sleep(_COLLECT_SECONDS)
                topics = [self._unsent.pop() for _ in range(min(len(self._unsent), _MAX_TOPICS))]
                payloads = [f"{self._sender}{topic}" for topic in topics]
                # Waiters in other processes notice the changes when they next check the store.
                with suppress(StoreUnavailableError):
                    await self._database.fetch(statements.NOTIFY, self._channel, payloads)
        finally:
            self._sending = None

    def _receive(self, payload: str) -> None:
        sender, topic = payload[: len(self._sender)], payload[len(self._sender) :]
        if sender != self._sender:
            self._wake(topic)

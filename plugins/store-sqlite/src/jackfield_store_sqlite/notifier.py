"""Wakes waiters when a claim or a stream changes.

Writes of this process notify at once. For writes of other processes, one thread polls SQLite's data version:
often while the file changes, less often while it does not, and only while there are waiters.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import apsw
from jackfield.store import StoreUnavailableError

from jackfield_store_sqlite.database import StoreDatabase

_MIN_PAUSE, _MAX_PAUSE, _PAUSE_FACTOR = 0.005, 0.05, 1.4
_UNKNOWN = object()


class Topic(NamedTuple):
    """A claim or stream to wait for: its name, and a query whose result changes whenever it changes."""

    version: Callable[[apsw.Connection, str], Any]
    name: str


def claim_version(db: apsw.Connection, key: str) -> Any:
    """Return a value that changes with every change of a claim."""
    return db.execute("SELECT owner, result IS NULL FROM claims WHERE key = ?", (key,)).get


class Waiter:
    """Waits on one event loop; any thread can wake it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake the waiter, from any thread."""
        with suppress(RuntimeError):  # The loop is closed.
            self._loop.call_soon_threadsafe(self._event.set)

    def clear(self) -> None:
        """Reset the event; read the store after this call, not before."""
        self._event.clear()

    async def wait(self, within: float) -> None:
        """Wait for a notification or the timeout; the death of a process sends no notification."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._event.wait()


class Notifier:
    """All waiters of this process."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database
        self.waiters: dict[Topic, set[Waiter]] = {}
        """The waiters of each topic."""
        self._versions: dict[Topic, Any] = {}
        self._data_version = -1
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    @contextmanager
    def subscribe(self, topic: Topic) -> Iterator[Waiter]:
        """Yield a waiter that wakes when a topic changes, and sometimes without a change."""
        waiter = Waiter()
        with self._condition:
            self.waiters.setdefault(topic, set()).add(waiter)
            # Another process may have written since the caller last read.
            self._versions[topic] = _UNKNOWN
            self._start_watching()
            self._condition.notify()
        try:
            yield waiter
        finally:
            with self._condition:
                self.waiters[topic].discard(waiter)
                if not self.waiters[topic]:
                    del self.waiters[topic]
                    self._versions.pop(topic, None)

    def notify(self, topics: Iterable[Topic]) -> None:
        """Wake the waiters of these topics."""
        with self._condition:
            waiters = [waiter for topic in set(topics) for waiter in self.waiters.get(topic, ())]
        for waiter in waiters:
            waiter.notify()

    def close(self) -> None:
        """Wake all waiters and stop the polling thread."""
        with self._condition:
            self._closed = True
            self._condition.notify()
            topics = list(self.waiters)
        self.notify(topics)
        if self._thread is not None:
            self._thread.join()

    def _start_watching(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._watch, name="jackfield-store-watcher", daemon=True)
            self._thread.start()

    def _watch(self) -> None:
        pause = _MIN_PAUSE
        while True:
            with self._condition:
                if self._closed:
                    return
                if not self.waiters or _UNKNOWN not in self._versions.values():
                    # Without waiters, sleep until one subscribes; without new waiters, sleep only for the
                    # pause.
                    self._condition.wait(pause if self.waiters else None)
            changed = self._changed_topics()
            self.notify(changed)
            pause = _MIN_PAUSE if changed else min(pause * _PAUSE_FACTOR, _MAX_PAUSE)

    def _changed_topics(self) -> list[Topic]:
        with self._condition:
            topics = dict(self._versions)
        fresh = any(seen is _UNKNOWN for seen in topics.values())
        try:
            db = self._database.trusted_connection(self._database.now())
            data_version = db.pragma("data_version")
            if data_version == self._data_version and not fresh:
                return []
            versions = {topic: topic.version(db, topic.name) for topic in topics}
        except (apsw.Error, OSError, StoreUnavailableError):
            # Waiters read the store themselves from time to time and get the error there.
            versions, data_version = dict.fromkeys(topics, None), -1
        self._data_version = data_version
        with self._condition:
            self._versions.update(
                {topic: version for topic, version in versions.items() if topic in self.waiters}
            )
        return [topic for topic, version in versions.items() if version != topics[topic]]

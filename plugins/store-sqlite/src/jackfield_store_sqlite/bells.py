"""Who waits for news of what.

Whatever this process writes rings at once. For what others write, one thread asks SQLite whether the file has
changed, often while it does and less often while it does not, and only as long as somebody waits.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import apsw
from jackfield.store import StoreUnavailableError

from jackfield_store_sqlite.database import Database

_QUICK, _SLOW, _SLOWING = 0.005, 0.05, 1.4
_UNKNOWN = object()


class Topic(NamedTuple):
    """What one can wait for: a query, for what changes in its answer, and whom it is about."""

    mark: Callable[[apsw.Connection, str], Any]
    name: str


def claim_mark(db: apsw.Connection, key: str) -> Any:
    """What changes with every step of a claim."""
    return db.execute("SELECT owner, result IS NULL FROM claims WHERE key = ?", (key,)).get


class Bell:
    """Rings on the loop of the one who listens."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake whoever listens, from any thread."""
        with suppress(RuntimeError):  # The loop is closed: nobody listens.
            self._loop.call_soon_threadsafe(self._rung.set)

    def hush(self) -> None:
        """Forget what rang so far; look at the store after this, not before."""
        self._rung.clear()

    async def heard(self, within: float) -> None:
        """Wait for a ring, but not for ever: that somebody died, no one rings for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._rung.wait()


class Bells:
    """All who wait in this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[Topic, set[Bell]] = {}
        self._marks: dict[Topic, Any] = {}
        self._version = -1
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    @contextmanager
    def listen(self, topic: Topic) -> Iterator[Bell]:
        """A bell that rings when a topic has news, and at times when it has none."""
        bell = Bell()
        with self._change:
            self._waiting.setdefault(topic, set()).add(bell)
            # Others may have written since the caller last looked.
            self._marks[topic] = _UNKNOWN
            self._start_watching()
            self._change.notify()
        try:
            yield bell
        finally:
            with self._change:
                self._waiting[topic].discard(bell)
                if not self._waiting[topic]:
                    del self._waiting[topic]
                    self._marks.pop(topic, None)

    def ring(self, topics: Iterable[Topic]) -> None:
        """Wake those who wait for one of these."""
        if not self._waiting:
            return
        with self._change:
            bells = [bell for topic in set(topics) for bell in self._waiting.get(topic, ())]
        for bell in bells:
            bell.ring()

    def close(self) -> None:
        """Wake everyone for the last time."""
        with self._change:
            self._closed = True
            self._change.notify()
            topics = list(self._waiting)
        self.ring(topics)
        if self._thread is not None:
            self._thread.join()

    def _start_watching(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._watch, name="jackfield-store-watcher", daemon=True)
            self._thread.start()

    def _watch(self) -> None:
        pause = _QUICK
        while True:
            with self._change:
                if self._closed:
                    return
                if not self._waiting or _UNKNOWN not in self._marks.values():
                    # Idle for good until somebody comes, and for a moment when nobody new has come.
                    self._change.wait(pause if self._waiting else None)
            news = self._news()
            self.ring(news)
            pause = _QUICK if news else min(pause * _SLOWING, _SLOW)

    def _news(self) -> list[Topic]:
        with self._change:
            topics = dict(self._marks)
        fresh = any(mark is _UNKNOWN for mark in topics.values())
        try:
            db = self._database.connection(certain=False)
            version = db.pragma("data_version")
            if version == self._version and not fresh:
                return []
            marks = {topic: topic.mark(db, topic.name) for topic in topics}
        except (apsw.Error, OSError, StoreUnavailableError):
            # Those who wait look for themselves now and then, and will see what is wrong.
            marks, version = dict.fromkeys(topics, None), -1
        self._version = version
        with self._change:
            self._marks.update({topic: mark for topic, mark in marks.items() if topic in self._waiting})
        return [topic for topic, mark in marks.items() if mark != topics[topic]]

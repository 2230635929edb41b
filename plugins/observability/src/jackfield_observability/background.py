"""Observers that work off the call path.

On the call path an observer only appends to a queue. Its thread empties the queue several times a second; the
rest is processed when the observer is closed or the interpreter exits.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from jackfield.orchestrator import Observer

QUEUE_LIMIT = 10_000
"""The maximum number of waiting calls; more are counted and dropped."""

INTERVAL_SECONDS = 0.2

SHUTDOWN_SECONDS = 2.0
"""Seconds that a process waits at exit for a thread that is blocked by a disk or an exporter."""

# The interpreter switches threads every 5 ms unless one yields; the event loop would wait that long.
_ITEMS_BETWEEN_YIELDS = 128

_log = logging.getLogger(__name__)

Item = TypeVar("Item")


class BackgroundObserver(Observer, ABC, Generic[Item]):
    """An observer with a thread: a subclass appends to `waiting` and implements the processing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: deque[Item] = deque()
        self.overflowed = 0
        self._closed = False
        self._start()
        _observers.add(self)

    @abstractmethod
    def receive(self, items: Sequence[Item]) -> None:
        """Process some items; called by one thread at a time."""

    @abstractmethod
    def flush(self) -> None:
        """Write out the results; called when the queue is empty."""

    @abstractmethod
    def reset_after_fork(self) -> None:
        """Discard what the parent process received; called in a forked child."""

    async def close(self) -> None:
        """Process the queue and end the thread."""
        await asyncio.to_thread(self._end)

    def drain(self, patience: float = SHUTDOWN_SECONDS) -> bool:
        """Process the queue now; return False if another thread does not finish in time."""
        if not self._work_lock.acquire(timeout=patience):
            return False
        try:
            self._process_queue()
        finally:
            self._work_lock.release()
        return True

    def _process_queue(self) -> None:
        try:
            # Only the items queued now: later ones are processed after these have been written.
            left = len(self.waiting)
            while left > 0:
                self.receive([self.waiting.popleft() for _ in range(min(left, _ITEMS_BETWEEN_YIELDS))])
                left -= _ITEMS_BETWEEN_YIELDS
                # Not while the queue fills up: a delayed event loop is better than lost items.
                if not self._is_filling():
                    os.sched_yield()
            self.flush()
        except Exception:  # noqa: BLE001 - the thread must survive any error
            _log.exception("observer %s", self.name)

    def _start(self) -> None:
        self._work_lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"jackfield-{self.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0 if self._is_filling() else INTERVAL_SECONDS):
            self.drain()

    def _is_filling(self) -> bool:
        return len(self.waiting) >= QUEUE_LIMIT // 4

    def _end(self) -> None:
        self._closed = True
        self._stop.set()
        self._thread.join(SHUTDOWN_SECONDS)
        if not self.drain():
            _log.error("observer %s did not finish; %d calls are lost", self.name, len(self.waiting))

    def after_fork(self) -> None:
        """Restart in a forked child."""
        self.waiting.clear()
        self.overflowed = 0
        self.reset_after_fork()
        if not self._closed:
            # A fork does not copy the thread, and a lock that it held would never be released.
            self._start()


_observers: weakref.WeakSet[BackgroundObserver[Any]] = weakref.WeakSet()


def _drain_all() -> None:
    for observer in list(_observers):
        observer.drain()


def _restart_all() -> None:
    for observer in list(_observers):
        observer.after_fork()


atexit.register(_drain_all)
os.register_at_fork(after_in_child=_restart_all)

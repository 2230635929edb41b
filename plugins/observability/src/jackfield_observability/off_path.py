"""Work that a finished call causes but must not wait for.

On the path of a call an observer only appends to a queue. A thread of its own empties the queue several times
a second; whatever is still in it is worked off when the observer is closed or the interpreter ends.
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

from jackfield.session.session import Session

QUEUE_LIMIT = 10_000
"""How many finished calls may wait; beyond that they are counted and forgotten."""

INTERVAL_SECONDS = 0.2

PATIENCE_SECONDS = 2.0
"""How long an ending process waits for a thread that a disk or an exporter holds up."""

# The interpreter changes threads every 5 ms unless one gives way, and so long the event loop would wait.
_ITEMS_BETWEEN_YIELDS = 128

_log = logging.getLogger(__name__)

Item = TypeVar("Item")


class OffPath(ABC, Generic[Item]):
    """An observer that works in a thread; a subclass appends to `waiting` and says what is to be done."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: deque[Item] = deque()
        self.overflowed = 0
        self._closed = False
        self._start()
        _observers.add(self)

    @abstractmethod
    def receive(self, items: Sequence[Item]) -> None:
        """Work on some items; one thread at a time calls this."""

    @abstractmethod
    def settle(self) -> None:
        """The queue is empty for now: write out what was made of it."""

    @abstractmethod
    def forget(self) -> None:
        """This is a forked child: what was received is the parent's to finish."""

    def session_opened(self, session: Session, *, prompt_tokens: int, declaration_tokens: int) -> None:
        """Nothing: only finished calls count here."""

    def turn_began(self, session: Session) -> None:
        """Nothing: only finished calls count here."""

    def session_ended(self, session: Session) -> None:
        """Nothing: only finished calls count here."""

    async def close(self) -> None:
        """Work off the queue and end the thread."""
        await asyncio.to_thread(self._end)

    def drain(self, patience: float = PATIENCE_SECONDS) -> bool:
        """Work off the queue now; false when the thread that is at it did not get done in time."""
        if not self._at_work.acquire(timeout=patience):
            return False
        try:
            self._work_off()
        finally:
            self._at_work.release()
        return True

    def _work_off(self) -> None:
        try:
            # Only what waits now: what comes meanwhile has its turn after this was written out.
            left = len(self.waiting)
            while left > 0:
                self.receive([self.waiting.popleft() for _ in range(min(left, _ITEMS_BETWEEN_YIELDS))])
                left -= _ITEMS_BETWEEN_YIELDS
                # Not while the queue fills up: better that the loop waits than that items are lost.
                if not self._is_filling():
                    os.sched_yield()
            self.settle()
        except Exception:  # noqa: BLE001 - the thread has to outlive whatever this was
            _log.exception("observer %s", self.name)

    def _start(self) -> None:
        self._at_work = threading.Lock()
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
        self._thread.join(PATIENCE_SECONDS)
        if not self.drain():
            _log.error("observer %s was stuck and is left with %d calls", self.name, len(self.waiting))

    def after_fork(self) -> None:
        """Begin anew in a forked child."""
        self.waiting.clear()
        self.overflowed = 0
        self.forget()
        if not self._closed:
            # The thread did not come along, and a lock it held would never be released here.
            self._start()


_observers: weakref.WeakSet[OffPath[Any]] = weakref.WeakSet()


def _drain_all() -> None:
    for observer in list(_observers):
        observer.drain()


def _revive_all() -> None:
    for observer in list(_observers):
        observer.after_fork()


atexit.register(_drain_all)
os.register_at_fork(after_in_child=_revive_all)

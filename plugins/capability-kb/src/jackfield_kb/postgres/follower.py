"""A thread that catches up whenever another host changes something."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from jackfield_kb.errors import LibraryError
from jackfield_kb.index_worker import UpkeepStoppedError
from jackfield_kb.postgres.database import SessionPool

POLL = 1.0
"""Seconds between two polls if no change is announced, because an announcement can be lost."""


class Follower:
    """Calls a function after each change, and at least every second."""

    def __init__(
        self,
        database: SessionPool,
        catch_up: Callable[[], None],
        notice: Callable[[str], None],
    ) -> None:
        self._database = database
        self._catch_up = catch_up
        self._notice = notice
        self._changed = threading.Event()
        self._closing = False
        self._listening: Future[Any] | None = None
        self._thread = threading.Thread(target=self._run, name="jackfield-kb-follower", daemon=True)

    def start(self) -> None:
        """Start following changes."""
        self._listening = self._database.listen(self._changed.set)
        self._thread.start()

    def close(self) -> None:
        """Stop, and wait until the current step has ended."""
        self._closing = True
        self._changed.set()
        if self._listening is not None:
            self._listening.cancel()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        failing = False
        while not self._closing:
            try:
                self._catch_up()
            except UpkeepStoppedError:
                return
            except LibraryError as error:
                if not failing and not self._closing:
                    self._notice(f"searches do not find changes that other hosts make from now on: {error}")
                failing = True
            else:
                if failing:
                    self._notice("searches find the changes of other hosts again")
                failing = False
            self._changed.wait(POLL)
            self._changed.clear()

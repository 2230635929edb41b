"""A queue of events between a provider's stream and the one who reads the connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from jackfield.transport.events import Closed, Event

LIMIT = 4096
"""So many events may be unread, some minutes of speech, before a writer has to wait.

Speech arrives faster than it plays, and a provider takes a socket that nobody reads for dead.
"""


class EventQueue:
    """Has one reader, who reads every event up to exactly one `Closed`; no full queue delays that."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._unread: deque[Event] = deque()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self.closed = False
        """Whether the end was put; whatever is put after it is dropped."""

    def put_nowait(self, event: Event) -> None:
        """Add an event that cannot wait, even if the queue is full."""
        if not self.closed:
            self._unread.append(event)
            self._changed.set()

    async def put(self, event: Event) -> None:
        """Add an event as soon as there is room for it."""
        if len(self._unread) >= self._limit:
            await self.room()
        self.put_nowait(event)

    async def room(self) -> None:
        """Wait while the queue is full and open."""
        while len(self._unread) >= self._limit and not self.closed:
            self._room.clear()
            await self._room.wait()

    def remove(self, unwanted: Callable[[Event], bool]) -> list[Event]:
        """Take back the unread events for which this is true."""
        removed = [each for each in self._unread if unwanted(each)]
        self._unread = deque(each for each in self._unread if not unwanted(each))
        self._room.set()
        return removed

    def close(self, closed: Closed) -> None:
        """Add the end; only the first one counts."""
        self.put_nowait(closed)
        self.closed = True
        self._room.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Every event in order, up to and including `Closed`."""
        while True:
            while not self._unread:
                self._changed.clear()
                await self._changed.wait()
            event = self._unread.popleft()
            self._room.set()
            yield event
            if isinstance(event, Closed):
                return

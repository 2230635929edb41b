"""A queue of events between a provider's stream and the reader of the connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from jackfield.transport.events import Closed, Event

LIMIT = 4096
"""Maximum number of unread events (some minutes of speech) before a writer has to wait.

Speech arrives faster than it plays, and a provider closes a socket that is not read.
"""


class EventQueue:
    """A queue for one reader, which gets all events and one final `Closed`, even if the queue was full."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._unread: deque[Event] = deque()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self.closed = False
        """True if `Closed` was added; later events are dropped."""

    def put_nowait(self, *events: Event) -> None:
        """Add events at once, even if the queue is full."""
        if not self.closed:
            self._unread += events
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
        """Remove the unread events that `unwanted` selects, and return them."""
        removed = [each for each in self._unread if unwanted(each)]
        self._unread = deque(each for each in self._unread if not unwanted(each))
        self._room.set()
        return removed

    def close(self, closed: Closed) -> None:
        """Add `Closed` as the last event; only the first call counts."""
        self.put_nowait(closed)
        self.closed = True
        self._room.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield all events in order, up to and including `Closed`."""
        while True:
            while not self._unread:
                self._changed.clear()
                await self._changed.wait()
            event = self._unread.popleft()
            self._room.set()
            yield event
            if isinstance(event, Closed):
                return

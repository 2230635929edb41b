"""Events on their way to the one who reads them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from jackfield.transport.events import Closed, Event

_MOST = 256
"""So many unread events make a stream wait."""


class Inbox:
    """A queue with an end: what came before it is read, it once, and what comes after it is lost."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.ended = False

    def add(self, event: Event) -> None:
        """Take an event that cannot wait."""
        if not self.ended:
            self._events.append(event)
            self._changed.set()

    async def put(self, event: Event) -> None:
        """Take an event, as soon as the reader has kept up."""
        if len(self._events) >= _MOST and not self.ended:
            self._room.clear()
            await self._room.wait()
        self.add(event)

    def end(self, closed: Closed) -> None:
        """The last event."""
        self.add(closed)
        self.ended = True
        self._room.set()

    async def read(self) -> AsyncIterator[Event]:
        """Every event, up to the last."""
        while self._events or not self.ended:
            if not self._events:
                self._changed.clear()
                await self._changed.wait()
            while self._events:
                event = self._events.popleft()
                if len(self._events) < _MOST // 2:
                    self._room.set()
                yield event

"""Events on their way to the one who reads them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from jackfield.transport.events import Closed, Event

LIMIT = 4096
"""So many events may be unread before whoever brings them has to wait."""


class Feed:
    """A queue with one reader that ends with exactly one `Closed`, which nothing can hold up."""

    def __init__(self) -> None:
        self._unread: deque[Event] = deque()
        self._changed = asyncio.Condition()
        self.ended = False

    async def put(self, event: Event) -> None:
        """Bring an event, once there is room for it; after the end it is dropped."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.ended or len(self._unread) < LIMIT)
            if not self.ended:
                self._unread.append(event)
                self._changed.notify_all()

    async def end(self, closed: Closed) -> None:
        """No more events; the first end counts, and finds room in any case."""
        async with self._changed:
            if not self.ended:
                self._unread.append(closed)
                self.ended = True
                self._changed.notify_all()

    async def events(self) -> AsyncIterator[Event]:
        """Everything, in order, up to `Closed`."""
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: bool(self._unread))
                event = self._unread.popleft()
                self._changed.notify_all()
            yield event
            if isinstance(event, Closed):
                return

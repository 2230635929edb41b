"""Events on their way to the one who reads them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from jackfield.transport.events import Closed, Event

LIMIT = 4096
"""So many events may be unread, some minutes of speech, before whoever brings them has to wait.

Speech comes faster than it plays; and a socket that nobody reads for long is taken for dead.
"""


class Feed:
    """A queue with one reader that ends with exactly one `Closed`, which nothing can hold up."""

    def __init__(self) -> None:
        self._unread: deque[Event] = deque()
        self._more = asyncio.Event()
        self._room = asyncio.Event()
        self.ended = False

    def put(self, event: Event) -> None:
        """Bring an event; after the end it is dropped."""
        if not self.ended:
            self._unread.append(event)
            self._more.set()

    @property
    def full(self) -> bool:
        """Whether the reader is behind."""
        return len(self._unread) >= LIMIT and not self.ended

    async def room(self) -> None:
        """Wait until the reader has caught up, or the end."""
        while self.full:
            self._room.clear()
            await self._room.wait()

    def end(self, closed: Closed) -> None:
        """No more events; the first end counts."""
        self.put(closed)
        self.ended = True
        self._room.set()

    async def events(self) -> AsyncIterator[Event]:
        """Everything, in order, up to `Closed`."""
        while True:
            while self._unread:
                event = self._unread.popleft()
                self._room.set()
                yield event
                if isinstance(event, Closed):
                    return
            self._more.clear()
            await self._more.wait()

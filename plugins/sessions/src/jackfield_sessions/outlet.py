"""What is on its way to one client: bounded, and speech that nobody will hear can be taken back."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from jackfield.protocol.close_codes import SLOW_CLIENT, CloseReason
from jackfield.protocol.codec import encode

Frame = str | bytes
"""A message as JSON, or sound."""

Send = Callable[[Frame], Awaitable[None]]

_Held = Mapping[str, Any] | tuple[str, bytes]
"""What waits while a client catches up: a message, or a piece of an item of speech."""


class Outlet:
    """A queue to one client, and the task that empties it at the client's own speed."""

    def __init__(self, limit: int, *, sound: bool = True) -> None:
        """At most `limit` bytes wait; a client that has no use for `sound` gets none."""
        self._limit = limit
        self._sound = sound
        self._waiting: deque[Frame] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self._item = ""
        self._held: deque[_Held] | None = None
        self._newest = 0
        self._running: asyncio.Task[Any] | None = None
        self.closing: CloseReason | None = None
        """Why nothing more goes out, once that is so."""

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message; an event that was told before is not told again."""
        if self._held is not None:
            self._held.append(message)
            return
        number = message.get("id")
        if number is not None:
            # What was missed is read while what happens is told: one event may come on both ways.
            if number <= self._newest:
                return
            self._newest = number
        self._put(encode(message).decode())

    def hold(self) -> None:
        """Keep back what is told from here on, while it is looked up what the client has missed."""
        self._held = deque()

    def release(self, missed: Iterable[Mapping[str, Any]]) -> None:
        """Tell what was missed, then what was kept back."""
        held, self._held = self._held or deque(), None
        for message in missed:
            self.tell(message)
        for each in held:
            if isinstance(each, tuple):
                self.play(*each)
            else:
                self.tell(each)

    def play(self, item: str, pcm: bytes) -> None:
        """Send a piece of speech."""
        if not self._sound:
            return
        if self._held is not None:
            self._held.append((item, pcm))
            return
        if item != self._item:
            self._item = item
            self.tell({"type": "audio", "item": item})
        self._put(pcm)

    def hush(self) -> None:
        """Take back the speech that has not gone out yet."""
        self._item = ""
        if self._held is not None:
            self._held = deque(each for each in self._held if not isinstance(each, tuple))
        self._waiting = deque(frame for frame in self._waiting if isinstance(frame, str))
        self._bytes = sum(map(len, self._waiting))

    def close(self, closing: CloseReason) -> None:
        """Send what waits, then nothing more."""
        if self.closing is None:
            self.closing = closing
            self._news.set()

    async def run(self, send: Send) -> CloseReason:
        """Send frames as they come until the outlet is closed; why it was."""
        self._running = asyncio.current_task()
        while True:
            while self._waiting:
                frame = self._waiting.popleft()
                self._bytes -= len(frame)
                await send(frame)
            if self.closing is not None:
                return self.closing
            self._news.clear()
            await self._news.wait()

    def _put(self, frame: Frame) -> None:
        if self.closing is not None:
            return
        if self._bytes + len(frame) > self._limit:
            self._give_up()
            return
        self._waiting.append(frame)
        self._bytes += len(frame)
        self._news.set()

    def _give_up(self) -> None:
        # Whatever waits would come too late; the client resumes and gets the events again.
        self._waiting.clear()
        self._bytes = 0
        self.close(SLOW_CLIENT)
        if self._running is not None:
            # It may be waiting for this very client, which may never read again.
            self._running.cancel()

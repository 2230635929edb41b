"""A loudspeaker without a membrane: sound passes as if it were played, and the host is told of it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

from jackfield_client.voice import BYTES_PER_MS
from jackfield_client.voice.recording import Recording

REPORT_SECONDS = 0.1
"""How often the host is told how much was heard."""

MOST_SECONDS = 600
"""How much speech waits to be played; beyond that the host has to wait."""

Report = Callable[[str, int], Awaitable[None]]


class Loudspeaker:
    """Plays items of speech one after the other, in real time or at once."""

    def __init__(self, report: Report, recording: Recording, *, at_once: bool) -> None:
        self._report = report
        self._recording = recording
        self._at_once = at_once
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._bytes = 0
        self._item = ""
        self._heard = 0
        self._moved = asyncio.Event()
        self.silent = asyncio.Event()
        """Set while nothing is left to play."""
        self.silent.set()

    async def add(self, item: str, pcm: bytes) -> None:
        """Play a piece of an item behind what waits already."""
        while self._bytes > MOST_SECONDS * 1000 * BYTES_PER_MS:
            self._moved.clear()
            await self._moved.wait()
        self._waiting.append((item, pcm))
        self._bytes += len(pcm)
        self.silent.clear()

    def hush(self) -> None:
        """Drop what has not been played."""
        self._waiting.clear()
        self._bytes = 0
        self._moved.set()
        self.silent.set()

    async def run(self) -> None:
        """Play until cancelled."""
        last = time.monotonic()
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            now = time.monotonic()
            due = self._bytes if self._at_once else int((now - last) * 1000) * BYTES_PER_MS
            last = now
            await self._play(due)

    async def _play(self, due: int) -> None:
        while due > 0 and self._waiting:
            item, pcm = self._waiting.popleft()
            played, rest = pcm[:due], pcm[due:]
            if rest:
                self._waiting.appendleft((item, rest))
            due -= len(played)
            self._bytes -= len(played)
            if item != self._item:
                await self._tell()
                self._item, self._heard = item, 0
            self._heard += len(played)
            self._recording.add(played)
        self._moved.set()
        await self._tell()
        if not self._waiting:
            self.silent.set()

    async def _tell(self) -> None:
        if self._item and not self.silent.is_set():
            await self._report(self._item, self._heard // BYTES_PER_MS)

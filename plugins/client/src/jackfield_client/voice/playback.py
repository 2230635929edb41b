"""Simulated playback of speech: tracks and reports the playback position without an audio device."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

from jackfield_client.voice import BYTES_PER_MS
from jackfield_client.voice.wav import WavRecorder

REPORT_SECONDS = 0.1
"""How often the playback position is reported."""

MAX_BUFFER_SECONDS = 600
"""How much speech may wait for playback; beyond that the client stops reading."""

Report = Callable[[str, int], Awaitable[None]]


class PlaybackSimulator:
    """Plays items of speech one after the other, in real time or immediately."""

    def __init__(self, report: Report, recorder: WavRecorder, *, immediate: bool) -> None:
        self._report = report
        self._recorder = recorder
        self._immediate = immediate
        self._chunks: deque[tuple[str, bytes]] = deque()
        self._buffered_bytes = 0
        self._item = ""
        self._played_bytes = 0
        self._buffer_shrank = asyncio.Event()
        self.finished = asyncio.Event()
        """Set while there is nothing left to play."""
        self.finished.set()

    async def add(self, item: str, pcm: bytes) -> None:
        """Append a chunk of an item to the buffer; wait if the buffer is full."""
        while self._buffered_bytes > MAX_BUFFER_SECONDS * 1000 * BYTES_PER_MS:
            self._buffer_shrank.clear()
            await self._buffer_shrank.wait()
        self._chunks.append((item, pcm))
        self._buffered_bytes += len(pcm)
        self.finished.clear()

    def clear(self) -> None:
        """Drop everything that has not been played."""
        self._chunks.clear()
        self._buffered_bytes = 0
        self._buffer_shrank.set()
        self.finished.set()

    async def run(self) -> None:
        """Play until cancelled."""
        last = time.monotonic()
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            now = time.monotonic()
            due = self._buffered_bytes if self._immediate else int((now - last) * 1000) * BYTES_PER_MS
            last = now
            await self._play(due)

    async def _play(self, due: int) -> None:
        while due > 0 and self._chunks:
            item, pcm = self._chunks.popleft()
            played, rest = pcm[:due], pcm[due:]
            if rest:
                self._chunks.appendleft((item, rest))
            due -= len(played)
            self._buffered_bytes -= len(played)
            if item != self._item:
                await self._report_position()
                self._item, self._played_bytes = item, 0
            self._played_bytes += len(played)
            self._recorder.write(played)
        self._buffer_shrank.set()
        await self._report_position()
        if not self._chunks:
            self.finished.set()

    async def _report_position(self) -> None:
        if self._item and not self.finished.is_set():
            await self._report(self._item, self._played_bytes // BYTES_PER_MS)

"""The way of the user's speech to the model."""

from __future__ import annotations

import asyncio
import contextlib

from websockets.exceptions import ConnectionClosed

from jackfield_gemini.live.resampling import Resampler
from jackfield_gemini.live.wire import Wire

PAUSE_SECONDS = 1.0
"""A microphone that gives nothing for so long was closed, or muted."""


class Microphone:
    """Resamples what comes, and tells the model when nothing comes any more."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._resampler = Resampler()
        self._last = 0.0
        self._watch: asyncio.Task[None] | None = None

    async def send(self, pcm: bytes) -> None:
        """A piece of speech: PCM16, 24 kHz, mono."""
        self._last = asyncio.get_running_loop().time()
        if self._watch is None:
            self._watch = asyncio.create_task(self._until_paused())
        if speech := self._resampler.feed(pcm):
            await self._wire.send_audio(speech)

    def close(self) -> None:
        """Send nothing more."""
        if self._watch is not None:
            self._watch.cancel()

    async def _until_paused(self) -> None:
        # One sleeper for each stretch of speech, rather than a timer for each of fifty frames a second.
        now = asyncio.get_running_loop().time
        while (left := self._last + PAUSE_SECONDS - now()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)
        self._watch = None
        with contextlib.suppress(ConnectionClosed):
            if rest := self._resampler.flush():
                await self._wire.send_audio(rest)
            await self._wire.end_audio()

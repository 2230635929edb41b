"""Microphone audio: resampling from 24 kHz to 16 kHz, and the end of a stream."""

from __future__ import annotations

import numpy as np
import samplerate  # type: ignore[import-not-found]
import asyncio
import contextlib
from websockets.exceptions import ConnectionClosed
from jackfield_gemini.live.wire import Wire

RATIO = 16_000 / 24_000
QUALITY = "sinc_medium"
"""Level up to 7 kHz, and what would fold back is 120 dB down; the faster one is dull above 6 kHz."""

_TAIL = np.zeros(96, np.float32)
"""More silence than the filter looks ahead."""


class Resampler:
    """One stream of speech; however it is cut into pieces, the same samples come out."""

    def __init__(self) -> None:
        self._filter = samplerate.Resampler(QUALITY, channels=1)
        self._taken = 0
        self._given = 0

    def feed(self, pcm: bytes) -> bytes:
        """So much of the stream as can be given now: about three milliseconds less than was taken."""
        samples = np.frombuffer(pcm, np.int16)
        self._taken += len(samples)
        return self._convert(samples.astype(np.float32))

    def flush(self) -> bytes:
        """The rest of the stream, two samples for every three taken; the next piece begins a new one."""
        if not self._taken:
            return b""
        due = -(-self._taken * 2 // 3) - self._given
        rest = self._convert(_TAIL)[: due * 2]
        self._filter.reset()
        self._taken = self._given = 0
        return rest

    def _convert(self, samples: np.ndarray) -> bytes:
        made = self._filter.process(samples, RATIO)
        self._given += len(made)
        # The filter can swing past the loudest sample; wrapped around, that would be a loud click.
        clipped: np.ndarray = np.clip(np.rint(made), -32768, 32767)
        return clipped.astype("<i2").tobytes()

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

"""Microphone audio: resampling from 24 kHz to 16 kHz, and the end of a stream."""

from __future__ import annotations

import asyncio
import contextlib

import numpy as np
import soxr  # type: ignore[import-untyped]
from websockets.exceptions import ConnectionClosed

from jackfield_gemini.live.session import LiveSocket

GIVEN_RATE, WANTED_RATE = 24_000, 16_000

_TAIL = np.zeros(480, np.float32)
"""More silence than the filter's lookahead of ten milliseconds."""

_LOWEST, _HIGHEST = np.float32(-32768), np.float32(32767)


class SpeechResampler:
    """Resamples one stream; the result does not depend on how the stream is split."""

    def __init__(self) -> None:
        # The engine for variable rates filters in the time domain: each frame yields a frame, ten
        # milliseconds late. The other engine costs a third as much, but collects 30 ms and returns them up to
        # 40 ms late.
        self._filter = soxr.ResampleStream(GIVEN_RATE, WANTED_RATE, 1, dtype="float32", quality="HQ", vr=True)
        self._taken = 0
        self._given = 0

    def feed(self, pcm: bytes) -> bytes:
        """Convert samples; the filter holds back ten milliseconds."""
        samples = np.frombuffer(pcm, "<i2").astype(np.float32)
        self._taken += len(samples)
        return self._convert(samples)

    def flush(self) -> bytes:
        """Return the rest of the stream, two samples for every three; the next samples start a new stream."""
        if not self._taken:
            return b""
        due = -(-self._taken * 2 // 3) - self._given
        rest = self._convert(_TAIL)[: due * 2]
        self._filter.clear()
        self._taken = self._given = 0
        return rest

    def _convert(self, samples: np.ndarray) -> bytes:
        made: np.ndarray = self._filter.resample_chunk(samples)
        self._given += len(made)
        np.rint(made, made)
        # The filter can overshoot the loudest sample; without clipping that would be a loud click.
        made.clip(_LOWEST, _HIGHEST, made)
        return made.astype("<i2").tobytes()


PAUSE_SECONDS = 1.0
"""After this much silence the microphone counts as closed or muted."""


class MicrophoneStream:
    """Resamples and sends microphone audio, and reports the end of the stream."""

    def __init__(self, socket: LiveSocket) -> None:
        self._socket = socket
        self._resampler = SpeechResampler()
        self._last = 0.0
        self._watch: asyncio.Task[None] | None = None

    async def send(self, pcm: bytes) -> None:
        """Send audio: PCM16, 24 kHz, mono."""
        self._last = asyncio.get_running_loop().time()
        if self._watch is None:
            self._watch = asyncio.create_task(self._until_paused())
        if speech := self._resampler.feed(pcm):
            await self._socket.send_audio(speech)

    def close(self) -> None:
        """Stop sending."""
        if self._watch is not None:
            self._watch.cancel()

    async def _until_paused(self) -> None:
        # One task for each segment of speech, instead of a timer for each of fifty frames a second.
        now = asyncio.get_running_loop().time
        while (left := self._last + PAUSE_SECONDS - now()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)
        self._watch = None
        with contextlib.suppress(ConnectionClosed):
            if rest := self._resampler.flush():
                await self._socket.send_audio(rest)
            await self._socket.end_audio()

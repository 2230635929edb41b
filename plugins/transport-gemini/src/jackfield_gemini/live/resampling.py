"""Speech as the host has it, 24 kHz, into speech as Gemini takes it, 16 kHz."""

from __future__ import annotations

import numpy as np
import samplerate  # type: ignore[import-not-found]

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

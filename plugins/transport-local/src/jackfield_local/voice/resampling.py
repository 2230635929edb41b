"""Speech as connections carry it, 24 kHz, into speech as engines hear it, 16 kHz."""

from __future__ import annotations

import numpy as np
import samplerate  # type: ignore[import-not-found]

from jackfield_local.voice.engines import HEARING_RATE, SPEAKING_RATE, Samples

QUALITY = "sinc_fastest"
"""Level up to 6 kHz, above which nothing is heard by our recognition; it looks ahead two milliseconds."""


class Resampler:
    """One stream of speech; however it is cut into pieces, the same samples come out."""

    def __init__(self) -> None:
        self._filter = samplerate.Resampler(QUALITY, channels=1)

    def feed(self, pcm: bytes) -> Samples:
        """So much of the stream as can be given now."""
        samples = np.frombuffer(pcm, "<i2").astype(np.float32)
        made = self._filter.process(samples, HEARING_RATE / SPEAKING_RATE)
        # The filter can swing past the loudest sample; wrapped around, that would be a loud click.
        clipped: Samples = np.clip(np.rint(made), -32768, 32767).astype(np.int16)
        return clipped

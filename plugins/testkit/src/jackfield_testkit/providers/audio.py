"""Sound for tests: PCM16, mono, of which every sample tells where in the sound it stands."""

from __future__ import annotations

import math
from array import array
from functools import cache

RATE = 24_000
"""Samples a second, unless another rate is asked for."""

_PITCH = 440.0
_LOUDNESS = 9_000


def tone(ms: int, *, rate: int = RATE, start_ms: int = 0) -> bytes:
    """A tone of so many milliseconds; with `start_ms` the part of it that begins there."""
    return b"".join(_millisecond(rate, number) for number in range(start_ms, start_ms + ms))


def silence(ms: int, *, rate: int = RATE) -> bytes:
    """So many milliseconds of nothing."""
    return bytes(2 * ms * rate // 1000)


def milliseconds(pcm_bytes: int, *, rate: int = RATE) -> int:
    """How long so many bytes of sound last, cut to whole milliseconds."""
    return pcm_bytes * 1000 // (2 * rate)


@cache
def _millisecond(rate: int, number: int) -> bytes:
    """One millisecond; a slow rise of the loudness makes every one of a minute differ from the others."""
    count = rate // 1000
    loudness = _LOUDNESS * (0.2 + 0.8 * (number % 60_000) / 60_000)
    samples = array("h")
    for position in range(number * count, (number + 1) * count):
        samples.append(round(loudness * math.sin(2 * math.pi * _PITCH * position / rate)))
    return samples.tobytes()

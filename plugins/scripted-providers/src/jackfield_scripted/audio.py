"""Test audio in PCM16, mono; every millisecond differs, so a test can check that all arrived in order."""

from __future__ import annotations

import math
from array import array
from functools import cache

RATE = 24_000
"""The default sample rate, in samples per second."""

_PITCH = 440.0
_LOUDNESS = 9_000


def tone(ms: int, *, rate: int = RATE, start_ms: int = 0) -> bytes:
    """Return `ms` milliseconds of a tone, starting at `start_ms`."""
    return b"".join(_millisecond(rate, number) for number in range(start_ms, start_ms + ms))


def silence(ms: int, *, rate: int = RATE) -> bytes:
    """Return `ms` milliseconds of silence."""
    return bytes(2 * ms * rate // 1000)


def milliseconds(pcm_bytes: int, *, rate: int = RATE) -> int:
    """Return the playing time of `pcm_bytes` bytes of audio, rounded down to whole milliseconds."""
    return pcm_bytes * 1000 // (2 * rate)


@cache
def _millisecond(rate: int, number: int) -> bytes:
    """Return one millisecond; the slowly rising volume makes every millisecond of a minute different."""
    count = rate // 1000
    loudness = _LOUDNESS * (0.2 + 0.8 * (number % 60_000) / 60_000)
    samples = array("h")
    for position in range(number * count, (number + 1) * count):
        samples.append(round(loudness * math.sin(2 * math.pi * _PITCH * position / rate)))
    return samples.tobytes()

"""Sound files as the protocol wants them: PCM16, 24 kHz, mono, a piece at a time."""

from __future__ import annotations

import importlib.util
import wave
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jackfield_client.voice import BYTES_PER_MS, FRAME_MS, RATE

BLOCK = 8192
"""Samples that are read at a time; a file may be longer than the memory."""

FRAME = FRAME_MS * BYTES_PER_MS


class SoundError(Exception):
    """A file that cannot be spoken from, and how to mend it."""


class Sound:
    """One file to speak from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise SoundError(f"{path}: there is no such file.")
        self._plain = _is_plain(path)
        if not self._plain:
            _check_readable(path)

    def frames(self) -> Iterator[bytes]:
        """The sound in frames of 20 ms; the last one is filled up with silence."""
        kept = bytearray()
        for piece in _plain_pieces(self.path) if self._plain else _resampled_pieces(self.path):
            kept += piece
            while len(kept) >= FRAME:
                yield bytes(kept[:FRAME])
                del kept[:FRAME]
        if kept:
            yield bytes(kept).ljust(FRAME, b"\0")


def _is_plain(path: Path) -> bool:
    """Whether the file needs nothing but the standard library."""
    try:
        with wave.open(str(path), "rb") as file:
            return file.getframerate() == RATE and file.getsampwidth() == 2
    except (wave.Error, EOFError):
        return False
    except OSError as error:
        raise SoundError(f"{path} cannot be read: {error.strerror}.") from None


def _plain_pieces(path: Path) -> Iterator[bytes]:
    with wave.open(str(path), "rb") as file:
        channels = file.getnchannels()
        while piece := file.readframes(BLOCK):
            yield piece if channels == 1 else _mixed(piece, channels)


def _mixed(piece: bytes, channels: int) -> bytes:
    samples = array("h", piece)
    together = zip(*(samples[channel::channels] for channel in range(channels)), strict=True)
    return array("h", (sum(each) // channels for each in together)).tobytes()


def _check_readable(path: Path) -> None:
    if any(importlib.util.find_spec(name) is None for name in ("soundfile", "soxr", "numpy")):
        raise SoundError(
            f"{path} is no WAV file of 24 kHz and 16 bit; other sound needs: "
            'pip install "jackfield-client[audio]"'
        )
    import soundfile  # type: ignore[import-untyped]

    try:
        soundfile.info(str(path))
    except (soundfile.LibsndfileError, RuntimeError):
        raise SoundError(f"{path} is no sound file that can be read.") from None


def _resampled_pieces(path: Path) -> Iterator[bytes]:
    import numpy as np
    import soundfile
    import soxr  # type: ignore[import-untyped]

    with soundfile.SoundFile(str(path)) as file:
        resampler = soxr.ResampleStream(file.samplerate, RATE, 1, dtype="float32")

        def written(samples: Any, *, last: bool) -> bytes:
            heard = resampler.resample_chunk(samples, last=last)
            return bytes((np.clip(heard, -1.0, 1.0) * 32767.0).astype("<i2").tobytes())

        try:
            for block in file.blocks(BLOCK, dtype="float32", always_2d=True):
                yield written(np.ascontiguousarray(block.mean(axis=1)), last=False)
        except (soundfile.LibsndfileError, RuntimeError):
            raise SoundError(f"{path} is damaged: it ends before its end.") from None
        yield written(np.zeros(0, dtype="float32"), last=True)

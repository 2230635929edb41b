"""Audio files: read as frames of PCM16, 24 kHz, mono, and recorded as WAV."""

from __future__ import annotations

import importlib.util
import wave
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jackfield_client.voice import BYTES_PER_MS, FRAME_MS, SAMPLE_RATE

BLOCK_SAMPLES = 8192
"""How many samples are read at a time; a file may be larger than the memory."""

FRAME_BYTES = FRAME_MS * BYTES_PER_MS


class AudioFileError(Exception):
    """An audio file cannot be read; the text says how to fix that."""


class AudioFile:
    """An audio file to send."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise AudioFileError(f"{path}: there is no such file.")
        self._is_plain = _is_plain_wav(path)
        if not self._is_plain:
            _check_readable(path)

    def frames(self) -> Iterator[bytes]:
        """Yield frames of 20 ms; the last one is padded with silence."""
        buffer = bytearray()
        for block in _plain_blocks(self.path) if self._is_plain else _resampled_blocks(self.path):
            buffer += block
            while len(buffer) >= FRAME_BYTES:
                yield bytes(buffer[:FRAME_BYTES])
                del buffer[:FRAME_BYTES]
        if buffer:
            yield bytes(buffer).ljust(FRAME_BYTES, b"\0")


class WavRecorder:
    """Writes audio to a WAV file as it is played; without a path it discards the audio."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: wave.Wave_write | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            self._file = wave.open(str(self._path), "wb")
            self._file.setnchannels(1)
            self._file.setsampwidth(2)
            self._file.setframerate(SAMPLE_RATE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, pcm: bytes) -> None:
        """Append audio to the file."""
        if self._file is not None:
            self._file.writeframes(pcm)


def _is_plain_wav(path: Path) -> bool:
    """Return whether the standard library can read the file without resampling."""
    try:
        with wave.open(str(path), "rb") as file:
            return file.getframerate() == SAMPLE_RATE and file.getsampwidth() == 2
    except (wave.Error, EOFError):
        return False
    except OSError as error:
        raise AudioFileError(f"{path} cannot be read: {error.strerror}.") from None


def _plain_blocks(path: Path) -> Iterator[bytes]:
    with wave.open(str(path), "rb") as file:
        channels = file.getnchannels()
        while block := file.readframes(BLOCK_SAMPLES):
            yield block if channels == 1 else _mix_to_mono(block, channels)


def _mix_to_mono(block: bytes, channels: int) -> bytes:
    samples = array("h", block)
    frames = zip(*(samples[channel::channels] for channel in range(channels)), strict=True)
    return array("h", (sum(frame) // channels for frame in frames)).tobytes()


def _check_readable(path: Path) -> None:
    if any(importlib.util.find_spec(name) is None for name in ("soundfile", "soxr", "numpy")):
        raise AudioFileError(
            f"{path} is not a 24 kHz, 16-bit WAV file; to read other audio files: "
            'pip install "jackfield-client[audio]"'
        )
    import soundfile  # type: ignore[import-untyped]

    try:
        soundfile.info(str(path))
    except (soundfile.LibsndfileError, RuntimeError):
        raise AudioFileError(f"{path} is not a readable audio file; convert it to WAV.") from None


def _resampled_blocks(path: Path) -> Iterator[bytes]:
    import numpy as np
    import soundfile
    import soxr  # type: ignore[import-untyped]

    with soundfile.SoundFile(str(path)) as file:
        resampler = soxr.ResampleStream(file.samplerate, SAMPLE_RATE, 1, dtype="float32")

        def resample(samples: Any, *, last: bool) -> bytes:
            resampled = resampler.resample_chunk(samples, last=last)
            return bytes((np.clip(resampled, -1.0, 1.0) * 32767.0).astype("<i2").tobytes())

        try:
            for block in file.blocks(BLOCK_SAMPLES, dtype="float32", always_2d=True):
                yield resample(np.ascontiguousarray(block.mean(axis=1)), last=False)
        except (soundfile.LibsndfileError, RuntimeError):
            raise AudioFileError(f"{path} is damaged: it ends too early. Create it again.") from None
        yield resample(np.zeros(0, dtype="float32"), last=True)

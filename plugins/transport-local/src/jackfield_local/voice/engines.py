"""What voice needs of its engines; whatever fits these shapes can take the place of those we bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Samples: TypeAlias = NDArray[np.int16]
"""Sound, one number for each sample."""

HEARING_RATE = 16_000
"""Samples a second of what engines hear."""

SPEAKING_RATE = 24_000
"""Samples a second of what engines say, and of everything that goes in and out of a connection."""

FRAME = 512
"""Samples at `HEARING_RATE` that are judged at once: 32 ms."""

FRAME_MS = FRAME * 1000 // HEARING_RATE


class Speech(NamedTuple):
    """Words said aloud: PCM16 at `SPEAKING_RATE`, and where in it each word has ended, in bytes."""

    pcm: bytes
    ends: tuple[int, ...]


Detector: TypeAlias = Callable[[bytes], float]
"""How likely `FRAME` samples are speech, from 0 to 1; each stream has its own, which remembers the past."""


class Recogniser(Protocol):
    """Writes down what was said; shared by all sessions, and called from several threads."""

    def write_down(self, samples: Samples) -> str:
        """The words in a stretch of speech at `HEARING_RATE`; empty when there are none."""


class Synthesiser(Protocol):
    """Says words aloud; shared by all sessions, and called from several threads."""

    def say(self, words: Sequence[str]) -> Speech:
        """The words of one sentence, with the punctuation that belongs to them."""


@dataclass(frozen=True, slots=True)
class Engines:
    """What one voice connection works with."""

    detector: Callable[[], Detector]
    recogniser: Recogniser
    synthesiser: Synthesiser

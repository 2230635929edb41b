"""Cost of recognition and speech, and the word error rate on a human reading.

The reading is the first paragraph of A Tale of Two Cities, which comes with the package of the recogniser.
"""

from __future__ import annotations

import json
import re
import time
import wave
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jackfield_local.voice.engines import HEARING_RATE, SPEAKING_RATE, Samples, load_engines
from jackfield_local.voice.speech_input import Resampler

READ = """
It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of
foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it
was the season of Darkness, it was the spring of hope, it was the winter of despair, we had everything
before us, we had nothing before us, we were all going direct to Heaven, we were all going direct the
other way, in short, the period was so far like the present period, that some of its noisiest authorities
insisted on its being received, for good or for evil, in the superlative degree of comparison only.
"""
SAID = (
    "Search the knowledge base for the onboarding process.",
    "What do we know about the lighthouse restoration project?",
    "I would like to end this conversation now, thank you.",
    "Orders above five hundred euros need a second signature.",
)


def main() -> None:
    loaded = load_engines()
    sound = reading()
    # The first run loads the models.
    loaded.transcribe(sound[: 4 * HEARING_RATE])
    loaded.synthesise(SAID[0])

    began = time.process_time()
    heard = loaded.transcribe(sound)
    hearing = time.process_time() - began

    began = time.process_time()
    spoken = sum(len(loaded.synthesise(each)) for each in SAID) / 2 / SPEAKING_RATE
    speaking = time.process_time() - began

    length = len(sound) / HEARING_RATE
    found = {
        "hearing": hearing / length,
        "heard": length,
        "speaking": speaking / spoken,
        "said": spoken,
        "words": len(bare(READ)),
        "wrong": errors(bare(READ), bare(heard)),
    }
    print(json.dumps(found))


def reading() -> Samples:
    """Return the recording in the format of the recogniser."""
    spec = find_spec("moonshine_voice")
    assert spec is not None
    assert spec.origin is not None
    with wave.open(str(Path(spec.origin).parent / "assets/two_cities.wav")) as recording:
        assert recording.getframerate() == 2 * SPEAKING_RATE
        read = np.frombuffer(recording.readframes(recording.getnframes()), "<i2")
    read = read[: len(read) // 2 * 2]
    halved = ((read[::2].astype(np.int32) + read[1::2]) // 2).astype("<i2")
    return Resampler().feed(halved.tobytes())


def bare(text: str) -> list[str]:
    """Return the words without the punctuation that a recogniser guesses."""
    return re.sub(r"[^\w\s]", "", text).lower().split()


def errors(said: list[str], heard: list[str]) -> int:
    """Return the number of added, lost and changed words."""
    row = list(range(len(heard) + 1))
    for number, word in enumerate(said, 1):
        previous, row[0] = row[0], number
        for place, candidate in enumerate(heard, 1):
            changed = previous + (word != candidate)
            previous, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, changed)
    return row[-1]


if __name__ == "__main__":
    main()

"""Synthesis by Hibari, with the moment at which each word has been said.

The network decides how long each phoneme lasts, but keeps that to itself. So its graph is given one more
output: a model file is a protobuf message, and what is appended to one is merged into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
from hibari import Hibari, dsp  # type: ignore[import-untyped]
from hibari.g2p.normalize import normalize  # type: ignore[import-untyped]
from onnxruntime.capi.onnxruntime_pybind11_state import Fail  # type: ignore[import-untyped]

from jackfield_local.voice.engines import Speech

DURATIONS = "/Cast_32_output_0"  # What the graph calls the lengths of phonemes.
SPECTRUM = ("lh", "theta", "ln", "lr", "phi", "f0")  # What Hibari's signal processing takes, in its order.
_PAUSES = ';:,.!?—…"“”() '
_SEED = 7


class HibariSynthesiser:
    """One voice."""

    def __init__(self, voice: str, model: Path) -> None:
        graph = model.read_bytes()
        try:
            self._voice = Hibari(voice, graph + _output(DURATIONS))
        except Fail:
            # Another voice may have grown from another graph; its phonemes then count as equally long.
            self._voice = Hibari(voice, graph)
        self._has_durations = any(each.name == DURATIONS for each in self._voice.sess.get_outputs())

    def say(self, words: Sequence[str]) -> Speech:
        """The words of one sentence, and where each has ended."""
        read, phonemes = [], ""
        counts: list[int] = []
        for word, sounds in self._read(" ".join(words)):
            read.append(word)
            # A word ends before the pause that follows it.
            counts.append(len(phonemes) + len(sounds.rstrip(_PAUSES) or sounds))
            phonemes += sounds
        samples, reached = self._sound(phonemes)
        ends = _aligned(words, read, [2 * reached[count] for count in counts])
        pcm = np.clip(samples * 32767.0, -32768, 32767)
        return Speech(pcm.astype("<i2").tobytes(), tuple(ends))

    def _read(self, text: str) -> Iterator[tuple[str, str]]:
        """Each word as it is read, numbers and abbreviations written out, and its phonemes."""
        written = phonemes = ""
        for token in self._voice.g2p.phonemize_tokens(self._voice.g2p.tokenize(normalize(text))):
            written += token.text
            phonemes += token.phonemes or ""
            if token.whitespace:
                yield written, phonemes + " "
                written = phonemes = ""
        if written:
            yield written, phonemes

    def _sound(self, phonemes: str) -> tuple[Any, list[int]]:
        """Samples, and where in them so many phonemes of the text, none to all, have been said."""
        ids = self._voice.ids(phonemes)
        if len(ids) < 3:
            return np.zeros(0, np.float32), [0] * (len(phonemes) + 1)
        names = [*SPECTRUM, DURATIONS] if self._has_durations else list(SPECTRUM)
        made = self._voice.sess.run(
            names, {"ids": np.asarray([ids], np.int64), "speed": np.ones(1, np.float32)}
        )
        samples = dsp.synth(*(each[0] for each in made[:6]), np.random.default_rng(_SEED))
        durations = made[6].ravel() if self._has_durations else np.ones(len(ids))
        reached = np.cumsum(durations) * (len(samples) / durations.sum())
        # Characters that are not in the vocabulary have no sound.
        places = np.cumsum([phoneme in self._voice.vocab for phoneme in phonemes])
        return samples, [0, *(int(reached[place]) for place in places)]


def _aligned(words: Sequence[str], read: Sequence[str], ends: Sequence[int]) -> Iterator[int]:
    """Where each word ended as it was written, from where it ended as it was read.

    `7:30` is read as two words, `Dr.` as another: what stands between words that are the same belongs
    together.
    """
    matcher = SequenceMatcher(None, words, read, autojunk=False)
    for _, begin, end, read_begin, read_end in matcher.get_opcodes():
        for number in range(1, end - begin + 1):
            place = read_begin + -(-number * (read_end - read_begin) // (end - begin))
            yield ends[place - 1] if place else 0


def _output(name: str) -> bytes:
    """One more output of a model's graph, to be appended to the model."""
    message = name.encode()
    for field in (1, 12, 7):  # ValueInfoProto.name, GraphProto.output, ModelProto.graph
        message = bytes((field << 3 | 2, len(message))) + message
    return message

"""Synthesis by Hibari, with the moment at which each word has been said.

The network decides how long each phoneme lasts, but keeps that to itself. So its graph is given one more
output: a model file is a protobuf message, and what is appended to one is merged into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hibari import Hibari, dsp  # type: ignore[import-untyped]
from hibari.g2p.normalize import normalize  # type: ignore[import-untyped]
from onnxruntime.capi.onnxruntime_pybind11_state import Fail  # type: ignore[import-untyped]

from jackfield_local.voice.engines import Speech

LASTING = "/Cast_32_output_0"  # What the graph calls the lengths of phonemes.
SPECTRUM = ("lh", "theta", "ln", "lr", "phi", "f0")  # What Hibari's signal processing takes, in its order.
LONGEST = 400  # Phonemes that are said at once.
_PAUSES = ';:,.!?—…"“”() '
_SEED = 7


class _Word(NamedTuple):
    """A word as it is read, and its phonemes with the space after it."""

    text: str
    phonemes: str


class HibariSynthesiser:
    """One voice."""

    def __init__(self, voice: str, model: Path) -> None:
        told = model.read_bytes()
        try:
            self._voice = Hibari(voice, told + _output(LASTING))
        except Fail:
            # Another voice may have grown from another graph; its words are then measured by length.
            self._voice = Hibari(voice, told)
        self._tells = any(each.name == LASTING for each in self._voice.sess.get_outputs())

    def say(self, words: Sequence[str]) -> Speech:
        """The words of one sentence, and where each has ended."""
        read = list(self._read(" ".join(words)))
        sound: list[Any] = []
        ends: list[int] = []
        length = 0
        for part in _parts(read):
            samples, part_ends = self._sound("".join(word.phonemes for word in part))
            ends += [length + part_ends[count] for count in _word_ends(part)]
            sound.append(samples)
            length += len(samples)
        pcm = np.clip(np.concatenate(sound) * 32767.0, -32768, 32767) if sound else np.zeros(0)
        told = _aligned(list(words), [word.text for word in read], ends)
        return Speech(pcm.astype("<i2").tobytes(), tuple(2 * end for end in told))

    def _read(self, text: str) -> Iterator[_Word]:
        """The text as it is read, word by word: numbers, dates and abbreviations written out."""
        written = phonemes = ""
        for token in self._voice.g2p.phonemize_tokens(self._voice.g2p.tokenize(normalize(text))):
            written += token.text
            phonemes += token.phonemes or ""
            if token.whitespace:
                yield _Word(written, phonemes + " ")
                written = phonemes = ""
        if written:
            yield _Word(written, phonemes)

    def _sound(self, phonemes: str) -> tuple[Any, list[int]]:
        """Samples, and where in them so many phonemes of the text, none to all, have been said."""
        known = self._voice.vocab
        ids = self._voice.ids(phonemes)
        if len(ids) < 3:
            return np.zeros(0, np.float32), [0] * (len(phonemes) + 1)
        told = {"ids": np.asarray([ids], np.int64), "speed": np.ones(1, np.float32)}
        names = [*SPECTRUM, LASTING] if self._tells else list(SPECTRUM)
        made = self._voice.sess.run(names, told)
        samples = dsp.synth(*(each[0] for each in made[:6]), np.random.default_rng(_SEED))
        lasting = made[6].ravel() if self._tells else np.ones(len(ids))
        reached = np.cumsum(lasting) * (len(samples) / lasting.sum())
        ends = [0]
        place = 0
        for phoneme in phonemes:
            place += phoneme in known
            ends.append(int(reached[place]))
        return samples, ends


def _parts(words: Sequence[_Word]) -> Iterator[list[_Word]]:
    """Words that are said at once; sentences are seldom too long for that, as they are cut before."""
    part: list[_Word] = []
    length = 0
    for word in words:
        if part and length + len(word.phonemes) > LONGEST:
            yield part
            part, length = [], 0
        part.append(word)
        length += len(word.phonemes)
    if part:
        yield part


def _word_ends(part: Sequence[_Word]) -> list[int]:
    """How many phonemes there are up to the end of each word, without the pause that follows it."""
    places: list[int] = []
    begin = 0
    for word in part:
        bare = word.phonemes.rstrip(_PAUSES) or word.phonemes
        places.append(begin + len(bare))
        begin += len(word.phonemes)
    return places


def _aligned(words: list[str], read: list[str], ends: list[int]) -> list[int]:
    """Where each word ended as it was written, from where it ended as it was read.

    `7:30` is read as two words, `Dr.` as another: what stands between words that are the same belongs
    together.
    """
    told: list[int] = []
    for _, begin, end, read_begin, read_end in SequenceMatcher(
        None, words, read, autojunk=False
    ).get_opcodes():
        here, there = end - begin, read_end - read_begin
        for n in range(1, here + 1):
            place = read_begin + -(-n * there // here)
            told.append(ends[place - 1] if place else 0)
    return told


def _output(name: str) -> bytes:
    """One more output of a model's graph, to be appended to the model."""
    message = name.encode()
    for field in (1, 12, 7):  # ValueInfoProto.name, GraphProto.output, ModelProto.graph
        message = bytes((field << 3 | 2, len(message))) + message
    return message

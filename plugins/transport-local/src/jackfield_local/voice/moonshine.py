"""Recognition by Moonshine's two networks on plain onnxruntime; the package around them is not imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]

from jackfield_local.voice.engines import FRAME, HEARING_RATE, Samples

BEGIN, END = 1, 2  # The tokens between which a text stands.
HEADS, WIDTH = 8, 36  # The shape of what the decoder remembers, by layer.
TOKENS_A_SECOND = 6.5  # More than anybody says; a decoder that goes on beyond it repeats itself.
LONGEST = 24 * HEARING_RATE  # Longer speech is cut; the networks were made for half a minute.
SHORTEST = HEARING_RATE // 2  # Shorter speech is filled up with silence.


class MoonshineRecogniser:
    """An encoder that hears a stretch of speech, and a decoder that writes it down token by token."""

    def __init__(self, encoder: Path, decoder: Path, tokenizer: Path) -> None:
        self._encoder = _network(encoder)
        self._decoder = _network(decoder)
        self._vocabulary = vocabulary(tokenizer.read_bytes())
        self._memory = [each.name for each in self._decoder.get_inputs() if each.name.startswith("past")]
        self._outputs = [each.name for each in self._decoder.get_outputs()]

    def write_down(self, samples: Samples) -> str:
        """The words in a stretch of speech; a long one is cut where it is quietest."""
        texts = [self._written(each) for each in stretches(samples)]
        # Speech that ends where it was cut off is taken for a clause.
        return " ".join(text for text in texts if text).rstrip(",;: ")

    def _written(self, samples: Samples) -> str:
        sound = np.zeros((1, max(len(samples), SHORTEST)), np.float32)
        sound[0, : len(samples)] = samples / np.float32(32768)
        mask = np.ones(sound.shape, np.int64)
        (heard,) = self._encoder.run(None, {"input_values": sound, "attention_mask": mask})
        most = int(sound.shape[1] / HEARING_RATE * TOKENS_A_SECOND) + 2
        text = b"".join(self._vocabulary[token] for token in self._tokens(heard, mask, most))
        return text.replace("▁".encode(), b" ").decode(errors="ignore").strip()

    def _tokens(self, heard: Any, mask: Any, most: int) -> list[int]:
        # The decoder thins the mask out itself, so it wants that of the sound, not of what was heard in it.
        told: dict[str, Any] = {"encoder_hidden_states": heard, "encoder_attention_mask": mask}
        memory = {name: np.zeros((1, HEADS, 0, WIDTH), np.float32) for name in self._memory}
        tokens = [BEGIN]
        while len(tokens) <= most:
            later = len(tokens) > 1
            told["input_ids"] = np.array([tokens[-1:]], np.int64)
            told["use_cache_branch"] = np.array([later])
            made = dict(zip(self._outputs, self._decoder.run(None, told | memory), strict=True))
            token = int(made["logits"][0, -1].argmax())
            if token == END:
                break
            tokens.append(token)
            for name in self._memory:
                # What the decoder remembers of the sound is made once; later it comes back empty.
                if not later or ".decoder." in name:
                    memory[name] = made[name.replace("past_key_values", "present")]
        return tokens[1:]


def stretches(samples: Samples) -> list[Samples]:
    """Speech in stretches that can be written down at once, cut at the quietest moment near their end."""
    cut: list[Samples] = []
    while len(samples) > LONGEST:
        near = samples[LONGEST // 2 : LONGEST]
        frames = near[: len(near) // FRAME * FRAME].reshape(-1, FRAME).astype(np.float32)
        place = LONGEST // 2 + int((frames**2).sum(axis=1).argmin()) * FRAME + FRAME // 2
        cut.append(samples[:place])
        samples = samples[place:]
    return [*cut, samples]


def vocabulary(packed: bytes) -> list[bytes]:
    """The tokens of Moonshine's own file: each behind its length, which takes two bytes from 128 on."""
    tokens: list[bytes] = []
    place = 0
    while place < len(packed):
        length, place = packed[place], place + 1
        if length >= 128:
            length, place = packed[place] * 128 + length - 128, place + 1
        tokens.append(packed[place : place + length])
        place += length
    return tokens


def _network(path: Path) -> Any:
    chosen = onnxruntime.SessionOptions()
    # Small networks are faster on one thread, and several sessions then share the cores.
    chosen.intra_op_num_threads = chosen.inter_op_num_threads = 1
    chosen.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), chosen, providers=["CPUExecutionProvider"])

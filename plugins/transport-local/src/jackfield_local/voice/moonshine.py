"""Speech recognition with Moonshine's two networks on onnxruntime, without its Python package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]

from jackfield_local.voice.engines import FRAME, HEARING_RATE, Samples

BEGIN, END = 1, 2  # The tokens that begin and end a text.
HEADS, WIDTH = 8, 36  # The shape of the decoder's cache, per layer.
TOKENS_A_SECOND = 6.5  # Faster than any speaker; a decoder that exceeds it is repeating itself.
LONGEST = 24 * HEARING_RATE  # Longer speech is cut; the networks were made for up to half a minute.
SHORTEST = HEARING_RATE // 2  # Shorter speech is padded with silence.


class MoonshineRecogniser:
    """Encodes a segment of speech and decodes it token by token."""

    def __init__(self, encoder: Path, decoder: Path, tokenizer: Path) -> None:
        self._encoder = _network(encoder)
        self._decoder = _network(decoder)
        self._vocabulary = vocabulary(tokenizer.read_bytes())
        self._cache_inputs = [
            each.name for each in self._decoder.get_inputs() if each.name.startswith("past")
        ]
        self._outputs = [each.name for each in self._decoder.get_outputs()]

    def transcribe(self, samples: Samples) -> str:
        """Return the words in a segment of speech; long speech is cut where it is quietest."""
        texts = [self._decoded(each) for each in stretches(samples)]
        # The text of speech that was cut off may end with the punctuation of a clause.
        return " ".join(text for text in texts if text).rstrip(",;: ")

    def _decoded(self, samples: Samples) -> str:
        sound = np.zeros((1, max(len(samples), SHORTEST)), np.float32)
        sound[0, : len(samples)] = samples / np.float32(32768)
        mask = np.ones(sound.shape, np.int64)
        (encoded,) = self._encoder.run(None, {"input_values": sound, "attention_mask": mask})
        most = int(sound.shape[1] / HEARING_RATE * TOKENS_A_SECOND) + 2
        text = b"".join(self._vocabulary[token] for token in self._tokens(encoded, mask, most))
        return text.replace("▁".encode(), b" ").decode(errors="ignore").strip()

    def _tokens(self, encoded: Any, mask: Any, most: int) -> list[int]:
        # The decoder reduces the mask itself, so it needs the mask of the audio, not of the encoder's output.
        inputs: dict[str, Any] = {"encoder_hidden_states": encoded, "encoder_attention_mask": mask}
        cache = {name: np.zeros((1, HEADS, 0, WIDTH), np.float32) for name in self._cache_inputs}
        tokens = [BEGIN]
        while len(tokens) <= most:
            later = len(tokens) > 1
            inputs["input_ids"] = np.array([tokens[-1:]], np.int64)
            inputs["use_cache_branch"] = np.array([later])
            made = dict(zip(self._outputs, self._decoder.run(None, inputs | cache), strict=True))
            token = int(made["logits"][0, -1].argmax())
            if token == END:
                break
            tokens.append(token)
            for name in self._cache_inputs:
                # The encoder's part of the cache is computed once; later outputs of it are empty.
                if not later or ".decoder." in name:
                    cache[name] = made[name.replace("past_key_values", "present")]
        return tokens[1:]


def stretches(samples: Samples) -> list[Samples]:
    """Return speech in segments that the networks can process, cut at the quietest moment near their end."""
    cut: list[Samples] = []
    while len(samples) > LONGEST:
        near = samples[LONGEST // 2 : LONGEST]
        frames = near[: len(near) // FRAME * FRAME].reshape(-1, FRAME).astype(np.float32)
        place = LONGEST // 2 + int((frames**2).sum(axis=1).argmin()) * FRAME + FRAME // 2
        cut.append(samples[:place])
        samples = samples[place:]
    return [*cut, samples]


def vocabulary(packed: bytes) -> list[bytes]:
    """Read the tokens of Moonshine's own file format: each follows its length, in two bytes from 128 on."""
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
    options = onnxruntime.SessionOptions()
    # Small networks are faster on one thread, and sessions can then share the cores.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

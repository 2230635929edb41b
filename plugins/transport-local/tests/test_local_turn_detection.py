"""Where speech begins, pauses and ends, for any stream of likelihoods."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield_local.voice import speech_input
from jackfield_local.voice.engines import FRAME, FRAME_MS, Samples
from jackfield_local.voice.speech_input import TurnDetector, TurnEvent

STREAMS = st.lists(
    st.tuples(st.sampled_from((0.0, 0.2, 0.4, 0.6, 1.0)), st.integers(1, 40)), min_size=1, max_size=25
)
"""Stretches of frames, each of one likelihood."""


def _frame(number: int) -> Samples:
    return np.full(FRAME, number % 30_000, np.int16)


class Found(NamedTuple):
    """A moment, the frame at which it came, and the numbers of the frames of speech."""

    number: int
    moment: TurnEvent
    speech: list[int]


def _follow(likelihoods: list[float], silence_ms: int) -> list[Found]:
    follower = TurnDetector(silence_ms)
    found: list[Found] = []
    for number, likelihood in enumerate(likelihoods):
        moment = follower.feed(_frame(number), likelihood)
        if moment is not None:
            speech = follower.speech()[::FRAME].tolist() if follower.length else []
            found.append(Found(number, moment, speech))
    return found


@settings(deadline=None)
@given(STREAMS, st.integers(0, 3000))
def test_every_turn_ends_and_no_speech_is_lost(stretches: list[tuple[float, int]], silence_ms: int) -> None:
    likelihoods = [likelihood for likelihood, count in stretches for _ in range(count)]
    found = _follow([*likelihoods, *[0.0] * 200], silence_ms)
    order = [each.moment for each in found if each.moment is not TurnEvent.PAUSED]
    assert order == [TurnEvent.BEGAN, TurnEvent.ENDED] * (len(order) // 2)
    kept: list[int] = []
    begins = [each.number for each in found if each.moment is TurnEvent.BEGAN]
    ends = [each for each in found if each.moment is TurnEvent.ENDED]
    for begin, (end, _, numbers) in zip(begins, ends, strict=True):
        if not numbers:
            assert (
                sum(each >= speech_input.STILL for each in likelihoods[begin : end + 1]) < speech_input.LEAST
            )
            continue
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        assert set(range(begin, end + 1)) - set(numbers) <= {
            number for number in range(begin, end + 1) if number >= numbers[-1]
        }
        loud = [
            n for n in range(begin, end + 1) if n < len(likelihoods) and likelihoods[n] >= speech_input.STILL
        ]
        assert set(loud) <= set(numbers)
        assert numbers[-1] - max(loud, default=begin) <= speech_input.AFTER
        kept += numbers
    assert kept == sorted(set(kept)), "what was said once is heard once"


@settings(deadline=None)
@given(STREAMS, st.integers(200, 2000))
def test_a_turn_ends_after_its_silence_and_not_before(
    stretches: list[tuple[float, int]], silence_ms: int
) -> None:
    likelihoods = [likelihood for likelihood, count in stretches for _ in range(count)] + [0.0] * 100
    speaking = False
    silent = 0
    ends = {each.number: each.moment for each in _follow(likelihoods, silence_ms)}
    for number, likelihood in enumerate(likelihoods):
        silent = 0 if likelihood >= speech_input.STILL else silent + 1
        moment = ends.get(number)
        if moment is TurnEvent.BEGAN:
            speaking = True
        elif moment is TurnEvent.ENDED:
            assert silent * FRAME_MS >= silence_ms
            assert (silent - 1) * FRAME_MS < max(silence_ms, speech_input.AFTER * FRAME_MS)
            speaking = False
    assert not speaking


@settings(deadline=None)
@given(STREAMS)
def test_the_speech_at_a_pause_equals_that_at_the_end(stretches: list[tuple[float, int]]) -> None:
    likelihoods = [likelihood for likelihood, count in stretches for _ in range(count)] + [0.0] * 100
    last: list[int] = []
    for _, moment, speech in _follow(likelihoods, 500):
        if moment is TurnEvent.PAUSED:
            last = speech
        elif moment is TurnEvent.ENDED and speech:
            assert last == speech


def test_a_click_is_no_speech() -> None:
    assert _follow([0.0] * 10 + [1.0, 1.0] + [0.0] * 40, 500) == []


def test_an_endless_turn_is_ended() -> None:
    found = _follow([1.0] * (speech_input.LONGEST_MS // FRAME_MS + 5), 500)
    assert [each.moment for each in found][:2] == [TurnEvent.BEGAN, TurnEvent.ENDED]


def test_the_beginning_of_a_word_is_kept() -> None:
    found = _follow([0.0] * 30 + [1.0] * 20 + [0.0] * 40, 500)
    (ended,) = [each for each in found if each.moment is TurnEvent.ENDED]
    assert ended.speech[0] == 30 - speech_input.BEFORE


@settings(deadline=None)
@given(st.integers(200, 3000), st.booleans())
def test_a_question_ends_its_turn_sooner_unless_the_user_continues(silence_ms: int, goes_on: bool) -> None:
    hurried, patient = TurnDetector(silence_ms), TurnDetector(silence_ms)
    for follower in (hurried, patient):
        for likelihood in [1.0] * 20 + [0.0] * speech_input.AFTER:
            follower.feed(_frame(1), likelihood)
    hurried.mark_complete()
    if goes_on:
        for follower in (hurried, patient):
            follower.feed(_frame(1), 1.0)

    def frames_left(follower: TurnDetector) -> int:
        return next(n for n in range(1, 300) if follower.feed(_frame(1), 0.0) is TurnEvent.ENDED)

    left, full = frames_left(hurried), frames_left(patient)
    assert (left == full) if goes_on else (left <= full)
    if not goes_on and silence_ms >= 3 * speech_input.SOONEST * FRAME_MS:
        assert left + speech_input.AFTER == (full + speech_input.AFTER) * 2 // 5

"""Allowances: never more than the burst and the rate give, and never less."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield_host.security.allowances import Allowance, Allowances

RATE = st.floats(0.1, 1000)
BURST = st.floats(1, 1000)
STEPS = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 50)), max_size=60)


def test_a_burst_is_granted_at_once_and_then_the_rate() -> None:
    allowance = Allowance(rate=2, burst=3)
    assert [allowance.take(now=100) for _ in range(4)] == [0, 0, 0, 0.5]
    assert allowance.take(now=100.5) == 0
    assert allowance.take(now=100.5) == 0.5


def test_a_refusal_takes_nothing() -> None:
    allowance = Allowance(rate=1, burst=10)
    assert allowance.take(8, now=0) == 0
    assert allowance.take(5, now=0) == 3
    assert allowance.take(2, now=0) == 0


def test_more_than_the_burst_is_never_granted() -> None:
    allowance = Allowance(rate=1, burst=10)
    assert allowance.take(11, now=0) == math.inf
    assert allowance.take(10, now=0) == 0


def test_the_clock_of_the_process_is_used_by_default() -> None:
    allowance = Allowance(rate=0.001, burst=1)
    assert allowance.take() == 0
    assert 0 < allowance.take() <= 1000


@given(RATE, BURST, STEPS)
def test_no_more_is_granted_than_burst_and_rate_allow(
    rate: float, burst: float, steps: list[tuple[float, float]]
) -> None:
    allowance, now, granted = Allowance(rate, burst), 0.0, 0.0
    for pause, amount in steps:
        now += pause
        if allowance.take(amount, now) == 0:
            granted += amount
        assert granted <= (burst + rate * now) * (1 + 1e-9)


@given(RATE, BURST, STEPS)
def test_whoever_waits_as_told_is_granted(
    rate: float, burst: float, steps: list[tuple[float, float]]
) -> None:
    allowance, now = Allowance(rate, burst), 0.0
    for pause, asked in steps:
        now += pause
        amount = min(asked, burst)
        wait = allowance.take(amount, now)
        if wait:
            now += wait + 1e-6
            assert allowance.take(amount, now) == 0


@given(RATE, BURST, st.floats(0, 1000))
def test_a_clock_that_runs_backwards_gives_nothing(rate: float, burst: float, back: float) -> None:
    allowance = Allowance(rate, burst)
    assert allowance.take(burst, now=1000) == 0
    assert allowance.take(burst, now=1000 - back) > 0


@given(RATE, BURST, st.floats(0, 1000))
def test_a_clock_that_runs_backwards_takes_nothing(rate: float, burst: float, back: float) -> None:
    allowance = Allowance(rate, burst)
    assert allowance.take(0, now=1000) == 0
    assert allowance.take(burst, now=1000 - back) == 0


@pytest.mark.parametrize(
    ("rate", "burst"), [(0, 1), (1, 0), (-1, 1), (math.inf, 1), (math.nan, 1), (1, math.nan)]
)
def test_an_allowance_of_nothing_is_a_mistake(rate: float, burst: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Allowance(rate, burst)
    with pytest.raises(ValueError, match="above 0"):
        Allowances(rate, burst)


def test_a_negative_amount_gives_nothing_back() -> None:
    with pytest.raises(ValueError, match="negative"):
        Allowance(1, 1).take(-1)


def test_users_do_not_spend_each_others() -> None:
    allowances = Allowances(rate=1, burst=1)
    assert [allowances.take(user, now=0) for user in ("ada", "eve", "ada", "eve")] == [0, 0, 1, 1]


def test_the_quiet_are_forgotten_and_the_busy_are_not() -> None:
    allowances = Allowances(rate=0.001, burst=1, users=2)
    allowances.take("ada", now=0)
    for stranger in range(100):
        assert allowances.take(f"stranger-{stranger}", now=0) == 0
        assert allowances.take("ada", now=0) > 0
    assert len(allowances) == 2


@given(st.lists(st.sampled_from("abcdefgh"), max_size=100), st.integers(1, 4))
def test_no_more_users_are_kept_than_said(takers: list[str], users: int) -> None:
    allowances = Allowances(rate=1, burst=1, users=users)
    for taker in takers:
        allowances.take(taker, now=0)
        assert len(allowances) <= users

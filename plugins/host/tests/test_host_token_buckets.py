"""Token buckets grant exactly what rate and burst allow."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield_host.security.limits import TokenBucket, UserTokenBuckets

RATE = st.floats(0.1, 1000)
BURST = st.floats(1, 1000)
STEPS = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 50)), max_size=60)


def test_a_burst_is_granted_at_once_and_then_the_rate() -> None:
    bucket = TokenBucket(rate=2, burst=3)
    assert [bucket.take(now=100) for _ in range(4)] == [0, 0, 0, 0.5]
    assert bucket.take(now=100.5) == 0
    assert bucket.take(now=100.5) == 0.5


def test_a_refused_amount_is_not_taken() -> None:
    bucket = TokenBucket(rate=1, burst=10)
    assert bucket.take(8, now=0) == 0
    assert bucket.take(5, now=0) == 3
    assert bucket.take(2, now=0) == 0


def test_more_than_the_burst_is_never_granted() -> None:
    bucket = TokenBucket(rate=1, burst=10)
    assert bucket.take(11, now=0) == math.inf
    assert bucket.take(10, now=0) == 0


def test_the_monotonic_clock_is_used_by_default() -> None:
    bucket = TokenBucket(rate=0.001, burst=1)
    assert bucket.take() == 0
    assert 0 < bucket.take() <= 1000


@given(RATE, BURST, STEPS)
def test_no_more_is_granted_than_burst_and_rate_allow(
    rate: float, burst: float, steps: list[tuple[float, float]]
) -> None:
    bucket, now, granted = TokenBucket(rate, burst), 0.0, 0.0
    for pause, amount in steps:
        now += pause
        if bucket.take(amount, now) == 0:
            granted += amount
        assert granted <= (burst + rate * now) * (1 + 1e-9)


@given(RATE, BURST, STEPS)
def test_an_amount_is_granted_after_the_reported_wait(
    rate: float, burst: float, steps: list[tuple[float, float]]
) -> None:
    bucket, now = TokenBucket(rate, burst), 0.0
    for pause, asked in steps:
        now += pause
        amount = min(asked, burst)
        wait = bucket.take(amount, now)
        if wait:
            now += wait + 1e-6
            assert bucket.take(amount, now) == 0


@given(RATE, BURST, st.floats(0, 1000))
def test_a_clock_that_goes_backwards_adds_nothing(rate: float, burst: float, back: float) -> None:
    bucket = TokenBucket(rate, burst)
    assert bucket.take(burst, now=1000) == 0
    assert bucket.take(burst, now=1000 - back) > 0


@given(RATE, BURST, st.floats(0, 1000))
def test_a_clock_that_goes_backwards_removes_nothing(rate: float, burst: float, back: float) -> None:
    bucket = TokenBucket(rate, burst)
    assert bucket.take(0, now=1000) == 0
    assert bucket.take(burst, now=1000 - back) == 0


@pytest.mark.parametrize(
    ("rate", "burst"), [(0, 1), (1, 0), (-1, 1), (math.inf, 1), (math.nan, 1), (1, math.nan)]
)
def test_a_bucket_needs_a_positive_rate_and_burst(rate: float, burst: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        TokenBucket(rate, burst)
    with pytest.raises(ValueError, match="above 0"):
        UserTokenBuckets(rate, burst)


def test_a_negative_amount_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        TokenBucket(1, 1).take(-1)


def test_users_have_separate_buckets() -> None:
    allowances = UserTokenBuckets(rate=1, burst=1)
    assert [allowances.take(user, now=0) for user in ("ada", "eve", "ada", "eve")] == [0, 0, 1, 1]


def test_the_least_recently_active_users_lose_their_bucket() -> None:
    allowances = UserTokenBuckets(rate=0.001, burst=1, users=2)
    allowances.take("ada", now=0)
    for stranger in range(100):
        assert allowances.take(f"stranger-{stranger}", now=0) == 0
        assert allowances.take("ada", now=0) > 0
    assert len(allowances) == 2


@given(st.lists(st.sampled_from("abcdefgh"), max_size=100), st.integers(1, 4))
def test_the_number_of_buckets_is_bounded(takers: list[str], users: int) -> None:
    allowances = UserTokenBuckets(rate=1, burst=1, users=users)
    for taker in takers:
        allowances.take(taker, now=0)
        assert len(allowances) <= users

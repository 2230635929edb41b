"""Comparison of arms: it finds true differences, and reports null ones no more often than it says."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield.experiments.assignment import GROUPS
from jackfield.experiments.definition import Experiment, ExperimentSettings, GuardSettings
from jackfield_experiments.comparison import compare
from jackfield_experiments.figures import ArmFigures, Figures, Histogram, MeasuredCall, Sum
from jackfield_experiments.guard import ExperimentGuard


class SimulatedArm:
    """Users who differ from each other, with calls that arrive one user after the other."""

    def __init__(self, chance: random.Random, *, error: float = 0.05, slower: float = 1.0) -> None:
        self.figures = ArmFigures()
        self._chance = chance
        self._error = error
        self._slower = slower
        self._users = [(chance.gauss(0, 0.5), chance.random() * 2) for _ in range(200)]

    def add(self, calls: int) -> None:
        chance = self._chance
        for _ in range(calls):
            number = chance.randrange(len(self._users))
            speed, clumsy = self._users[number]
            failed = chance.random() < self._error * clumsy
            milliseconds = 20 * self._slower * 2.0 ** (speed + chance.gauss(0, 0.3))
            call = MeasuredCall(number % GROUPS, milliseconds, 500, "INTERNAL" if failed else None)
            self.figures.add_call(call)


def looks(seed: int, *, times: int, calls: int, **variant: float) -> list[set[str]]:
    """Return the measures that differ by more than chance, at each look at a growing experiment."""
    chance = random.Random(seed)
    one, other = SimulatedArm(chance), SimulatedArm(chance, **variant)
    found = []
    for _ in range(times):
        one.add(calls)
        other.add(calls)
        compared = compare("fast", other.figures, one.figures)
        found.append({each.measure for each in compared.differences if each.is_real})
    return found


def test_equal_arms_rarely_differ_however_often_somebody_looks() -> None:
    wrong = sum(any(looks(seed, times=6, calls=100)) for seed in range(60))
    # At most 3 are expected by design; 8 would be three standard deviations more.
    assert wrong <= 8


def test_true_differences_are_found() -> None:
    assert "errors" in looks(1, times=20, calls=200, error=0.15)[-1]
    assert "latency" in looks(2, times=20, calls=200, slower=1.6)[-1]


def test_calls_of_few_users_are_no_evidence() -> None:
    many, other = ArmFigures(), ArmFigures()
    for _ in range(5000):
        many.add_call(MeasuredCall(1, 10, 100))
        other.add_call(MeasuredCall(2, 1000, 100))
    compared = compare("fast", many, other)
    assert not compared.differences
    assert "1 of 10 groups" in compared.sentence


def test_few_calls_are_no_evidence() -> None:
    sparse = ArmFigures()
    for number in range(99):
        sparse.add_call(MeasuredCall(number % GROUPS, 10, 100))
    assert "99 of 100 calls" in compare("fast", sparse, sparse).sentence


def test_sentences_say_what_was_found() -> None:
    chance = random.Random(3)
    one, other = SimulatedArm(chance), SimulatedArm(chance, slower=3.0)
    one.add(2000)
    other.add(2000)
    compared = compare("fast", other.figures, one.figures)
    assert compared.sentence == "fast differs from control by more than chance in: latency."
    latency = next(each for each in compared.differences if each.measure == "latency")
    assert latency.sentence.endswith("this is more than chance.")
    assert latency.low < 200 < latency.high
    errors = next(each for each in compared.differences if each.measure == "errors")
    assert errors.sentence.endswith("this may be chance.")


def test_a_measure_that_hardly_any_call_has_is_left_out() -> None:
    failing, fine = ArmFigures(), ArmFigures()
    for number in range(500):
        failing.add_call(MeasuredCall(number % GROUPS, 10, error="INTERNAL"))
        fine.add_call(MeasuredCall(number % GROUPS, 10, 100))
    found = {each.measure: each.is_real for each in compare("fast", failing, fine).differences}
    assert found["errors"]
    assert "result size" not in found


def test_arms_without_any_failure_do_not_differ() -> None:
    one, other = ArmFigures(), ArmFigures()
    for number in range(1000):
        for arm in (one, other):
            arm.add_call(MeasuredCall(number % GROUPS, 10 + number % 7, 100))
    assert not any(each.is_real for each in compare("fast", one, other).differences)


calls = st.builds(
    MeasuredCall,
    st.integers(0, GROUPS - 1),
    st.floats(0, 1e6),
    st.integers(0, 10**7),
    st.sampled_from([None, "INTERNAL", "TRANSIENT"]),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(calls, max_size=40), st.integers(0, 40))
def test_figures_of_two_hosts_add_up_to_those_of_one(made: list[MeasuredCall], cut: int) -> None:
    whole, parts = Figures(), [Figures(), Figures()]
    for number, call in enumerate(made):
        whole.of("speed.1", "fast").add_call(call)
        parts[number < cut].of("speed.1", "fast").add_call(call)
    added = Figures()
    for part in parts:
        added.merge(Figures.from_wire(part.to_wire()))
    if made:
        one, other = whole["speed.1"]["fast"], added["speed.1"]["fast"]
        assert one.calls == other.calls == len(made)
        assert (one.errors, one.latencies, one.sizes) == (other.errors, other.latencies, other.sizes)
        for what in Sum:
            assert abs(one.total(what) - other.total(what)) < 1e-3


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_percentile_is_exact_to_the_width_of_a_bucket(values: list[float], share: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    ordered = sorted(values)
    exact = ordered[max(0, -(-len(values) * round(share * 100) // 100) - 1)]
    found = histogram.percentile(share)
    assert found is not None
    assert abs(found / exact - 1) < 0.05


def guarded(**bounds: float) -> Experiment:
    return Experiment(
        "speed",
        ExperimentSettings("look", {"fast": 50}, 50, guard=GuardSettings(**bounds)),  # type: ignore[arg-type]
    )


def arm(calls: int, errors: int = 0, milliseconds: float = 10) -> ArmFigures:
    figures = ArmFigures()
    for number in range(calls):
        figures.add_call(
            MeasuredCall(number % GROUPS, milliseconds, 1, "INTERNAL" if number < errors else None)
        )
    return figures


def test_the_guard_needs_enough_calls() -> None:
    experiment = guarded(min_calls=50, max_error_percent=5)
    assert ExperimentGuard().check(experiment, {"fast": arm(49, 49)}, 0) is None
    exceeded = ExperimentGuard().check(experiment, {"fast": arm(50, 10)}, 0)
    assert exceeded == ("fast", "20.0 % of 50 calls failed (all calls); the bound is 5 %")


def test_the_guard_does_not_judge_control() -> None:
    assert ExperimentGuard().check(guarded(max_error_percent=5), {"control": arm(500, 500)}, 0) is None


def test_the_guard_bounds_the_latency() -> None:
    exceeded = ExperimentGuard().check(guarded(max_p95_ms=100), {"fast": arm(200, 0, 150)}, 0)
    assert exceeded is not None
    assert "the bound is 100 ms" in exceeded[1]


def test_the_guard_notices_a_variant_that_goes_bad_after_many_good_calls() -> None:
    guard, experiment = ExperimentGuard(), guarded(max_error_percent=20, window_seconds=60)
    good = arm(10_000)
    assert guard.check(experiment, {"fast": good}, 0) is None
    good.merge(arm(150, 100))
    exceeded = guard.check(experiment, {"fast": good}, 30)
    assert exceeded is not None
    assert "the last 60 seconds" in exceeded[1]

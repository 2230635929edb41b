"""Compares two arms: how much they differ, and whether that is more than chance.

Two properties make the intervals valid. First, the unit is a group of subjects, not a call: calls of one
user resemble each other, so the variance is measured between groups. Second, the intervals are confidence
sequences (a normal mixture): with a chance of 95 percent, they contain the true differences at every look,
not only at one look that was planned in advance. The 5 percent are divided among all comparisons of an
experiment.

The intervals are asymptotic: they need some calls and groups, below which no result is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from jackfield_experiments.figures import ArmFigures, Sum

ERROR_RATE = 0.05
"""The probability that any interval of an experiment is wrong at any time."""

MIN_CALLS = 100
"""The minimum number of calls in each arm."""

MIN_GROUPS = 10
"""The minimum number of groups of subjects in each arm."""

TIGHT_AT = 1000
"""The number of calls at which the intervals are tightest, compared with those of a single look."""


_ROUNDING = 1e-6


class Measure(NamedTuple):
    """Something that is compared: a share of calls, or the geometric mean of a value."""

    name: str
    what: Sum
    is_share: bool
    per: Sum = Sum.CALLS


MEASURES = (
    Measure("errors", Sum.ERRORS, True),
    Measure("latency", Sum.LOG_LATENCY, False),
    Measure("result size", Sum.LOG_SIZE, False, Sum.RESULTS),
    Measure("repeated calls in a turn", Sum.REPEATS, True),
    Measure("calls again in the next turn", Sum.RETURNS, True),
)


class Difference(NamedTuple):
    """The difference between a variant and control in one measure.

    For a share, it is in percentage points, otherwise in percent of control.
    """

    measure: str
    unit: str
    difference: float
    low: float
    high: float

    @property
    def is_real(self) -> bool:
        """True if the difference is more than chance."""
        # Sums of equal values may differ in their last digits.
        return self.low > _ROUNDING or self.high < -_ROUNDING

    @property
    def sentence(self) -> str:
        """The difference, in plain words."""
        word = "higher" if self.difference > 0 else "lower"
        size = f"{abs(self.difference):.1f} {self.unit} {word} than control"
        between = f"between {self.low:+.1f} and {self.high:+.1f}"
        if self.is_real:
            return f"{self.measure}: {size} ({between}); this is more than chance."
        return f"{self.measure}: {size} ({between}); this may be chance."


class ArmComparison(NamedTuple):
    """The comparison of a variant with control."""

    arm: str
    missing: str
    """The data that is missing for a comparison; empty if nothing is missing."""
    differences: tuple[Difference, ...] = ()

    @property
    def sentence(self) -> str:
        """The result, in one sentence."""
        if self.missing:
            return f"It is too early to compare {self.arm} with control: {self.missing}."
        real = [each.measure for each in self.differences if each.is_real]
        if not real:
            return f"So far, every difference between {self.arm} and control may be chance."
        return f"{self.arm} differs from control by more than chance in: {', '.join(real)}."


def compare(arm: str, variant: ArmFigures, control: ArmFigures, variants: int = 1) -> ArmComparison:
    """Compare one of several variants with control."""
    short = [
        f"{name} has {each.calls} of {MIN_CALLS} calls"
        for name, each in ((arm, variant), ("control", control))
        if each.calls < MIN_CALLS
    ]
    short += [
        f"{name} has calls in {len(each.groups)} of {MIN_GROUPS} groups of subjects"
        for name, each in ((arm, variant), ("control", control))
        if len(each.groups) < MIN_GROUPS
    ]
    if short:
        return ArmComparison(arm, "; ".join(short))
    chance = ERROR_RATE / (len(MEASURES) * variants)
    found = (_difference(measure, variant, control, chance) for measure in MEASURES)
    return ArmComparison(arm, "", tuple(each for each in found if each is not None))


def _difference(
    measure: Measure, variant: ArmFigures, control: ArmFigures, chance: float
) -> Difference | None:
    one, other = _estimate(measure, variant), _estimate(measure, control)
    if one is None or other is None:
        return None
    difference = one.value - other.value
    width = half_width(math.sqrt(one.variance + other.variance), variant.calls + control.calls, chance)
    unit, scale = ("points", _points) if measure.is_share else ("%", _percent)
    return Difference(
        measure.name, unit, scale(difference), scale(difference - width), scale(difference + width)
    )


def _points(share: float) -> float:
    return share * 100


def _percent(log_ratio: float) -> float:
    return math.expm1(min(log_ratio, 50.0)) * 100


class Estimate(NamedTuple):
    """A share or a mean over all calls, and the variance of this estimate."""

    value: float
    variance: float


def _estimate(measure: Measure, figures: ArmFigures) -> Estimate | None:
    """Return the estimate for a measure; None if it has values in too few groups."""
    pairs = [(sums[measure.what], sums[measure.per]) for sums in figures.groups.values() if sums[measure.per]]
    if len(pairs) < MIN_GROUPS:
        return None
    found = ratio(pairs)
    if not measure.is_share:
        return found
    # Rare failures occur in few groups, so groups may look more alike than they are. The variance is at least
    # that of calls that fail independently of each other.
    calls = figures.calls
    smoothed = (figures.total(measure.what) + 1) / (calls + 2)
    return found._replace(variance=max(found.variance, smoothed * (1 - smoothed) / (calls + 2)))


def ratio(pairs: Iterable[tuple[float, float]]) -> Estimate:
    """Return the ratio of two sums over groups, with the variance that the groups show."""
    pairs = list(pairs)
    count = len(pairs)
    calls = sum(number for _, number in pairs)
    value = sum(amount for amount, _ in pairs) / calls
    squares = sum((amount - value * number) ** 2 for amount, number in pairs)
    variance = squares * count / (count - 1) / calls**2
    # The variance is itself an estimate; with few groups, that makes the interval wider.
    return Estimate(value, variance * (count - 1) / (count - 3))


def half_width(standard_error: float, calls: int, chance: float) -> float:
    """Return half the width of an interval that is right at every look, except with this probability."""
    budget = -2 * math.log(chance)
    time = calls * (budget + math.log(budget + 1)) / TIGHT_AT
    return standard_error * math.sqrt((time + 1) / time * (math.log(time + 1) + budget))

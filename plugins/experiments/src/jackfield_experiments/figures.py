"""The figures of each arm of an experiment, in a form that can be added up and stored."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from enum import IntEnum
from math import log2
from typing import Any, NamedTuple

LN2 = math.log(2)

BUCKETS_PER_DOUBLING = 8
"""The resolution of histograms: a bucket is 9 percent wide, so a percentile is exact to 4.4 percent."""


class Sum(IntEnum):
    """The sums that are kept for each group of subjects."""

    CALLS = 0
    ERRORS = 1
    LOG_LATENCY = 2
    LOG_SIZE = 3
    REPEATS = 4
    """Calls that follow another one of the same tool in the same turn."""
    RETURNS = 5
    """First calls of a turn that follow a call of the same tool in the turn before."""
    RESULTS = 6
    """Calls that succeeded, and so have a result with a size."""


# Plain numbers: a member of an enumeration is a slow index, and every call needs seven.
_CALLS, _ERRORS, _LOG_LATENCY, _LOG_SIZE, _REPEATS, _RETURNS, _RESULTS = map(int, Sum)

_SUMS = len(Sum)


class MeasuredCall(NamedTuple):
    """The figures of one call whose handler ran."""

    group: int
    milliseconds: float
    size: int = 0
    """The size of the result, without what the envelope adds to it."""
    error: str | None = None
    repeats: bool = False
    returns: bool = False


class Histogram(Counter[int]):
    """Counts of positive values in buckets whose width grows with the value."""

    def add(self, value: float) -> None:
        """Count a value."""
        self.add_log(math.log2(max(value, 1e-3)))

    def add_log(self, value: float) -> None:
        """Count a value whose binary logarithm is known."""
        bucket = math.floor(value * BUCKETS_PER_DOUBLING)
        self[bucket] = self.get(bucket, 0) + 1

    def percentile(self, share: float) -> float | None:
        """Return a percentile; None without values."""
        remaining = share * self.total()
        for bucket in sorted(self):
            remaining -= self[bucket]
            if remaining <= 0 and self[bucket]:
                return float(2 ** ((bucket + 0.5) / BUCKETS_PER_DOUBLING))
        return None


class ArmFigures:
    """The figures of one arm."""

    __slots__ = ("errors", "groups", "latencies", "outcomes", "refusals", "sessions", "sizes")

    def __init__(self) -> None:
        self.sessions = 0
        self.errors: Counter[str] = Counter()
        """Failures of the handler, by type."""
        self.refusals: Counter[str] = Counter()
        """Calls that a policy or the validation answered, by its name."""
        self.outcomes: Counter[str] = Counter()
        """Comparisons of a shadow with its tool, by outcome."""
        self.latencies = Histogram()
        """In milliseconds."""
        self.sizes = Histogram()
        """In characters; for a shadow, in bytes."""
        self.groups: dict[int, list[float]] = {}
        """The sums of each group of subjects, in the order of `Sum`."""

    @property
    def calls(self) -> int:
        """The number of calls whose handler ran."""
        return self.latencies.total()

    def total(self, what: Sum) -> float:
        """Return a sum over all groups."""
        return sum(group[what] for group in self.groups.values())

    def add_call(self, call: MeasuredCall) -> None:
        """Count a call."""
        group, milliseconds, size, error, repeats, returns = call
        sums = self.groups.get(group)
        if sums is None:
            sums = self.groups[group] = [0.0] * _SUMS
        latency = log2(max(milliseconds, 1e-3))
        sums[_CALLS] += 1
        sums[_LOG_LATENCY] += latency * LN2
        self.latencies.add_log(latency)
        if repeats:
            sums[_REPEATS] += 1
        if returns:
            sums[_RETURNS] += 1
        if error is None:
            logarithm = log2(max(size, 1))
            sums[_RESULTS] += 1
            sums[_LOG_SIZE] += logarithm * LN2
            self.sizes.add_log(logarithm)
        else:
            sums[_ERRORS] += 1
            self.errors[error] += 1

    def merge(self, other: ArmFigures) -> None:
        """Add the figures of another host."""
        self.sessions += other.sessions
        self.errors += other.errors
        self.refusals += other.refusals
        self.outcomes += other.outcomes
        self.latencies.update(other.latencies)
        self.sizes.update(other.sizes)
        for group, sums in other.groups.items():
            mine = self.groups.setdefault(group, [0.0] * _SUMS)
            mine[:] = [one + another for one, another in zip(mine, sums, strict=True)]

    def to_wire(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "sessions": self.sessions,
            "errors": _plain(self.errors),
            "refusals": _plain(self.refusals),
            "outcomes": _plain(self.outcomes),
            "latencies": {str(bucket): count for bucket, count in self.latencies.items()},
            "sizes": {str(bucket): count for bucket, count in self.sizes.items()},
            "groups": {str(group): [round(each, 6) for each in sums] for group, sums in self.groups.items()},
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> ArmFigures:
        """Create figures from JSON values."""
        figures = cls()
        figures.sessions = wire["sessions"]
        figures.errors.update(wire["errors"])
        figures.refusals.update(wire["refusals"])
        figures.outcomes.update(wire["outcomes"])
        figures.latencies.update({int(bucket): count for bucket, count in wire["latencies"].items()})
        figures.sizes.update({int(bucket): count for bucket, count in wire["sizes"].items()})
        figures.groups = {int(group): list(sums) for group, sums in wire["groups"].items()}
        return figures


class Figures(dict[str, dict[str, ArmFigures]]):
    """The figures of arms, by the key of the experiment's definition and the name of the arm."""

    def of(self, key: str, arm: str) -> ArmFigures:
        """Return the figures of an arm; new ones if there are none yet."""
        arms = self.setdefault(key, {})
        found = arms.get(arm)
        if found is None:
            found = arms[arm] = ArmFigures()
        return found

    def merge(self, other: Mapping[str, Mapping[str, ArmFigures]]) -> None:
        """Add other figures."""
        for key, arms in other.items():
            for arm, figures in arms.items():
                self.of(key, arm).merge(figures)

    def to_wire(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {key: {arm: each.to_wire() for arm, each in arms.items()} for key, arms in self.items()}

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Figures:
        """Create figures from JSON values."""
        figures = cls()
        for key, arms in wire.items():
            figures[key] = {arm: ArmFigures.from_wire(each) for arm, each in arms.items()}
        return figures


def _plain(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts whose keys are strings and not members of an enumeration."""
    return {str(name): count for name, count in counts.items()}

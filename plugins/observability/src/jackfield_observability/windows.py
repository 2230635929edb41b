"""Counters and rolling windows: cheap to add to, worked out when somebody asks."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable
from typing import NamedTuple

WINDOW = 1000
"""How many of the latest values percentiles are taken over."""

CHARACTERS_PER_TOKEN = 4

ENOUGH = 20
"""How many responses it takes before their percentiles mean something."""


class Percentiles(NamedTuple):
    """The values that 50, 95 and 99 of 100 do not exceed."""

    p50: float
    p95: float
    p99: float


def percentiles(values: Iterable[float]) -> Percentiles | None:
    """Percentiles with linear interpolation between neighbours; nothing for no values."""
    ordered = sorted(values)
    if not ordered:
        return None
    return Percentiles(*(_at(ordered, share) for share in (0.50, 0.95, 0.99)))


def _at(ordered: list[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    if below + 1 == len(ordered):
        return ordered[below]
    return ordered[below] + (ordered[below + 1] - ordered[below]) * (place - below)


class Series:
    """A sum and a count of everything, and a window of the latest."""

    __slots__ = ("count", "latest", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.latest: deque[float] = deque(maxlen=WINDOW)

    def add(self, value: float) -> None:
        """Take in a value."""
        self.count += 1
        self.total += value
        self.latest.append(value)

    def percentiles(self) -> Percentiles | None:
        """Percentiles of the latest values."""
        # A copy is made in one step, so another thread may ask while calls go on.
        return percentiles(self.latest.copy())


class ToolFigures:
    """What is known of the calls of one tool."""

    __slots__ = (
        "broken_returns", "budget", "calls", "characters", "durations", "errors", "late", "next_look",
        "seconds", "sizes", "warnings",
    )  # fmt: skip

    def __init__(self, budget_ms: int) -> None:
        self.budget = budget_ms / 1000
        self.calls = 0
        self.late = 0
        self.broken_returns = 0
        self.seconds = 0.0
        self.characters = 0
        self.warnings = 0
        self.next_look = 0.0
        self.errors: Counter[str] = Counter()
        self.durations: deque[float] = deque(maxlen=WINDOW)
        self.sizes: deque[int] = deque(maxlen=WINDOW)

    def add(self, seconds: float, size: int) -> None:
        """Take in a call."""
        self.calls += 1
        self.seconds += seconds
        self.characters += size
        if seconds > self.budget:
            self.late += 1
        self.durations.append(seconds)
        self.sizes.append(size)

    @property
    def tokens(self) -> int:
        """The tokens of all responses, estimated."""
        return self.characters // CHARACTERS_PER_TOKEN

    def duration_percentiles(self) -> Percentiles | None:
        """Percentiles of the latest durations, in seconds."""
        return percentiles(self.durations.copy())

    def size_percentiles(self) -> Percentiles | None:
        """Percentiles of the latest responses' sizes, in characters."""
        return percentiles(self.sizes.copy())

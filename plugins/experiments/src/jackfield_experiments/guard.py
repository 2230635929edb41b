"""The guard: detects that a variant's errors or latency exceed their bounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from jackfield.experiments.definition import Experiment, GuardSettings

from jackfield_experiments.figures import ArmFigures, Histogram


class _Level(NamedTuple):
    """The cumulative figures that the guard checks, at one point in time."""

    calls: int
    errors: int
    latencies: Histogram

    @classmethod
    def of(cls, figures: ArmFigures) -> _Level:
        return cls(figures.calls, figures.errors.total(), Histogram(figures.latencies))

    def since(self, before: _Level) -> _Level:
        """Return the difference between these figures and earlier ones."""
        latencies = Histogram(self.latencies)
        latencies.subtract(before.latencies)
        return _Level(self.calls - before.calls, self.errors - before.errors, latencies)


class ExperimentGuard:
    """Remembers how the figures of one experiment grew, and compares them with its bounds."""

    def __init__(self) -> None:
        self._history: deque[tuple[float, dict[str, _Level]]] = deque()

    def check(
        self, experiment: Experiment, arms: Mapping[str, ArmFigures], now: float
    ) -> tuple[str, str] | None:
        """Return a variant that exceeds a bound, and the reason; None if no variant does."""
        settings = experiment.settings.guard
        levels = {arm: _Level.of(arms[arm]) for arm in experiment.settings.variants if arm in arms}
        while self._history and self._history[0][0] < now - settings.window_seconds:
            self._history.popleft()
        recent = self._history[0][1] if self._history else {}
        self._history.append((now, levels))
        for arm, level in levels.items():
            if reason := _exceeded(level, settings, "all calls"):
                return arm, reason
            # A variant that fails after a good week is bad too.
            last = level.since(recent[arm]) if arm in recent else level
            if reason := _exceeded(last, settings, f"the last {settings.window_seconds:g} seconds"):
                return arm, reason
        return None


def _exceeded(level: _Level, settings: GuardSettings, period: str) -> str:
    if level.calls < settings.min_calls:
        return ""
    percent = 100 * level.errors / level.calls
    if settings.max_error_percent and percent > settings.max_error_percent:
        return (
            f"{percent:.1f} % of {level.calls} calls failed ({period}); the bound is "
            f"{settings.max_error_percent:g} %"
        )
    p95 = level.latencies.percentile(0.95)
    if settings.max_p95_ms and p95 is not None and p95 > settings.max_p95_ms:
        return (
            f"P95 of {level.calls} calls is {p95:.0f} ms ({period}); the bound is {settings.max_p95_ms:g} ms"
        )
    return ""

"""The report about experiments that the command, the endpoint and the console show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.experiments.assignment import CONTROL
from jackfield.experiments.definition import Experiment, ExperimentsFile
from jackfield.experiments.experiments import GuardAbort

from jackfield_experiments.comparison import compare
from jackfield_experiments.figures import ArmFigures, Figures, Histogram, Sum


def create_report(
    file: ExperimentsFile, aborts: Mapping[str, GuardAbort], totals: Figures, problem: str = ""
) -> dict[str, Any]:
    """Return everything that is known about the experiments, as JSON values."""
    return {
        "version": file.version,
        "problem": problem or None,
        "experiments": [
            _experiment(each, aborts.get(each.key), totals.get(each.key, {}))
            for each in file.experiments.values()
        ],
    }


def _experiment(
    experiment: Experiment, abort: GuardAbort | None, arms: Mapping[str, ArmFigures]
) -> dict[str, Any]:
    settings = experiment.settings
    aborted = settings.state == "running" and abort is not None
    control = arms.get(CONTROL, ArmFigures())
    comparisons = [
        compare(arm, arms.get(arm, ArmFigures()), control, len(settings.variants))
        for arm in settings.variants
        if settings.control or settings.shadow
    ]
    shares = {CONTROL: 100.0 if settings.shadow else settings.control, **settings.variants}
    return {
        "name": experiment.name,
        "description": settings.description,
        "tool": experiment.tool,
        "by": settings.by,
        "shadow": settings.shadow,
        "state": "aborted" if aborted else settings.state,
        "winner": settings.winner or None,
        "reason": abort.reason if abort and aborted else settings.reason,
        "abortedBy": {"host": abort.host, "arm": abort.arm, "at": abort.at} if abort and aborted else None,
        "arms": [
            {"arm": arm, "percent": shares[arm], **_arm(arms.get(arm, ArmFigures()))}
            for arm in experiment.arms
            if shares[arm] or arm in arms
        ],
        "comparisons": [
            {
                "arm": each.arm,
                "sentence": each.sentence,
                "differences": [
                    {**found._asdict(), "real": found.is_real, "sentence": found.sentence}
                    for found in each.differences
                ],
            }
            for each in comparisons
        ],
    }


def _arm(figures: ArmFigures) -> dict[str, Any]:
    calls = figures.calls
    return {
        "sessions": figures.sessions,
        "calls": calls,
        "errors": dict(figures.errors),
        "errorPercent": _percent(figures.errors.total(), calls),
        "refusals": dict(figures.refusals),
        "latencyMs": _percentiles(figures.latencies),
        "resultSize": _percentiles(figures.sizes),
        "repeatPercent": _percent(figures.total(Sum.REPEATS), calls),
        "nextTurnPercent": _percent(figures.total(Sum.RETURNS), calls),
        "outcomes": dict(figures.outcomes),
    }


def _percent(part: float, calls: int) -> float | None:
    return round(100 * part / calls, 2) if calls else None


def _percentiles(histogram: Histogram) -> dict[str, float]:
    found = {
        name: histogram.percentile(share) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }
    return {name: round(value, 3) for name, value in found.items() if value is not None}

"""Metric definitions, and their export as JSON and for Prometheus, whose library the first scrape imports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from jackfield.contract.tool import ErrorType

from jackfield_observability.metrics import WINDOW, Metrics, Percentiles, Series, ToolMetrics

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

Labels = Mapping[str, str]
Value = tuple[Labels, float]


class MetricSummary(NamedTuple):
    """Count and sum of all values, and percentiles of the latest ones."""

    seen: int
    total: float
    latest: Percentiles | None


class MetricSpec(NamedTuple):
    """The definition of a metric: name, kind, help text, and how to read its values."""

    name: str
    kind: Literal["counter", "gauge", "summary"]
    meaning: str
    read: Callable[[Metrics], Iterable[tuple[Labels, float | MetricSummary]]]


def _by_tool(
    read: Callable[[ToolMetrics], float | MetricSummary],
) -> Callable[[Metrics], Iterator[tuple[Labels, Any]]]:
    return lambda metrics: ((tool.labels, read(tool)) for _, tool in sorted(metrics.tools.items()))


def _alone(read: Callable[[Metrics], float | MetricSummary]) -> Callable[[Metrics], list[tuple[Labels, Any]]]:
    return lambda metrics: [({}, read(metrics))]


def _by_mode(read: Callable[[Metrics], Mapping[str, int]]) -> Callable[[Metrics], list[tuple[Labels, Any]]]:
    return lambda metrics: [({"mode": mode}, count) for mode, count in sorted(read(metrics).items())]


def _errors(metrics: Metrics) -> Iterator[Value]:
    for _, tool in sorted(metrics.tools.items()):
        for kind, count in sorted(tool.errors.items()):
            yield {**tool.labels, "type": str(kind)}, count


def _decisions(metrics: Metrics) -> Iterator[Value]:
    for (policy, decision), count in metrics.decision_kinds().items():
        yield {"policy": policy, "decision": decision}, count


def _unbacked_claims(metrics: Metrics) -> Iterator[Value]:
    for (tool, state), count in sorted(metrics.unbacked_claims.copy().items()):
        yield {"tool": tool, "state": state}, count


def _shadows(metrics: Metrics) -> Iterator[Value]:
    for (experiment, tool, variant, outcome), count in sorted(metrics.shadows.items()):
        labels = {"experiment": experiment, "tool": tool, "variant": variant, "outcome": str(outcome)}
        yield labels, count


def _experiments_version(metrics: Metrics) -> Iterator[Value]:
    if metrics.experiments is not None:
        yield {}, metrics.experiments.current.version


def _aborts(metrics: Metrics) -> Iterator[Value]:
    if metrics.experiments is not None:
        for each in metrics.experiments.aborts.values():
            yield {"experiment": each.experiment, "variant": each.arm}, 1


def _host(metrics: Metrics) -> Iterator[Value]:
    if metrics.host:
        yield {"host": metrics.host}, 1


def _durations(tool: ToolMetrics) -> MetricSummary:
    return MetricSummary(tool.calls, tool.seconds, tool.duration_percentiles())


def _sizes(tool: ToolMetrics) -> MetricSummary:
    return MetricSummary(tool.calls, tool.characters, tool.size_percentiles())


def _series(series: Series) -> MetricSummary:
    return MetricSummary(series.count, series.total, series.percentiles())


def _failures(kind: ErrorType) -> Callable[[Metrics], list[tuple[Labels, Any]]]:
    return _alone(lambda metrics: metrics.failures(kind))


METRICS = (
    MetricSpec("jackfield_calls", "counter", "Calls answered.", _by_tool(lambda tool: tool.calls)),
    MetricSpec("jackfield_errors", "counter", "Failed calls, by error type.", _errors),
    MetricSpec(
        "jackfield_call_duration_seconds", "summary", "Time from arrival to answer.", _by_tool(_durations)
    ),
    MetricSpec("jackfield_response_characters", "summary", "Size of the whole envelope.", _by_tool(_sizes)),
    MetricSpec(
        "jackfield_response_tokens", "counter", "Estimated tokens in the envelopes.",
        _by_tool(lambda tool: tool.tokens),
    ),
    MetricSpec(
        "jackfield_late_calls", "counter", "Calls over their tool's latency budget.",
        _by_tool(lambda tool: tool.late),
    ),
    MetricSpec(
        "jackfield_returns_violations", "counter", "Calls whose data violated the tool's `returns`.",
        _by_tool(lambda tool: tool.broken_returns),
    ),
    MetricSpec(
        "jackfield_response_size_warnings", "counter", "Warnings that a tool's P95 response is too large.",
        _by_tool(lambda tool: tool.warnings),
    ),
    MetricSpec("jackfield_policy_decisions", "counter", "Policy decisions other than pass.", _decisions),
    MetricSpec(
        "jackfield_budget_refusals", "counter", "Calls over a turn's budget.",
        _failures(ErrorType.BUDGET_EXCEEDED),
    ),
    MetricSpec("jackfield_loops", "counter", "Calls rejected as loops.", _failures(ErrorType.LOOP_DETECTED)),
    MetricSpec(
        "jackfield_duplicates", "counter", "Repeated calls answered with the first call's result.",
        _alone(lambda metrics: metrics.decided("duplicates", "replayed")),
    ),
    MetricSpec(
        "jackfield_confirmation_requests", "counter", "Calls that asked for the user's approval.",
        _failures(ErrorType.CONFIRMATION_REQUIRED),
    ),
    MetricSpec(
        "jackfield_confirmed_calls", "counter", "Calls run after the user's approval.",
        _alone(lambda metrics: metrics.confirmed),
    ),
    MetricSpec(
        "jackfield_unbacked_claims", "counter", "The assistant's claims that no successful call backs up.",
        _unbacked_claims,
    ),
    MetricSpec(
        "jackfield_sessions", "counter", "Sessions opened.", _by_mode(lambda metrics: metrics.sessions)
    ),
    MetricSpec(
        "jackfield_open_sessions", "gauge", "Open sessions.",
        _alone(lambda metrics: metrics.open_sessions),
    ),
    MetricSpec("jackfield_turns", "counter", "Turns started.", _by_mode(lambda metrics: metrics.turns)),
    MetricSpec(
        "jackfield_prompt_tokens", "summary", "Tokens in the prompt when a session opens.",
        _alone(lambda metrics: _series(metrics.prompt_tokens)),
    ),
    MetricSpec(
        "jackfield_declaration_tokens", "summary", "Tokens in the tool declarations when a session opens.",
        _alone(lambda metrics: _series(metrics.declaration_tokens)),
    ),
    MetricSpec(
        "jackfield_largest_context_tokens", "gauge", "Tokens in the fullest open session, estimated.",
        _alone(lambda metrics: metrics.largest_context),
    ),
    MetricSpec(
        "jackfield_context_warnings", "counter", "Sessions whose context approached its limit.",
        _alone(lambda metrics: metrics.context_warnings),
    ),
    MetricSpec(
        "jackfield_shadow_comparisons", "counter", "Answers of shadows compared with those of tools.",
        _shadows,
    ),
    MetricSpec(
        "jackfield_experiments_version", "gauge", "The version of the experiments in effect.",
        _experiments_version,
    ),
    MetricSpec(
        "jackfield_experiment_aborted", "gauge", "1 for each experiment that a guard has aborted.", _aborts
    ),
    MetricSpec("jackfield_host_info", "gauge", "The name of this host, as a label.", _host),
)  # fmt: skip
"""All metrics; the samples of a counter end in `_total`, as Prometheus requires."""


def as_json(metrics: Metrics) -> dict[str, Any]:
    """Return every metric by name: a list of values, each with its labels."""
    return {
        "window": WINDOW,
        "metrics": {
            shown.name: [{**labels, **_plain(value)} for labels, value in shown.read(metrics)]
            for shown in METRICS
        },
    }


def _plain(value: float | MetricSummary) -> dict[str, Any]:
    if isinstance(value, MetricSummary):
        return {"count": value.seen, "sum": value.total, **(value.latest._asdict() if value.latest else {})}
    return {"value": value}


def create_registry(metrics: Metrics) -> CollectorRegistry:
    """Return a separate registry, without the process's default metrics."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.registry import Collector

    class PrometheusCollector(Collector):
        """Reads the counters when Prometheus scrapes."""

        def collect(self) -> Iterator[Metric]:
            return _families(metrics)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(PrometheusCollector())
    return registry


def _families(metrics: Metrics) -> Iterator[Metric]:
    from prometheus_client.core import Metric

    for shown in METRICS:
        family = Metric(shown.name, shown.meaning, shown.kind)
        for labels, value in shown.read(metrics):
            _add(family, dict(labels), value)
        yield family


def _add(family: Metric, labels: dict[str, str], value: float | MetricSummary) -> None:
    if not isinstance(value, MetricSummary):
        family.add_sample(f"{family.name}_total" if family.type == "counter" else family.name, labels, value)
        return
    for quantile, figure in zip(("0.5", "0.95", "0.99"), value.latest or (), strict=False):
        family.add_sample(family.name, {**labels, "quantile": quantile}, figure)
    family.add_sample(f"{family.name}_count", labels, value.seen)
    family.add_sample(f"{family.name}_sum", labels, value.total)

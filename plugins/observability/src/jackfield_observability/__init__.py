"""Observers of tool calls: `audit` writes a line for each, `metrics` counts them, `traces` makes spans."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import ObserverOffer, PluginSettings, Services

if TYPE_CHECKING:
    from jackfield_observability.audit import Audit
    from jackfield_observability.metrics import Metrics
    from jackfield_observability.traces import Traces


@hookimpl
def jackfield_observers() -> list[ObserverOffer]:
    """Offer `audit` and `metrics`, and `traces` where the OpenTelemetry SDK is installed."""
    offers = [ObserverOffer("audit", _audit), ObserverOffer("metrics", _metrics)]
    if _has_opentelemetry():
        offers.append(ObserverOffer("traces", _traces))
    return offers


def _has_opentelemetry() -> bool:
    try:
        return find_spec("opentelemetry.sdk") is not None
    except ModuleNotFoundError:
        return False


def _audit(settings: PluginSettings, services: Services) -> Audit:  # noqa: ARG001 - an offer's shape
    from jackfield_observability.audit import Audit
    from jackfield_observability.options import AuditOptions, read

    return Audit(read(AuditOptions, "audit", settings))


def _metrics(settings: PluginSettings, services: Services) -> Metrics:  # noqa: ARG001 - an offer's shape
    from jackfield_observability.metrics import Metrics
    from jackfield_observability.options import MetricsOptions, read

    return Metrics(read(MetricsOptions, "metrics", settings))


def _traces(settings: PluginSettings, services: Services) -> Traces:  # noqa: ARG001 - an offer's shape
    from jackfield_observability.options import TracesOptions, read
    from jackfield_observability.traces import Traces

    read(TracesOptions, "traces", settings)
    return Traces()

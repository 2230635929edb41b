"""Observers of tool calls: `audit` logs each call, `metrics` counts calls, `traces` creates spans."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import ObserverOffer, Services

if TYPE_CHECKING:
    from jackfield.settings import NoSettings

    from jackfield_observability.audit import Audit
    from jackfield_observability.metrics import Metrics
    from jackfield_observability.settings import AuditSettings, MetricsSettings
    from jackfield_observability.traces import Traces


@hookimpl
def jackfield_observers() -> list[ObserverOffer]:
    """Offer `audit` and `metrics`, and `traces` if the OpenTelemetry SDK is installed."""
    from jackfield.settings import NoSettings

    from jackfield_observability.settings import AuditSettings, MetricsSettings

    offers = [
        ObserverOffer("audit", _audit, AuditSettings),
        ObserverOffer("metrics", _metrics, MetricsSettings),
    ]
    if _has_opentelemetry():
        offers.append(ObserverOffer("traces", _traces, NoSettings))
    return offers


def _has_opentelemetry() -> bool:
    try:
        return find_spec("opentelemetry.sdk") is not None
    except ModuleNotFoundError:
        return False


def _audit(settings: AuditSettings, services: Services) -> Audit:  # noqa: ARG001 - required signature
    from jackfield_observability.audit import Audit

    return Audit(settings)


def _metrics(settings: MetricsSettings, services: Services) -> Metrics:  # noqa: ARG001 - required signature
    from jackfield_observability.metrics import Metrics

    return Metrics(settings)


def _traces(settings: NoSettings, services: Services) -> Traces:  # noqa: ARG001 - required signature
    from jackfield_observability.traces import Traces

    return Traces()

"""Experiments on running hosts: figures of each arm, their comparison, the guard, and `jackfield rollout`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import CommandOffer, EndpointOffer, ObserverOffer, Services

if TYPE_CHECKING:
    import click
    from jackfield.settings import NoSettings

    from jackfield_experiments.monitor import ExperimentMonitor


@hookimpl
def jackfield_observers() -> Iterable[ObserverOffer]:
    """Offer the observer that measures and guards experiments."""
    from jackfield.settings import NoSettings

    return [ObserverOffer("experiments", _monitor, NoSettings)]


def _monitor(settings: NoSettings, services: Services) -> ExperimentMonitor:  # noqa: ARG001
    from jackfield_experiments.monitor import ExperimentMonitor

    return ExperimentMonitor()


@hookimpl
def jackfield_endpoints() -> Iterable[EndpointOffer]:
    """Offer `GET /experiments` to operators."""
    from jackfield.settings import NoSettings

    return [
        EndpointOffer(
            "experiments",
            "/experiments",
            _endpoint,
            auth="operator",
            settings=NoSettings,
            openapi=_openapi,
        )
    ]


def _endpoint(settings: NoSettings, services: Any) -> Iterable[Any]:  # noqa: ARG001
    from jackfield_experiments.endpoint import routes

    return routes(services.runtime)


def _openapi() -> Mapping[str, Any]:
    from jackfield_experiments.endpoint import OPENAPI

    return OPENAPI


@hookimpl
def jackfield_commands() -> Iterable[CommandOffer]:
    """Offer the command `jackfield rollout`."""
    return [CommandOffer("rollout", "Show, promote and abort experiments.", _rollout)]


def _rollout() -> click.Command:
    from jackfield_experiments.commands import rollout

    return rollout

"""A second agent that works in the background, and the policies that say what it may do unattended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, PluginSettings, PolicyOffer, Services, Stage

if TYPE_CHECKING:
    from jackfield_agents.agents import Agents
    from jackfield_agents.consent import TaskConsent
    from jackfield_agents.unattended import Unattended


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Agents on the provider of the deployment."""
    return [CapabilityOffer("agents", _agents)]


@hookimpl
def jackfield_policies() -> Iterable[PolicyOffer]:
    """What an agent may call, beside the modes; and what it may begin unasked, just before confirmation."""
    return [
        PolicyOffer("unattended", Stage.ADMIT, 25, _unattended),
        PolicyOffer("task_consent", Stage.SHAPE, 15, _consent),
    ]


def _agents(settings: PluginSettings, services: Services) -> Agents:  # noqa: ARG001
    from jackfield_agents.agents import Agents
    from jackfield_agents.options import Options

    return Agents(Options.of(settings))


def _unattended(settings: PluginSettings, services: Services) -> Unattended:
    from jackfield_agents.unattended import Unattended

    return Unattended(settings, services)


def _consent(settings: PluginSettings, services: Services) -> TaskConsent:
    from jackfield_agents.consent import TaskConsent

    return TaskConsent(settings, services)

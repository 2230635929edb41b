"""Background agents, and the policies `unattended` and `task_consent`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, PolicyOffer, Services, Stage

if TYPE_CHECKING:
    from jackfield.settings import NoSettings

    from jackfield_agents.agents import AgentPool
    from jackfield_agents.policies import TaskConsent, Unattended
    from jackfield_agents.settings import AgentsSettings, TaskConsentSettings


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Offer `agents`, which use the deployment's provider."""
    from jackfield_agents.settings import AgentsSettings

    return [CapabilityOffer("agents", _agents, settings=AgentsSettings)]


@hookimpl
def jackfield_policies() -> Iterable[PolicyOffer]:
    """Offer policies for agents' tools, next to the modes, and for consent, just before confirmation."""
    from jackfield.settings import NoSettings

    from jackfield_agents.settings import TaskConsentSettings

    return [
        PolicyOffer("unattended", Stage.ADMIT, 25, _unattended, settings=NoSettings),
        PolicyOffer("task_consent", Stage.SHAPE, 15, _consent, settings=TaskConsentSettings),
    ]


def _agents(settings: AgentsSettings, services: Services) -> AgentPool:  # noqa: ARG001
    from jackfield_agents.agents import AgentPool

    return AgentPool(settings)


def _unattended(settings: NoSettings, services: Services) -> Unattended:  # noqa: ARG001
    from jackfield_agents.policies import Unattended

    return Unattended(services)


def _consent(settings: TaskConsentSettings, services: Services) -> TaskConsent:
    from jackfield_agents.policies import TaskConsent

    return TaskConsent(settings, services)

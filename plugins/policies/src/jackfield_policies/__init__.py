"""The standard policies, offered in their order; each is a module of one decision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, CommandOffer, PolicyOffer, Services, Stage

if TYPE_CHECKING:
    import click

    from jackfield_policies.bans import Bans


@hookimpl
def jackfield_policies() -> Iterable[PolicyOffer]:
    """Every policy, with its place in the chain."""
    # Here, because a plugin is also loaded for its commands, and a policy brings in the path of a call.
    from jackfield.settings import NoSettings

    from jackfield_policies import settings as declared
    from jackfield_policies.availability import Availability
    from jackfield_policies.bans import BanPolicy
    from jackfield_policies.budgets import Budgets
    from jackfield_policies.clamping import Clamping
    from jackfield_policies.confirmation import Confirmation
    from jackfield_policies.duplicates import Duplicates
    from jackfield_policies.latency import Latency
    from jackfield_policies.loops import Loops
    from jackfield_policies.modes import Modes
    from jackfield_policies.rate_limits import RateLimits
    from jackfield_policies.recovery import Recovery

    confirms = ("requiresConfirmation",)
    return [
        PolicyOffer("duplicates", Stage.ADMIT, 10, Duplicates, (), declared.DuplicatesSettings),
        PolicyOffer("modes", Stage.ADMIT, 20, lambda *_: Modes(), ("allowedModes",), NoSettings),
        PolicyOffer("bans", Stage.ADMIT, 30, BanPolicy, (), NoSettings),
        PolicyOffer("availability", Stage.ADMIT, 40, Availability, ("availability",), NoSettings),
        PolicyOffer("rate_limits", Stage.ADMIT, 50, RateLimits, ("rateLimit",), NoSettings),
        PolicyOffer("budgets", Stage.ADMIT, 60, Budgets, (), declared.BudgetsSettings),
        PolicyOffer("loops", Stage.ADMIT, 70, Loops, (), declared.LoopsSettings),
        PolicyOffer("clamping", Stage.SHAPE, 10, Clamping, (), declared.ClampingSettings),
        PolicyOffer("confirmation", Stage.SHAPE, 20, Confirmation, confirms, declared.ConfirmationSettings),
        PolicyOffer("recovery", Stage.SHAPE, 30, Recovery, (), declared.RecoverySettings),
        PolicyOffer("latency", Stage.SHAPE, 40, lambda *_: Latency(), (), NoSettings),
    ]


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Let a tool ban its user."""
    from jackfield.settings import NoSettings

    return [CapabilityOffer("bans", _bans, settings=NoSettings)]


def _bans(settings: object, services: Services) -> Bans:  # noqa: ARG001
    from jackfield_policies.bans import Bans

    return Bans(services.store)


@hookimpl
def jackfield_commands() -> Iterable[CommandOffer]:
    """Let an operator see bans and lift one."""
    return [CommandOffer("bans", "See who is banned, and lift a ban.", _bans_command)]


def _bans_command() -> click.Command:
    from jackfield_policies.commands import bans

    return bans

"""The standard policies, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, CommandOffer, PolicyOffer, Services, Stage

if TYPE_CHECKING:
    import click

    from jackfield_policies.access import Bans


@hookimpl
def jackfield_policies() -> Iterable[PolicyOffer]:
    """Offer every policy with its position in the chain."""
    # Imported here, because a plugin is also loaded for its commands, and policies import the call path.
    from jackfield.settings import NoSettings

    from jackfield_policies import settings as declared
    from jackfield_policies.access import AvailabilityPolicy, BanPolicy, ModePolicy
    from jackfield_policies.confirmation import ConfirmationPolicy
    from jackfield_policies.limits import (
        BudgetPolicy,
        DuplicatePolicy,
        LatencyPolicy,
        LoopPolicy,
        RateLimitPolicy,
        RetryPolicy,
        TopKPolicy,
    )

    confirms = ("requiresConfirmation",)
    return [
        PolicyOffer("duplicates", Stage.ADMIT, 10, DuplicatePolicy, (), declared.DuplicatesSettings),
        PolicyOffer("modes", Stage.ADMIT, 20, lambda *_: ModePolicy(), ("allowedModes",), NoSettings),
        PolicyOffer("bans", Stage.ADMIT, 30, BanPolicy, (), NoSettings),
        PolicyOffer("availability", Stage.ADMIT, 40, AvailabilityPolicy, ("availability",), NoSettings),
        PolicyOffer("rate_limits", Stage.ADMIT, 50, RateLimitPolicy, ("rateLimit",), NoSettings),
        PolicyOffer("budgets", Stage.ADMIT, 60, BudgetPolicy, (), declared.BudgetsSettings),
        PolicyOffer("loops", Stage.ADMIT, 70, LoopPolicy, (), declared.LoopsSettings),
        PolicyOffer("clamping", Stage.SHAPE, 10, TopKPolicy, (), declared.ClampingSettings),
        PolicyOffer(
            "confirmation", Stage.SHAPE, 20, ConfirmationPolicy, confirms, declared.ConfirmationSettings
        ),
        PolicyOffer("recovery", Stage.SHAPE, 30, RetryPolicy, (), declared.RecoverySettings),
        PolicyOffer("latency", Stage.SHAPE, 40, lambda *_: LatencyPolicy(), (), NoSettings),
    ]


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Offer the capability `bans`, with which a tool can ban its user."""
    from jackfield.settings import NoSettings

    return [CapabilityOffer("bans", _bans, settings=NoSettings)]


def _bans(settings: object, services: Services) -> Bans:  # noqa: ARG001
    from jackfield_policies.access import Bans

    return Bans(services.store)


@hookimpl
def jackfield_commands() -> Iterable[CommandOffer]:
    """Offer the command `jackfield bans`, with which an operator lists and lifts bans."""
    return [CommandOffer("bans", "List and lift bans.", _bans_command)]


def _bans_command() -> click.Command:
    from jackfield_policies.commands import bans

    return bans

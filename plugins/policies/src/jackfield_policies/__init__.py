"""The standard policies, offered in their order; each is a module of one decision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, CommandOffer, PluginSettings, PolicyOffer, Services, Stage
from jackfield.settings import SettingsError

if TYPE_CHECKING:
    import click

    from jackfield_policies.bans import Bans


@hookimpl
def jackfield_policies() -> Iterable[PolicyOffer]:
    """Every policy, with its place in the chain."""
    # Here, because a plugin is also loaded for its commands, and a policy brings in the path of a call.
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

    return [
        PolicyOffer("duplicates", Stage.ADMIT, 10, Duplicates),
        PolicyOffer("modes", Stage.ADMIT, 20, Modes, enforces=("allowedModes",)),
        PolicyOffer("bans", Stage.ADMIT, 30, BanPolicy),
        PolicyOffer("availability", Stage.ADMIT, 40, Availability, enforces=("availability",)),
        PolicyOffer("rate_limits", Stage.ADMIT, 50, RateLimits, enforces=("rateLimit",)),
        PolicyOffer("budgets", Stage.ADMIT, 60, Budgets),
        PolicyOffer("loops", Stage.ADMIT, 70, Loops),
        PolicyOffer("clamping", Stage.SHAPE, 10, Clamping),
        PolicyOffer("confirmation", Stage.SHAPE, 20, Confirmation, enforces=("requiresConfirmation",)),
        PolicyOffer("recovery", Stage.SHAPE, 30, Recovery),
        PolicyOffer("latency", Stage.SHAPE, 40, Latency),
    ]


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """What a tool needs to ban somebody."""
    return [CapabilityOffer("bans", _bans)]


def _bans(settings: PluginSettings, services: Services) -> Bans:
    from jackfield_policies.bans import Bans

    if settings:
        raise SettingsError(f"[capabilities.bans] has no setting {min(settings)!r}; there are none")
    return Bans(services.store)


@hookimpl
def jackfield_commands() -> Iterable[CommandOffer]:
    """What whoever runs a host needs to see bans and to lift one."""
    return [CommandOffer("bans", "See who is banned, and lift a ban.", _bans_command)]


def _bans_command() -> click.Command:
    from jackfield_policies.commands import bans

    return bans

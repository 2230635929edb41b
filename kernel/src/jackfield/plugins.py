"""Loads plugins and calls their hooks, each separately, so that a broken plugin does not affect others."""

from __future__ import annotations

import importlib
import inspect
import keyword
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import is_dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import pluggy

from jackfield import hookspecs, offers
from jackfield.contract.context import ToolContext
from jackfield.distributions import EntryPoint
from jackfield.offers import CapabilityOffer, EndpointOffer, Offer, PolicyOffer, ToolOffer

OFFER_TYPES: dict[str, type] = {
    "jackfield_tools": offers.ToolOffer,
    "jackfield_tool_listings": offers.ToolListingOffer,
    "jackfield_schema_adapters": offers.SchemaAdapterOffer,
    "jackfield_policies": offers.PolicyOffer,
    "jackfield_intent_handlers": offers.IntentHandlerOffer,
    "jackfield_capabilities": offers.CapabilityOffer,
    "jackfield_transports": offers.TransportOffer,
    "jackfield_stores": offers.StoreOffer,
    "jackfield_observers": offers.ObserverOffer,
    "jackfield_endpoints": offers.EndpointOffer,
    "jackfield_commands": offers.CommandOffer,
}
"""The type of offer that each hook returns."""

_PREFIX = re.compile(r"/|(/[A-Za-z0-9._~-]+)+")


class PluginFaultKind(StrEnum):
    """The kinds of plugin faults."""

    BROKEN = "it cannot be loaded, or a hook raises an exception"
    UNKNOWN_HOOK = "it implements a hook that does not exist"
    BAD_OFFER = "a hook returns something that is not a valid offer"
    NAME_TAKEN = "another plugin offers the same name"
    BAD_CAPABILITY_NAME = "a capability has a name that no handler can use"
    UNMARKED_HOOK = "a function is named like a hook but not marked as one"


class PluginFault(NamedTuple):
    """One fault of one plugin."""

    kind: PluginFaultKind
    plugin: EntryPoint
    message: str


class RegisteredOffer(NamedTuple):
    """An offer, and the plugin that returned it."""

    hook: str
    offer: Offer
    plugin: EntryPoint

    @property
    def name(self) -> str:
        """The name of the offer."""
        return self.offer.tool_id if isinstance(self.offer, ToolOffer) else self.offer.name


class Plugins(NamedTuple):
    """All plugins that could be loaded, with their offers, in the same order on every machine."""

    loaded: tuple[EntryPoint, ...]
    offered: tuple[RegisteredOffer, ...]
    faults: tuple[PluginFault, ...]

    def of(self, hook: str) -> tuple[RegisteredOffer, ...]:
        """Return the offers of one hook."""
        return tuple(offered for offered in self.offered if offered.hook == hook)

    def policy_chain(self) -> tuple[tuple[PolicyOffer, EntryPoint], ...]:
        """Return the policies in the order of the chain."""
        chain = [(each.offer, each.plugin) for each in self.offered if isinstance(each.offer, PolicyOffer)]
        return tuple(sorted(chain, key=lambda link: (link[0].stage, link[0].rank, link[0].name)))


def load(entries: Iterable[EntryPoint], hooks: Collection[str] = tuple(OFFER_TYPES)) -> Plugins:
    """Import the plugins that the entry points name, and call each hook in `hooks` once (default: all)."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    registered: list[tuple[EntryPoint, Any]] = []
    faults: list[PluginFault] = []
    for entry in entries:
        try:
            plugin = _resolve(entry.value)
            manager.register(plugin, name=f"{entry.distribution.name}:{entry.name}")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin is third-party code
            faults.append(PluginFault(PluginFaultKind.BROKEN, entry, f"{type(error).__name__}: {error}"))
            continue
        faults += _unknown_hooks(manager, plugin, entry)
        faults += _unmarked_hooks(plugin, entry)
        registered.append((entry, plugin))
    offered: list[RegisteredOffer] = []
    for entry, plugin in registered:
        others = [other for _, other in registered if other is not plugin]
        for hook in hooks:
            try:
                answers = manager.subset_hook_caller(hook, others)()
                offered += [RegisteredOffer(hook, offer, entry) for answer in answers for offer in answer]
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin is third-party code
                message = f"{hook} raised {type(error).__name__}: {error}"
                faults.append(PluginFault(PluginFaultKind.BROKEN, entry, message))
    valid, offer_faults = _check_offers(offered)
    valid.sort(key=lambda each: (list(OFFER_TYPES).index(each.hook), each.name, each.plugin))
    return Plugins(tuple(entry for entry, _ in registered), tuple(valid), (*faults, *offer_faults))


def _resolve(value: str) -> Any:
    module, _, attribute = value.partition(":")
    target: Any = importlib.import_module(module.strip())
    for part in filter(None, attribute.strip().split(".")):
        target = getattr(target, part)
    return target() if isinstance(target, type) else target


def _unknown_hooks(manager: pluggy.PluginManager, plugin: Any, entry: EntryPoint) -> Iterator[PluginFault]:
    for caller in manager.get_hookcallers(plugin) or []:
        if not caller.has_spec():
            from difflib import get_close_matches

            close = get_close_matches(caller.name, OFFER_TYPES, 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            yield PluginFault(PluginFaultKind.UNKNOWN_HOOK, entry, f"{caller.name} is not a hook{meant}")


def _unmarked_hooks(plugin: Any, entry: EntryPoint) -> Iterator[PluginFault]:
    """Yield a fault for each function that pluggy ignores although it is named like a hook."""
    for name in dir(plugin):
        if not name.startswith("jackfield_"):
            continue
        function = getattr(plugin, name, None)
        if not inspect.isroutine(function) or getattr(function, "__module__", "") == hookspecs.__name__:
            continue
        if not hasattr(function, f"{hookspecs.PROJECT}_impl"):
            message = f"{name} has no @hookimpl, so it is never called"
            yield PluginFault(PluginFaultKind.UNMARKED_HOOK, entry, message)


def _capability_problem(name: str) -> str | None:
    """Return why handlers cannot use a capability as `ctx.NAME`."""
    if not name.isidentifier() or keyword.iskeyword(name):
        return "is not an identifier"
    if name.startswith("_"):
        return "starts with an underscore"
    return "is a member of every context" if name in vars(ToolContext) else None


def _has_stage_and_rank(offer: Any) -> bool:
    return isinstance(offer.stage, offers.Stage) and isinstance(offer.rank, int)


def _endpoint_problem(offer: EndpointOffer) -> str | None:
    if not _PREFIX.fullmatch(offer.prefix):
        return f"needs a prefix such as /reports, not {offer.prefix!r}"
    if offer.auth not in ("user", "operator", "public"):
        return f"needs `auth` to be user, operator or public, not {offer.auth!r}"
    return None


def _has_valid_settings(offer: Any) -> bool:
    declaration = getattr(offer, "settings", None)
    return declaration is None or (isinstance(declaration, type) and is_dataclass(declaration))


def _check_offers(offered: list[RegisteredOffer]) -> tuple[list[RegisteredOffer], list[PluginFault]]:
    """Return the offers that are valid and have a unique name, and the faults of the others."""
    faults: list[PluginFault] = []
    by_name: dict[tuple[str, str], list[RegisteredOffer]] = {}
    for each in offered:
        kind = OFFER_TYPES[each.hook]
        if not isinstance(each.offer, kind):
            message = f"{each.hook} returned {type(each.offer).__name__} instead of {kind.__name__}"
            faults.append(PluginFault(PluginFaultKind.BAD_OFFER, each.plugin, message))
        elif not each.name:
            message = f"{each.hook} returned an offer without a name"
            faults.append(PluginFault(PluginFaultKind.BAD_OFFER, each.plugin, message))
        elif isinstance(each.offer, PolicyOffer) and not _has_stage_and_rank(each.offer):
            message = f"{each.name!r} needs a Stage as its stage and an integer as its rank"
            faults.append(PluginFault(PluginFaultKind.BAD_OFFER, each.plugin, message))
        elif isinstance(each.offer, EndpointOffer) and (problem := _endpoint_problem(each.offer)):
            faults.append(PluginFault(PluginFaultKind.BAD_OFFER, each.plugin, f"{each.name!r} {problem}"))
        elif isinstance(each.offer, CapabilityOffer) and (problem := _capability_problem(each.name)):
            message = f"the capability {each.name!r} {problem}"
            faults.append(PluginFault(PluginFaultKind.BAD_CAPABILITY_NAME, each.plugin, message))
        elif not _has_valid_settings(each.offer):
            message = f"{each.name!r} needs a dataclass as its settings"
            faults.append(PluginFault(PluginFaultKind.BAD_OFFER, each.plugin, message))
        else:
            by_name.setdefault((each.hook, each.name), []).append(each)
    for (hook, name), claimants in by_name.items():
        if len(claimants) > 1:
            owners = " and by ".join(f"{claim.plugin.distribution}" for claim in claimants)
            message = f"{hook}: {name!r} is offered by {owners}"
            faults.append(PluginFault(PluginFaultKind.NAME_TAKEN, claimants[0].plugin, message))
    return [claimants[0] for claimants in by_name.values() if len(claimants) == 1], faults

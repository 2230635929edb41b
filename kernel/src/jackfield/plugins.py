"""Loading plugins and asking them, each on its own, so that a broken one hides nobody else."""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import is_dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import pluggy

from jackfield import hookspecs, offers
from jackfield.distributions import EntryPoint
from jackfield.offers import EndpointOffer, Offer, PolicyOffer, ToolOffer

OFFER_TYPES: dict[str, type] = {
    "jackfield_tools": offers.ToolOffer,
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
"""The offer that each hook asks for."""

_PREFIX = re.compile(r"/|(/[A-Za-z0-9._~-]+)+")


class PluginFaultKind(StrEnum):
    """What can be wrong with a plugin."""

    BROKEN = "it cannot be loaded, or fails when it is asked"
    UNKNOWN_HOOK = "it answers a question that nobody asks"
    BAD_OFFER = "its answer is not an offer of the right kind"
    NAME_TAKEN = "another plugin offers the same name"


class PluginFault(NamedTuple):
    """One thing that is wrong with one plugin."""

    kind: PluginFaultKind
    plugin: EntryPoint
    message: str


class RegisteredOffer(NamedTuple):
    """An offer and the plugin it comes from."""

    hook: str
    offer: Offer
    plugin: EntryPoint

    @property
    def name(self) -> str:
        """The name by which the offer is known."""
        return self.offer.tool_id if isinstance(self.offer, ToolOffer) else self.offer.name


class Plugins(NamedTuple):
    """Every plugin that could be loaded and what it offers, in an order that is the same on every machine."""

    loaded: tuple[EntryPoint, ...]
    offered: tuple[RegisteredOffer, ...]
    faults: tuple[PluginFault, ...]

    def of(self, hook: str) -> tuple[RegisteredOffer, ...]:
        """The answers to one question."""
        return tuple(offered for offered in self.offered if offered.hook == hook)

    def policy_chain(self) -> tuple[tuple[PolicyOffer, EntryPoint], ...]:
        """The policies in the order in which every call meets them."""
        chain = [(each.offer, each.plugin) for each in self.offered if isinstance(each.offer, PolicyOffer)]
        return tuple(sorted(chain, key=lambda link: (link[0].stage, link[0].rank, link[0].name)))


def load(entries: Iterable[EntryPoint], hooks: Collection[str] = tuple(OFFER_TYPES)) -> Plugins:
    """Import the plugins that entry points name, and ask each these questions once, by default every one."""
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
    sound, unsound = _sound(offered)
    sound.sort(key=lambda each: (list(OFFER_TYPES).index(each.hook), each.name, each.plugin))
    return Plugins(tuple(entry for entry, _ in registered), tuple(sound), (*faults, *unsound))


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


def _is_placed(offer: Any) -> bool:
    return isinstance(offer.stage, offers.Stage) and isinstance(offer.rank, int)


def _wrong_endpoint(offer: EndpointOffer) -> str | None:
    if not _PREFIX.fullmatch(offer.prefix):
        return f"needs a prefix such as /reports, not {offer.prefix!r}"
    if offer.auth not in ("user", "operator", "public"):
        return f"needs `auth` to be user, operator or public, not {offer.auth!r}"
    return None


def _is_declared(offer: Any) -> bool:
    declaration = getattr(offer, "settings", None)
    return declaration is None or (isinstance(declaration, type) and is_dataclass(declaration))


def _sound(offered: list[RegisteredOffer]) -> tuple[list[RegisteredOffer], list[PluginFault]]:
    """The offers that are of the right kind and alone in having their name."""
    faults: list[PluginFault] = []
    by_name: dict[tuple[str, str], list[RegisteredOffer]] = {}
    for each in offered:
        kind = OFFER_TYPES[each.hook]
        if not isinstance(each.offer, kind):
            message = f"{each.hook} returned {type(each.offer).__name__} instead of {kind.__name__}"
            faults.append(PluginFault(PluginFaultKind.BAD_OFFER, each.plugin, message))
        elif isinstance(each.offer, PolicyOffer) and not _is_placed(each.offer):
            message = f"{each.name!r} needs a Stage and a whole number as its rank"
            faults.append(PluginFault(PluginFaultKind.BAD_OFFER, each.plugin, message))
        elif isinstance(each.offer, EndpointOffer) and (wrong := _wrong_endpoint(each.offer)):
            faults.append(PluginFault(PluginFaultKind.BAD_OFFER, each.plugin, f"{each.name!r} {wrong}"))
        elif not _is_declared(each.offer):
            message = f"{each.name!r} needs a dataclass as its settings"
            faults.append(PluginFault(PluginFaultKind.BAD_OFFER, each.plugin, message))
        elif not each.name:
            message = f"{each.hook} returned an offer without a name"
            faults.append(PluginFault(PluginFaultKind.BAD_OFFER, each.plugin, message))
        else:
            by_name.setdefault((each.hook, each.name), []).append(each)
    for (hook, name), claimants in by_name.items():
        if len(claimants) > 1:
            owners = " and by ".join(f"{claim.plugin.distribution}" for claim in claimants)
            message = f"{hook}: {name!r} is offered by {owners}"
            faults.append(PluginFault(PluginFaultKind.NAME_TAKEN, claimants[0].plugin, message))
    return [claimants[0] for claimants in by_name.values() if len(claimants) == 1], faults

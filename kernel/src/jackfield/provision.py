"""What the plugins of a snapshot give a deployment: each thing made once, as its settings say."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from difflib import get_close_matches
from functools import cached_property
from typing import Any, TypeVar

from jackfield.contract.snapshot import FrozenTool, Snapshot
from jackfield.governance import Check
from jackfield.installed import PLUGINS, Distribution, Entry
from jackfield.offers import CapabilityOffer, PluginSettings, Services, StoreOffer, TransportOffer
from jackfield.packages import drift
from jackfield.plugins import Offered, Plugins, load
from jackfield.registry.registry import Deployment, RegistryError
from jackfield.settings import Mistakes, Settings, SettingsError
from jackfield.store import MemoryStore, Store, StoreUnavailableError
from jackfield.transport.protocol import Transport

_log = logging.getLogger(__name__)

_HOOKS = {
    "policies": "jackfield_policies",
    "intents": "jackfield_intent_handlers",
    "capabilities": "jackfield_capabilities",
    "stores": "jackfield_stores",
    "observers": "jackfield_observers",
    "transports": "jackfield_transports",
}
"""The question whose answers each kind of table sets up."""

# What is made from an offer has to have these, or it would fail in the middle of a call.
_SHAPES = {
    "policies": ("concerns", "apply"),
    "intents": ("refusal", "apply"),
    "observers": ("call_finished", "session_opened", "turn_began", "session_ended", "close"),
}


_Made = TypeVar("_Made")


class Provision:
    """The plugins that a snapshot names, not those that happen to be installed, and their settings."""

    def __init__(self, plugins: Plugins, settings: Settings) -> None:
        self.plugins = plugins
        self.mistakes = Mistakes()
        """What plugins cannot use of their settings; to be told before anything that was made is used."""
        self._held = AsyncExitStack()
        self._settings = settings

    @classmethod
    def of(cls, snapshot: Snapshot, settings: Settings) -> Provision:
        """Import the plugins; one that is not what was frozen is fatal in development."""
        entries = []
        for plugin in snapshot.wire["plugins"]:
            owner: Mapping[str, Any] = plugin["distribution"]
            package = plugin["value"].partition(":")[0].partition(".")[0]
            if differs := drift(package, owner["version"], owner["contentHash"]):
                message = f"plugin {owner['name']} {differs}"
                if settings.deployment == Deployment.DEVELOPMENT:
                    raise RegistryError(f"{message}; run `jackfield build`")
                _log.error(message)
            distribution = Distribution(owner["name"], owner["version"])
            entries.append(Entry(PLUGINS, plugin["name"], plugin["value"], distribution))
        plugins = load(entries)
        for complaint in plugins.complaints:
            raise RegistryError(f"plugin {complaint.plugin.distribution}: {complaint.message}")
        provision = cls(plugins, settings)
        provision.note_unknown_tables()
        return provision

    @property
    def store_name(self) -> str:
        """The store by its name."""
        offered = {each.name for each in self.plugins.of("jackfield_stores")}
        return self._settings.store or ("sqlite" if "sqlite" in offered else "memory")

    def store(self, *, create: bool = True) -> Store:
        """The store the settings name.

        One that does not exist yet is created in development, unless `create` is false. In production that
        is one of the `mistakes`, to be told with the others before the store is used. A store that was not
        created refuses every operation.
        """
        if self.store_name == "memory":
            return self.hold(MemoryStore())
        offer, settings = self.store_offer()
        try:
            store = self.hold(offer.create(settings))
        except ValueError as error:
            raise SettingsError(f"[stores.{offer.name}]: {error}") from None
        with self.mistakes:
            self._require_store(offer, settings, create=create)
        return store

    def store_missing(self) -> str | None:
        """Why the store cannot be opened as it is, and what to do; None when it can."""
        if self.store_name == "memory":
            return None
        offer, settings = self.store_offer()
        try:
            return offer.missing(settings)
        except ValueError as error:
            raise SettingsError(f"[stores.{offer.name}]: {error}") from None

    def store_offer(self) -> tuple[StoreOffer, PluginSettings]:
        """The offer of the store the settings name, and what they say about it; `memory` has none."""
        offers = {each.name: each.offer for each in self.plugins.of("jackfield_stores")}
        offer = offers.get(self.store_name)
        if not isinstance(offer, StoreOffer):
            known = ", ".join(["memory", *offers])
            raise SettingsError(
                f"no installed plugin offers the store {self.store_name!r}; there are {known}"
            )
        return offer, self._settings.table("stores", self.store_name)

    def _require_store(self, offer: StoreOffer, settings: PluginSettings, *, create: bool) -> None:
        why = offer.missing(settings)
        if why is None:
            return
        # Only a person can tell a new deployment from one whose store was lost.
        if self._settings.deployment != Deployment.DEVELOPMENT or offer.initialise is None:
            raise SettingsError(why)
        if not create:
            return
        try:
            created = offer.initialise(settings)
        except StoreUnavailableError as error:
            # Another process that starts at the same time may have created it meanwhile.
            if offer.missing(settings) is not None:
                raise SettingsError(str(error)) from None
        else:
            _log.info(created)

    def transport(self) -> Transport:
        """The way to the provider that the settings name."""
        offer, settings = self._provider()
        transport: Transport = offer.create(settings)
        return transport

    def without_provider(self) -> str | None:
        """Why the provider that the settings name cannot be used here, as far as it is known unasked."""
        offer, settings = self._provider()
        return offer.unavailable(settings)

    def _provider(self) -> tuple[TransportOffer, PluginSettings]:
        offers = {each.name: each.offer for each in self.plugins.of("jackfield_transports")}
        name = self._settings.provider or ("local" if "local" in offers else "")
        offer = offers.get(name)
        if not isinstance(offer, TransportOffer):
            known = ", ".join(offers) or "none: install one, such as jackfield-transport-openai"
            wrong = f"no installed plugin offers the provider {name!r}" if name else "no `provider` is set"
            raise SettingsError(f"{wrong}; there are {known}")
        return offer, self._settings.table("transports", name)

    @cached_property
    def unavailable(self) -> Mapping[str, str]:
        """The capabilities that this deployment has not set up, each with the reason."""
        reasons: dict[str, str] = {}
        for offered in self.plugins.of("jackfield_capabilities"):
            offer = offered.offer
            if not self._settings.enabled("capabilities", offered.name):
                reasons[offered.name] = f"[capabilities.{offered.name}] is switched off"
            elif isinstance(offer, CapabilityOffer):
                with self.mistakes:
                    reason = offer.unavailable(self._settings.table("capabilities", offered.name))
                    if reason:
                        reasons[offered.name] = reason
        return reasons

    def withheld(self, tool: FrozenTool) -> str | None:
        """Why a tool cannot be had in this deployment, as a clause that follows its name."""
        for name in tool.manifest.requires:
            if name in self.unavailable:
                return f"needs {name}: {self.unavailable[name]}"
        return None

    def made(self, kind: str, services: Services) -> dict[str, Any]:
        """Everything of one kind that is switched on and can be had, by name."""
        left_out = self.unavailable if kind == "capabilities" else {}
        made: dict[str, Any] = {}
        for each in self.plugins.of(_HOOKS[kind]):
            if self._settings.enabled(kind, each.name) and each.name not in left_out:
                with self.mistakes:
                    made[each.name] = self._make(each, kind, services)
        return made

    def _make(self, offered: Offered, kind: str, services: Services) -> Any:
        """What an offer makes; a plugin that cannot is named, with the cause."""
        owner = f"plugin {offered.plugin.distribution}: {offered.name}"
        offer: Any = offered.offer
        try:
            made = offer.create(self._settings.table(kind, offered.name), services)
        except SettingsError:
            raise
        except Exception as error:
            raise RegistryError(f"{owner} cannot be made: {type(error).__name__}: {error}") from error
        shape = () if isinstance(made, Check) else _SHAPES.get(kind, ())
        missing = [name for name in shape if not callable(getattr(made, name, None))]
        if missing:
            raise RegistryError(f"{owner} has no {' and no '.join(missing)}")
        return self.hold(made) if kind in {"capabilities", "observers"} else made

    def hold(self, made: _Made) -> _Made:
        """Close this with the rest, where it can be closed."""
        if close := getattr(made, "close", None):
            self._held.push_async_callback(close)
        return made

    async def close(self) -> None:
        """Let everything go that was made, the last first and the store last, whatever one of them raises."""
        await self._held.aclose()

    def note_unknown_tables(self) -> None:
        """A table for something that nobody offers is a mistake that would otherwise go unnoticed."""
        for kind, tables in self._settings.tables.items():
            known = [each.name for each in self.plugins.of(_HOOKS[kind])]
            for name in sorted(set(tables).difference(known)):
                close = get_close_matches(name, known, 1)
                offered = f"offered are {', '.join(known) or 'none'}"
                meant = f"did you mean [{kind}.{close[0]}]?" if close else offered
                self.mistakes.note(f"[{kind}.{name}]: no installed plugin offers that; {meant}")

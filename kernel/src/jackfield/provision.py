"""What the plugins of a snapshot give a deployment: each thing made once, as its settings say."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from difflib import get_close_matches
from functools import cached_property
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from jackfield.contract.snapshot import FrozenTool, Snapshot
from jackfield.drift import Drift
from jackfield.governance import Check
from jackfield.installed import PLUGINS, Distribution, Entry
from jackfield.offers import (
    CapabilityOffer,
    Detected,
    Download,
    PluginSettings,
    StoreOffer,
    TransportOffer,
)
from jackfield.plugins import Offered, Plugins, load
from jackfield.registry.invoke import is_for_others
from jackfield.registry.registry import Deployment, RegistryError, compared
from jackfield.settings import AUTO, Mistakes, Settings, SettingsError
from jackfield.store import MemoryStore, Store, StoreUnavailableError
from jackfield.transport.protocol import Transport, is_described

_log = logging.getLogger(__name__)

_HOOKS = {
    "policies": "jackfield_policies",
    "intents": "jackfield_intent_handlers",
    "capabilities": "jackfield_capabilities",
    "stores": "jackfield_stores",
    "observers": "jackfield_observers",
    "transports": "jackfield_transports",
    "endpoints": "jackfield_endpoints",
}
"""The question whose answers each kind of table sets up."""

# What is made from an offer has to have these, or it would fail in the middle of a call.
_SHAPES = {
    "policies": ("concerns", "apply"),
    "intents": ("refusal", "apply"),
    "observers": ("call_finished", "session_opened", "turn_began", "session_ended", "close"),
}

# A host without one of these would govern or record calls otherwise than the registry says.
_GOVERNING = ("jackfield_policies", "jackfield_intent_handlers", "jackfield_stores")

_Made = TypeVar("_Made")


class LeftOut(NamedTuple):
    """A plugin that production does not load, because its code is not what was frozen."""

    distribution: str
    offers: Mapping[str, Sequence[str]]
    why: str

    def __str__(self) -> str:
        return f"plugin {self.distribution} {self.why}"


class ProviderDownload(NamedTuple):
    """A download that gives a provider which would have been preferred."""

    provider: str
    hint: str
    """The hint that it makes unnecessary."""
    download: Download


class ProviderChoice(NamedTuple):
    """Which transport sessions use, and why."""

    name: str
    reason: str
    """A clause, such as "OPENAI_API_KEY is set"."""
    detected: bool = False
    """False where the setting `provider` names it."""
    hints: tuple[str, ...] = ()
    """What to do to get a provider that would have been preferred; each begins with a verb."""
    settings: PluginSettings = MappingProxyType({})
    """What was detected besides the transport's table."""
    downloads: tuple[ProviderDownload, ...] = ()
    """What the host can fetch to get a provider that would have been preferred."""

    def now(self, transport: Transport) -> ProviderChoice:
        """The choice as it is now: what the transport says of itself, without hints that were followed."""
        followed = {each.hint for each in self.downloads if each.download.is_complete()}
        hints = tuple(hint for hint in self.hints if hint not in followed)
        if not is_described(transport):
            return self._replace(hints=hints)
        return self._replace(reason=f"{self.reason}; {transport.describe()}", hints=hints)


class Provision:
    """The plugins that a snapshot names, not those that happen to be installed, and their settings."""

    def __init__(self, plugins: Plugins, settings: Settings, left_out: Sequence[LeftOut] = ()) -> None:
        self.plugins = plugins
        self.left_out = tuple(left_out)
        self.mistakes = Mistakes()
        """What plugins cannot use of their settings; to be told before anything that was made is used."""
        self._held = AsyncExitStack()
        self._settings = settings
        self._choosing = Lock()
        self._choice: ProviderChoice | None = None

    @classmethod
    def of(cls, snapshot: Snapshot, settings: Settings, drift: Drift | None = None) -> Provision:
        """Import the plugins that are what was frozen.

        One that is not stops development. In production it stops the start if it governs or records calls;
        otherwise it is not imported, and what it offers is not there.
        """
        drift = drift or compared(snapshot, Deployment(settings.deployment))
        entries = []
        left_out = []
        for plugin in snapshot.wire["plugins"]:
            owner: Mapping[str, Any] = plugin["distribution"]
            if why := drift.of_plugin(plugin):
                absent = LeftOut(owner["name"], plugin["offers"], why)
                _refuse(absent, plugin, settings)
                _log.error("%s: it is left out", absent)
                left_out.append(absent)
                continue
            distribution = Distribution(owner["name"], owner["version"])
            entries.append(Entry(PLUGINS, plugin["name"], plugin["value"], distribution))
        plugins = load(entries)
        for complaint in plugins.complaints:
            raise RegistryError(f"plugin {complaint.plugin.distribution}: {complaint.message}")
        provision = cls(plugins, settings, left_out)
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
            return self._closed_last(MemoryStore())
        offer, settings = self.store_offer()
        try:
            store = self._closed_last(offer.create(settings))
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

    def _closed_last(self, store: Store) -> Store:
        # Made first, so closed last. What it could not write is for whoever closes to know.
        self._held.push_async_callback(store.close)
        return store

    def transport(self) -> Transport:
        """The way to the provider that was chosen."""
        offer, settings = self._provider()
        transport: Transport = offer.create(settings)
        return transport

    def without_provider(self) -> str | None:
        """Why the provider that was chosen cannot be used here, as far as it is known unasked."""
        offer, settings = self._provider()
        return offer.unavailable(settings)

    @property
    def provider_choice(self) -> ProviderChoice:
        """The provider and why it was chosen: decided when first asked for, and kept.

        With `provider = "auto"` the first access may block for a moment: call it in a thread.
        """
        with self._choosing:
            if self._choice is None:
                name = self._settings.provider
                self._choice = self._named(name) if name not in ("", AUTO) else self._detected()
            return self._choice

    def _provider(self) -> tuple[TransportOffer, PluginSettings]:
        choice = self.provider_choice
        return self._transports[choice.name], {
            **self._settings.table("transports", choice.name),
            **choice.settings,
        }

    @cached_property
    def _transports(self) -> Mapping[str, TransportOffer]:
        offers = (each.offer for each in self.plugins.of("jackfield_transports"))
        return {offer.name: offer for offer in offers if isinstance(offer, TransportOffer)}

    def _named(self, name: str) -> ProviderChoice:
        if name not in self._transports:
            known = ", ".join(self._transports) or "none: install one, such as jackfield-transport-openai"
            wrong = f"no installed plugin offers the provider {name!r}"
            raise SettingsError(f"{self._absent('jackfield_transports', name) or wrong}; there are {known}")
        return ProviderChoice(name, "the setting `provider` names it")

    def _detected(self) -> ProviderChoice:
        asked = sorted(
            (detector.rank, name, position)
            for name, offer in self._transports.items()
            if self._settings.enabled("transports", name)
            for position, detector in enumerate(offer.detectors)
        )
        hints: list[str] = []
        downloads: list[ProviderDownload] = []
        for _, name, position in asked:
            detector = self._transports[name].detectors[position]
            try:
                found = detector.detect(self._settings.table("transports", name))
            except SettingsError:
                raise
            except Exception:  # noqa: BLE001 - a plugin is third-party code
                _log.exception(
                    "the transport %s failed while it looked for its provider; it is skipped", name
                )
                continue
            if isinstance(found, Detected):
                _log.debug("the provider is %s: %s", name, found.reason)
                return ProviderChoice(
                    name, found.reason, True, tuple(hints), found.settings, tuple(downloads)
                )
            hints.append(found.hint)
            if found.download is not None:
                downloads.append(ProviderDownload(name, found.hint, found.download))
        absent = [
            f"{name}: {each}"
            for each in self.left_out
            for name in each.offers.get("jackfield_transports", ())
        ]
        unasked = [name for name, offer in self._transports.items() if not offer.detectors]
        named = [f"name one with the setting `provider`: {', '.join(unasked)}"] if unasked else []
        todo = [*absent, *hints, *named] or [
            "install one, such as jackfield-transport-openai, and `jackfield build`"
        ]
        raise SettingsError(f"no provider can be used here: {'; or '.join(todo)}")

    def _absent(self, hook: str, name: str) -> str:
        """Why something is not there that the snapshot has, if its plugin was left out."""
        return next((f"{name}: {each}" for each in self.left_out if name in each.offers.get(hook, ())), "")

    @cached_property
    def unavailable(self) -> Mapping[str, str]:
        """The capabilities that this deployment does not have, each with the reason."""
        reasons = {
            name: str(each)
            for each in self.left_out
            for name in each.offers.get("jackfield_capabilities", ())
        }
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

    def made(self, kind: str, services: Any) -> dict[str, Any]:
        """Everything of one kind that is switched on and can be had, by name."""
        left_out = self.unavailable if kind == "capabilities" else {}
        made: dict[str, Any] = {}
        for each in self.plugins.of(_HOOKS[kind]):
            if self._settings.enabled(kind, each.name) and each.name not in left_out:
                with self.mistakes:
                    made[each.name] = self._make(each, kind, services)
        return made

    def _make(self, offered: Offered, kind: str, services: Any) -> Any:
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
        """Close this observer or capability with the rest, where it can be closed."""
        if close := getattr(made, "close", None):
            self._held.push_async_callback(
                _close, f"{type(made).__module__}.{type(made).__qualname__}", close
            )
        return made

    async def close(self) -> None:
        """Close everything that was made, the last first and the store last; only the store may raise."""
        await self._held.aclose()

    def owner(self, kind: str, name: str) -> str:
        """The distribution, with its version, whose plugin offers something."""
        return next(
            str(each.plugin.distribution) for each in self.plugins.of(_HOOKS[kind]) if each.name == name
        )

    def note_unknown_tables(self) -> None:
        """A table for something that nobody offers is a mistake that would otherwise go unnoticed."""
        for kind, tables in self._settings.tables.items():
            known = [each.name for each in self.plugins.of(_HOOKS[kind])]
            absent = [name for each in self.left_out for name in each.offers.get(_HOOKS[kind], ())]
            for name in sorted(set(tables).difference(known, absent)):
                close = get_close_matches(name, known, 1)
                offered = f"offered are {', '.join(known) or 'none'}"
                meant = f"did you mean [{kind}.{close[0]}]?" if close else offered
                self.mistakes.note(f"[{kind}.{name}]: no installed plugin offers that; {meant}")


def _refuse(plugin: LeftOut, frozen: Mapping[str, Any], settings: Settings) -> None:
    """Stop at a drifted plugin that cannot be left out: any in development, those that govern everywhere."""
    if settings.deployment == Deployment.DEVELOPMENT:
        raise RegistryError(f"{plugin}; run `jackfield build`")
    offers = {hook: names for hook, names in plugin.offers.items() if hook in _GOVERNING and names}
    # Old snapshots do not say who observes; a plugin that offers nothing else may well do so.
    if frozen.get("observes", not any(plugin.offers.values())):
        offers["jackfield_observers"] = ()
    if offers:
        kinds = " and ".join(hook.removeprefix("jackfield_").replace("_", " ") for hook in offers)
        raise RegistryError(
            f"{plugin}; it provides {kinds}, without which nothing is served: reinstall what was frozen, or "
            "look at `jackfield check` and run `jackfield build`"
        )


async def _close(name: str, close: Callable[[], Awaitable[None]]) -> None:
    """Close something of a plugin's; if that fails, the rest is closed all the same."""
    try:
        await close()
    except BaseException as error:
        if is_for_others(error) or isinstance(error, SystemExit):
            raise
        _log.error("%s failed in close; everything else is closed", name, exc_info=error)

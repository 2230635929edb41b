"""What the plugins of a snapshot give a deployment: each thing made once, as its settings say."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property, partial
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from jackfield.contract.snapshot import FrozenTool, Snapshot, SnapshotError
from jackfield.distributions import PLUGINS, Distribution, EntryPoint
from jackfield.drift import Drift
from jackfield.governance import SyncPolicy
from jackfield.invocation import is_external_cancellation
from jackfield.offers import (
    CapabilityOffer,
    Detected,
    Download,
    PluginSettings,
    StoreOffer,
    TransportOffer,
)
from jackfield.plugins import Plugins, RegisteredOffer, load
from jackfield.registry.registry import Deployment, RegistryError, compared
from jackfield.settings import AUTO, Settings, SettingsError, SettingsFaults, merge_tables, read_offer
from jackfield.store import MemoryStore, Store, StoreUnavailableError
from jackfield.transport.protocol import Transport, is_described

_log = logging.getLogger(__name__)

HOOKS = {
    "policies": "jackfield_policies",
    "intents": "jackfield_intent_handlers",
    "capabilities": "jackfield_capabilities",
    "stores": "jackfield_stores",
    "observers": "jackfield_observers",
    "transports": "jackfield_transports",
    "endpoints": "jackfield_endpoints",
}
"""The hook of each kind of table."""

# What is made from an offer has to have these, or it would fail in the middle of a call.
_SHAPES = {
    "policies": ("applies_to", "apply"),
    "intents": ("refusal", "apply"),
    "observers": ("call_finished", "session_opened", "turn_began", "session_ended", "close"),
}

# A host without one of these would govern or record calls otherwise than the registry says.
_GOVERNING = ("jackfield_policies", "jackfield_intent_handlers", "jackfield_stores")

_Made = TypeVar("_Made")

_FAULTY: Any = object()
"""Stands for the settings of an offer whose table has faults."""


class WithheldPlugin(NamedTuple):
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


class PluginComponents:
    """The plugins that a snapshot names, not those that happen to be installed, and their settings."""

    def __init__(
        self,
        plugins: Plugins,
        settings: Settings,
        withheld: Sequence[WithheldPlugin] = (),
        faults: SettingsFaults | None = None,
    ) -> None:
        self.plugins = plugins
        self.withheld_plugins = tuple(withheld)
        self.faults = SettingsFaults() if faults is None else faults
        """The faults in the tables of all plugins, to be checked before anything is created."""
        self._held = AsyncExitStack()
        self._settings = settings
        self._choosing = Lock()
        self._choice: ProviderChoice | None = None
        self._read: dict[tuple[str, str], Any] = {}
        self._read_tables()

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        settings: Settings,
        drift: Drift | None = None,
        faults: SettingsFaults | None = None,
    ) -> PluginComponents:
        """Import the plugins that are what was frozen, and read the tables of all of them.

        One that is not stops development. In production it stops the start if it governs or records calls;
        otherwise it is not imported, and what it offers is not there.
        """
        drift = drift or compared(snapshot, Deployment(settings.deployment))
        entries = []
        withheld = []
        for plugin in snapshot.wire["plugins"]:
            owner: Mapping[str, Any] = plugin["distribution"]
            if why := drift.of_plugin(plugin):
                absent = WithheldPlugin(owner["name"], plugin["offers"], why)
                _refuse(absent, plugin, settings)
                _log.error("%s: it is left out", absent)
                withheld.append(absent)
                continue
            distribution = Distribution(owner["name"], owner["version"])
            entries.append(EntryPoint(PLUGINS, plugin["name"], plugin["value"], distribution))
        plugins = load(entries)
        for complaint in plugins.faults:
            raise RegistryError(f"plugin {complaint.plugin.distribution}: {complaint.message}")
        return cls(plugins, settings, withheld, faults)

    def _read_tables(self) -> None:
        """Read the table of every offer that is used; what else has a table is checked, too."""
        for kind, hook in HOOKS.items():
            tables = self._settings.tables.get(kind, {})
            for each in self.plugins.of(hook):
                # Of stores and transports one is used, and the others may lack settings that they require.
                used = kind not in ("stores", "transports") or each.name in tables
                if used and self._settings.enabled(kind, each.name):
                    self._settings_of(kind, each.offer)
        self._add_unknown_tables()

    def _settings_of(self, kind: str, offer: Any) -> Any:
        """What the functions of an offer receive; `_FAULTY` if its table has faults, which are added."""
        key = kind, offer.name
        if key not in self._read:
            self._read[key] = self._read_offer(kind, offer, self._settings.table(kind, offer.name))
        return self._read[key]

    def _read_offer(self, kind: str, offer: Any, table: PluginSettings) -> Any:
        found = SettingsFaults()
        read = read_offer(kind, offer, table, found)
        self.faults.add(str(found))
        return _FAULTY if found else read

    @property
    def store_name(self) -> str:
        """The store by its name."""
        offered = {each.name for each in self.plugins.of("jackfield_stores")}
        return self._settings.store or ("sqlite" if "sqlite" in offered else "memory")

    def check_store(self, *, create: bool = False) -> None:
        """Add a fault if the store can neither be opened nor created; with `create`, create it if needed."""
        if self.store_name == "memory":
            return
        found = self.faults.collect(self.store_offer)
        if found is None:
            return
        offer, settings = found
        try:
            why = offer.missing(settings)
        except StoreUnavailableError as error:
            why = str(error)
        else:
            if why and self._may_create(offer):
                why = None
                if create:
                    self.faults.collect(partial(self._create_store, offer, settings))
        if why:
            self.faults.add(why)

    def _may_create(self, offer: StoreOffer) -> bool:
        # Only a person can tell a new deployment from one whose store was lost.
        return offer.initialise is not None and _is_development(self._settings)

    def store(self) -> Store:
        """The store the settings name; development creates a missing one, production refuses to start."""
        if self.store_name == "memory":
            return self._closed_last(MemoryStore())
        offer, settings = self.store_offer()
        if why := offer.missing(settings):
            if not self._may_create(offer):
                raise SettingsError(why)
            self._create_store(offer, settings)
        try:
            return self._closed_last(offer.create(settings))
        except ValueError as error:
            raise SettingsError(f"[stores.{offer.name}]: {error}") from None

    def store_missing(self) -> str | None:
        """Why the store cannot be opened as it is, and what to do; None when it can."""
        if self.store_name == "memory":
            return None
        offer, settings = self.store_offer()
        return offer.missing(settings)

    def store_offer(self) -> tuple[StoreOffer, Any]:
        """The offer of the store the settings name, and its settings; `memory` has none."""
        offers = {each.name: each.offer for each in self.plugins.of("jackfield_stores")}
        offer = offers.get(self.store_name)
        if not isinstance(offer, StoreOffer):
            known = ", ".join(["memory", *offers])
            raise SettingsError(
                f"store: no installed plugin offers {self.store_name!r}; choose one of {known}"
            )
        return offer, self._usable("stores", offer)

    def _usable(self, kind: str, offer: Any) -> Any:
        """The settings of an offer; `SettingsError` with all faults if its table has any."""
        settings = self._settings_of(kind, offer)
        if settings is _FAULTY:
            self.faults.check()
        return settings

    def _create_store(self, offer: StoreOffer, settings: Any) -> None:
        if offer.initialise is None:
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

    def provider_unavailable_reason(self) -> str | None:
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

    def _provider(self) -> tuple[TransportOffer, Any]:
        choice = self.provider_choice
        offer = self._transports[choice.name]
        if not choice.settings:
            return offer, self._usable("transports", offer)
        table = merge_tables(self._settings.table("transports", choice.name), choice.settings)
        settings = self._read_offer("transports", offer, table)
        if settings is _FAULTY:
            self.faults.check()
        return offer, settings

    @cached_property
    def _transports(self) -> Mapping[str, TransportOffer]:
        offers = (each.offer for each in self.plugins.of("jackfield_transports"))
        return {offer.name: offer for offer in offers if isinstance(offer, TransportOffer)}

    def _named(self, name: str) -> ProviderChoice:
        if name not in self._transports:
            why = self._absent("jackfield_transports", name) or f"no installed plugin offers {name!r}"
            known = ", ".join(self._transports)
            fix = f"choose one of {known}" if known else "install one, such as jackfield-transport-openai"
            raise SettingsError(f"provider: {why}; {fix}")
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
            offer = self._transports[name]
            settings = self._settings_of("transports", offer)
            if settings is _FAULTY:
                continue
            try:
                found = offer.detectors[position].detect(settings)
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
        # With the faults out of its table, one of the transports may do.
        if any(self._read.get(("transports", name)) is _FAULTY for _, name, _ in asked):
            self.faults.check()
        absent = [
            f"{name}: {each}"
            for each in self.withheld_plugins
            for name in each.offers.get("jackfield_transports", ())
        ]
        unasked = [name for name, offer in self._transports.items() if not offer.detectors]
        named = [f"name one with the setting `provider`: {', '.join(unasked)}"] if unasked else []
        todo = [*absent, *hints, *named] or [
            "install one, such as jackfield-transport-openai, and `jackfield build`"
        ]
        raise SettingsError(f"provider: none can be used here; {'; or '.join(todo)}")

    def _absent(self, hook: str, name: str) -> str:
        """Why something is not there that the snapshot has, if its plugin was left out."""
        return next(
            (f"{name}: {each}" for each in self.withheld_plugins if name in each.offers.get(hook, ())), ""
        )

    @cached_property
    def unavailable(self) -> Mapping[str, str]:
        """The capabilities that this deployment does not have, each with the reason."""
        reasons = {
            name: str(each)
            for each in self.withheld_plugins
            for name in each.offers.get("jackfield_capabilities", ())
        }
        for offered in self.plugins.of("jackfield_capabilities"):
            offer = offered.offer
            if not self._settings.enabled("capabilities", offered.name):
                reasons[offered.name] = f"[capabilities.{offered.name}] is switched off"
            elif isinstance(offer, CapabilityOffer):
                settings = self._settings_of("capabilities", offer)
                if settings is _FAULTY:
                    continue
                if reason := self.faults.collect(partial(offer.unavailable, settings)):
                    reasons[offered.name] = reason
        return reasons

    def withheld(self, tool: FrozenTool) -> str | None:
        """Why a tool cannot be had in this deployment, as a clause that follows its name."""
        for name in tool.manifest.requires:
            if name in self.unavailable:
                return f"needs {name}: {self.unavailable[name]}"
        return None

    def made(self, kind: str, services: Any) -> dict[str, Any]:
        """Everything of one kind that is enabled and available, by name; faults in settings are added."""
        withheld = self.unavailable if kind == "capabilities" else {}
        made: dict[str, Any] = {}
        for each in self.plugins.of(HOOKS[kind]):
            if self._settings.enabled(kind, each.name) and each.name not in withheld:
                created = self.faults.collect(partial(self._make, each, kind, services))
                if created is not None:
                    made[each.name] = created
        return made

    def _make(self, offered: RegisteredOffer, kind: str, services: Any) -> Any:
        """What an offer makes; a plugin that cannot is named, with the cause."""
        owner = f"plugin {offered.plugin.distribution}: {offered.name}"
        offer: Any = offered.offer
        try:
            made = offer.create(self._usable(kind, offer), services)
        except SettingsError:
            raise
        except Exception as error:
            raise RegistryError(f"{owner} cannot be made: {type(error).__name__}: {error}") from error
        shape = () if isinstance(made, SyncPolicy) else _SHAPES.get(kind, ())
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
            str(each.plugin.distribution) for each in self.plugins.of(HOOKS[kind]) if each.name == name
        )

    def _add_unknown_tables(self) -> None:
        """A table for something that nobody offers is a fault that would otherwise go unnoticed."""
        from difflib import get_close_matches

        for kind, tables in self._settings.tables.items():
            known = [each.name for each in self.plugins.of(HOOKS[kind])]
            absent = [name for each in self.withheld_plugins for name in each.offers.get(HOOKS[kind], ())]
            for name in (name for name in tables if name not in (*known, *absent)):
                close = get_close_matches(name, known, 1)
                offered = f"known tables: {', '.join(f'[{kind}.{each}]' for each in known) or 'none'}"
                fix = f"did you mean [{kind}.{close[0]}]?" if close else offered
                self.faults.add(f"[{kind}.{name}]: no installed plugin offers this; {fix}")


def add_table_faults(settings: Settings, faults: SettingsFaults) -> None:
    """Add the faults in the tables of plugins, as far as there is a registry that names them."""
    try:
        PluginComponents.of(Snapshot.load(settings.registry), settings, faults=faults)
    except (SnapshotError, RegistryError):
        # The registry may be named by a setting that is faulty itself.
        return


def _is_development(settings: Settings) -> bool:
    return Deployment(settings.deployment) is Deployment.DEVELOPMENT


def _refuse(plugin: WithheldPlugin, frozen: Mapping[str, Any], settings: Settings) -> None:
    """Stop at a drifted plugin that cannot be left out: any in development, those that govern everywhere."""
    if _is_development(settings):
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
        if is_external_cancellation(error) or isinstance(error, SystemExit):
            raise
        _log.error("%s failed in close; everything else is closed", name, exc_info=error)

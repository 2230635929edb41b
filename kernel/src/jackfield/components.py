"""Creates each component of a deployment once, from the plugins of a snapshot and the settings."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property, partial
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from jackfield.contract.snapshot import FrozenTool, Snapshot, SnapshotError
from jackfield.distributions import PLUGINS, Distribution, EntryPoint, normalised
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
from jackfield.registry.registry import Deployment, RegistryError, drift_for
from jackfield.settings import (
    AUTO,
    NO_PROVIDER,
    Settings,
    SettingsError,
    SettingsFaults,
    merge_tables,
    read_offer,
)
from jackfield.settings.relative_paths import resolve_paths
from jackfield.signatures.requirement import load_snapshot
from jackfield.store import MemoryStore, Store, StoreUnavailableError
from jackfield.transport.no_provider import NoProvider
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
"""The hook for each kind of settings table."""

# Checked at startup, because a component without these methods would fail in the middle of a call.
_REQUIRED_METHODS = {
    "policies": ("applies_to", "apply"),
    "intents": ("refusal", "apply"),
    "observers": ("call_finished", "session_opened", "turn_began", "session_ended", "close"),
}

# Without these, a host would govern or record calls differently from what the registry says.
_GOVERNING = ("jackfield_policies", "jackfield_intent_handlers", "jackfield_stores")

_Component = TypeVar("_Component")

INSTALL_PROVIDER = "install a provider, such as jackfield-transport-openai, and run `jackfield build`"
"""How to get a provider if none is installed."""

_INVALID: Any = object()
"""The settings of an offer whose table has faults."""


class WithheldPlugin(NamedTuple):
    """A plugin that production does not load, because its code differs from the frozen code."""

    distribution: str
    offers: Mapping[str, Sequence[str]]
    reason: str

    def __str__(self) -> str:
        return f"plugin {self.distribution} {self.reason}"


class ProviderDownload(NamedTuple):
    """A download that makes a preferred provider available."""

    provider: str
    hint: str
    """The hint that no longer applies once the download is complete."""
    download: Download


class ProviderChoice(NamedTuple):
    """The transport that sessions use, and the reason; the name `none` means that conversations are off."""

    name: str
    reason: str
    """A clause, such as "OPENAI_API_KEY is set"."""
    detected: bool = False
    """False if the `provider` setting names the transport."""
    hints: tuple[str, ...] = ()
    """How to get a preferred provider; each hint begins with a verb."""
    settings: PluginSettings = MappingProxyType({})
    """Detected settings, which are merged into the transport's table."""
    downloads: tuple[ProviderDownload, ...] = ()
    """Downloads that make a preferred provider available."""

    def now(self, transport: Transport) -> ProviderChoice:
        """Return the choice with the transport's current description, without hints that no longer apply."""
        followed = {each.hint for each in self.downloads if each.download.is_complete()}
        hints = tuple(hint for hint in self.hints if hint not in followed)
        if not is_described(transport):
            return self._replace(hints=hints)
        return self._replace(reason=f"{self.reason}; {transport.describe()}", hints=hints)


class PluginComponents:
    """The plugins that a snapshot names, their settings, and the components created from them.

    Plugins that are installed but not named in the snapshot are not loaded.
    """

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
        """The faults in the tables of all plugins; check them before creating anything."""
        self._exit_stack = AsyncExitStack()
        self._settings = settings
        self._choice_lock = Lock()
        self._choice: ProviderChoice | None = None
        self._settings_by_offer: dict[tuple[str, str], Any] = {}
        self._read_tables()

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        settings: Settings,
        drift: Drift | None = None,
        faults: SettingsFaults | None = None,
    ) -> PluginComponents:
        """Import the plugins that match the snapshot, and read the settings tables of all of them.

        In development, a plugin that has drifted raises `RegistryError`. In production it does so only if
        the plugin governs or records calls; any other drifted plugin is not imported.
        """
        drift = drift or drift_for(snapshot, Deployment(settings.deployment))
        entries = []
        withheld = []
        for plugin in snapshot.wire["plugins"]:
            owner: Mapping[str, Any] = plugin["distribution"]
            if reason := drift.of_plugin(plugin):
                drifted = WithheldPlugin(owner["name"], plugin["offers"], reason)
                _check_withheld(drifted, plugin, settings)
                _log.error("%s: the plugin is not loaded", drifted)
                withheld.append(drifted)
                continue
            distribution = Distribution(owner["name"], owner["version"])
            entries.append(EntryPoint(PLUGINS, plugin["name"], plugin["value"], distribution))
        plugins = load(entries)
        for fault in plugins.faults:
            raise RegistryError(f"plugin {fault.plugin.distribution}: {fault.message}")
        return cls(plugins, settings, withheld, faults)

    def _read_tables(self) -> None:
        """Read the settings of every offer that is used or has a table."""
        for kind, hook in HOOKS.items():
            tables = self._settings.tables.get(kind, {})
            for each in self.plugins.of(hook):
                # Only one store and one transport are used; the others may lack required settings.
                used = kind not in ("stores", "transports") or each.name in tables
                if used and self._settings.enabled(kind, each.name):
                    self._settings_of(kind, each.offer)
        self._add_unknown_tables()

    def _settings_of(self, kind: str, offer: Any) -> Any:
        """Return the settings for an offer; if they have faults, add them and return `_INVALID`."""
        key = kind, offer.name
        if key not in self._settings_by_offer:
            self._settings_by_offer[key] = self._read_offer(
                kind, offer, self._settings.table(kind, offer.name)
            )
        return self._settings_by_offer[key]

    def _read_offer(self, kind: str, offer: Any, table: PluginSettings) -> Any:
        found = SettingsFaults()
        read = read_offer(kind, offer, table, found)
        self.faults.add(str(found))
        return _INVALID if found else read

    @property
    def store_name(self) -> str:
        """The name of the store."""
        offered = {each.name for each in self.plugins.of("jackfield_stores")}
        return self._settings.store or ("sqlite" if "sqlite" in offered else "memory")

    def check_store(self, *, create: bool = False) -> None:
        """Add a fault if the store can be neither opened nor created; with `create`, create it if needed."""
        if self.store_name == "memory":
            return
        found = self.faults.collect(self.store_offer)
        if found is None:
            return
        offer, settings = found
        try:
            problem = offer.missing(settings)
        except StoreUnavailableError as error:
            problem = str(error)
        else:
            if problem and self._may_create(offer):
                problem = None
                if create:
                    self.faults.collect(partial(self._create_store, offer, settings))
        if problem:
            self.faults.add(problem)

    def _may_create(self, offer: StoreOffer) -> bool:
        # In production, only an operator can tell a new deployment from one whose store was lost.
        return offer.initialise is not None and _is_development(self._settings)

    def store(self) -> Store:
        """Return the configured store; development creates a missing one, production refuses to start."""
        if self.store_name == "memory":
            return self._register_store(MemoryStore())
        offer, settings = self.store_offer()
        if problem := offer.missing(settings):
            if not self._may_create(offer):
                raise SettingsError(problem)
            self._create_store(offer, settings)
        try:
            return self._register_store(offer.create(settings))
        except ValueError as error:
            raise SettingsError(f"[stores.{offer.name}]: {error}") from None

    def store_missing(self) -> str | None:
        """Return why the store cannot be opened and what to do; None if it can be opened."""
        if self.store_name == "memory":
            return None
        offer, settings = self.store_offer()
        return offer.missing(settings)

    def store_warnings(self) -> Sequence[str]:
        """Return warnings for the operator about the store that a host opens."""
        if self.store_name == "memory":
            return ()
        offer, settings = self.store_offer()
        return offer.warnings(settings) if offer.warnings else ()

    def store_offer(self) -> tuple[StoreOffer, Any]:
        """Return the offer of the configured store and its settings; `memory` has no offer."""
        offers = {each.name: each.offer for each in self.plugins.of("jackfield_stores")}
        offer = offers.get(self.store_name)
        if not isinstance(offer, StoreOffer):
            known = ", ".join(["memory", *offers])
            raise SettingsError(f"store: {self._nobody_offers(self.store_name)}; choose one of {known}")
        return offer, self._valid_settings("stores", offer)

    def _valid_settings(self, kind: str, offer: Any) -> Any:
        """Return the settings of an offer; raises `SettingsError` with all faults if its table has any."""
        settings = self._settings_of(kind, offer)
        if settings is _INVALID:
            self.faults.check()
        return settings

    def _create_store(self, offer: StoreOffer, settings: Any) -> None:
        if offer.initialise is None:
            return
        try:
            created = offer.initialise(settings)
        except StoreUnavailableError as error:
            # Another process that starts at the same time may have created it.
            if offer.missing(settings) is not None:
                raise SettingsError(str(error)) from None
        else:
            _log.info(created)

    def _register_store(self, store: Store) -> Store:
        # Registered first, so closed last. Its errors propagate, because they mean that data was lost.
        self._exit_stack.push_async_callback(store.close)
        return store

    def transport(self) -> Transport:
        """Create the transport of the chosen provider."""
        if self.provider_choice.name == NO_PROVIDER:
            return NoProvider()
        return self._create_transport(self.provider_choice)

    def model_transport(self, name: str) -> Transport:
        """Create the transport of a model that users may choose."""
        return self._create_transport(self.model_choices[name])

    def _create_transport(self, choice: ProviderChoice) -> Transport:
        offer, settings = self._provider(choice)
        transport: Transport = offer.create(settings)
        return transport

    @cached_property
    def model_choices(self) -> Mapping[str, ProviderChoice]:
        """The models that users may choose, by name, with their providers; an unusable one is a fault."""
        choices = {}
        for name, model in self._settings.models.items():
            choice = ProviderChoice(model.transport, f"[models.{name}] offers it", settings=model.settings)
            if model.transport not in self._transports:
                known = ", ".join(self._transports) or "none"
                self.faults.add(
                    f"[models.{name}] transport: {self._nobody_offers(model.transport)}; "
                    f"choose one of {known}"
                )
                continue
            offer, settings = self._provider(choice)
            if reason := offer.unavailable(settings):
                self.faults.add(f"[models.{name}]: {model.transport} cannot be used: {reason}")
            choices[name] = choice
        return choices

    def provider_unavailable_reason(self) -> str | None:
        """Return why the chosen provider cannot be used, as far as known without contacting it."""
        if self.provider_choice.name == NO_PROVIDER:
            return None
        offer, settings = self._provider(self.provider_choice)
        return offer.unavailable(settings)

    @property
    def provider_choice(self) -> ProviderChoice:
        """The provider and why it was chosen; decided at the first access.

        With `provider = "auto"` the first access may block for a moment, so make it in a thread.
        """
        with self._choice_lock:
            if self._choice is None:
                name = self._settings.provider
                automatic = name in ("", AUTO)
                self._choice = self._detect_provider() if automatic else self._configured_provider(name)
            return self._choice

    def _provider(self, choice: ProviderChoice) -> tuple[TransportOffer, Any]:
        offer = self._transports[choice.name]
        if not choice.settings:
            return offer, self._valid_settings("transports", offer)
        # Before the merge, because the two may come from different sources.
        table = merge_tables(
            resolve_paths(self._settings.table("transports", choice.name), offer.settings),
            resolve_paths(choice.settings, offer.settings),
        )
        settings = self._read_offer("transports", offer, table)
        if settings is _INVALID:
            self.faults.check()
        return offer, settings

    @cached_property
    def _transports(self) -> Mapping[str, TransportOffer]:
        offers = (each.offer for each in self.plugins.of("jackfield_transports"))
        return {offer.name: offer for offer in offers if isinstance(offer, TransportOffer)}

    def _configured_provider(self, name: str) -> ProviderChoice:
        if name == NO_PROVIDER:
            known = " or ".join(f"`{each}`" for each in self._transports)
            fix = f"set `provider` to `auto` or {known}" if known else INSTALL_PROVIDER
            return ProviderChoice(name, "the `provider` setting is `none`", hints=(fix,))
        if name not in self._transports:
            problem = self._withheld_offer("jackfield_transports", name)
            problem = problem or self._nobody_offers(name)
            known = ", ".join(self._transports)
            fix = f"choose one of {known}" if known else INSTALL_PROVIDER
            raise SettingsError(f"provider: {problem}; {fix}")
        return ProviderChoice(name, "the `provider` setting names it")

    def _detect_provider(self) -> ProviderChoice:
        ranked = sorted(
            (detector.rank, name, position)
            for name, offer in self._transports.items()
            if self._settings.enabled("transports", name)
            for position, detector in enumerate(offer.detectors)
        )
        hints: list[str] = []
        downloads: list[ProviderDownload] = []
        for _, name, position in ranked:
            offer = self._transports[name]
            settings = self._settings_of("transports", offer)
            if settings is _INVALID:
                continue
            try:
                found = offer.detectors[position].detect(settings)
            except SettingsError:
                raise
            except Exception:  # noqa: BLE001 - a plugin is third-party code
                _log.exception("transport %s: provider detection failed; the transport is skipped", name)
                continue
            if isinstance(found, Detected):
                _log.debug("the provider is %s: %s", name, found.reason)
                return ProviderChoice(
                    name, found.reason, True, tuple(hints), found.settings, tuple(downloads)
                )
            hints.append(found.hint)
            if found.download is not None:
                downloads.append(ProviderDownload(name, found.hint, found.download))
        # A transport with faulty settings may be usable once they are fixed, so report these faults first.
        if any(self._settings_by_offer.get(("transports", name)) is _INVALID for _, name, _ in ranked):
            self.faults.check()
        withheld = [
            f"{name}: {each}"
            for each in self.withheld_plugins
            for name in each.offers.get("jackfield_transports", ())
        ]
        if withheld:
            # A provider that was frozen is missing, which must not go unnoticed.
            raise SettingsError(f"provider: no usable provider found; {'; or '.join([*withheld, *hints])}")
        undetectable = [name for name, offer in self._transports.items() if not offer.detectors]
        named = [f"name one with the `provider` setting: {', '.join(undetectable)}"] if undetectable else []
        fixes = (*hints, *named) or (INSTALL_PROVIDER,)
        return ProviderChoice(NO_PROVIDER, "no usable provider was found", True, fixes, {}, tuple(downloads))

    def _withheld_offer(self, hook: str, name: str) -> str:
        """Return why an offer of the snapshot is missing, if its plugin was withheld."""
        return next(
            (f"{name}: {each}" for each in self.withheld_plugins if name in each.offers.get(hook, ())), ""
        )

    def _nobody_offers(self, name: str, what: str | None = None) -> str:
        """Return that no plugin offers something; name installed plugins that the next build would add."""
        what = what or repr(name)
        if new := [each for each in self._not_built if normalised(name) in each]:
            return (
                f"no plugin in the registry offers {what}; if {' or '.join(new)} does, run `jackfield build`"
            )
        return f"no installed plugin offers {what}"

    @cached_property
    def _not_built(self) -> Sequence[str]:
        """The installed distributions with plugins, none of which are in the registry."""
        # Imported here, because only a fault needs it.
        from importlib.metadata import entry_points

        built = {entry.distribution.name for entry in self.plugins.loaded}
        built.update(each.distribution for each in self.withheld_plugins)
        try:
            found = {normalised(each.dist.name) for each in entry_points(group=PLUGINS) if each.dist}
        except Exception:  # noqa: BLE001 - broken metadata of another distribution must not hide the fault
            return ()
        return sorted(found - built)

    @cached_property
    def unavailable(self) -> Mapping[str, str]:
        """The capabilities that are unavailable in this deployment, each with the reason."""
        reasons = {
            name: str(each)
            for each in self.withheld_plugins
            for name in each.offers.get("jackfield_capabilities", ())
        }
        for offered in self.plugins.of("jackfield_capabilities"):
            offer = offered.offer
            if not self._settings.enabled("capabilities", offered.name):
                reasons[offered.name] = f"[capabilities.{offered.name}] is disabled"
            elif isinstance(offer, CapabilityOffer):
                settings = self._settings_of("capabilities", offer)
                if settings is _INVALID:
                    continue
                if reason := self.faults.collect(partial(offer.unavailable, settings)):
                    reasons[offered.name] = reason
        return reasons

    def withheld_reason(self, tool: FrozenTool) -> str | None:
        """Return why a tool is unavailable in this deployment, as a clause that follows its name."""
        for name in tool.manifest.requires:
            if name in self.unavailable:
                return f"needs {name}: {self.unavailable[name]}"
        return None

    def create_all(self, kind: str, services: Any) -> dict[str, Any]:
        """Create the enabled and available components of one kind, by name; settings faults are added."""
        unavailable = self.unavailable if kind == "capabilities" else {}
        components: dict[str, Any] = {}
        for each in self.plugins.of(HOOKS[kind]):
            if self._settings.enabled(kind, each.name) and each.name not in unavailable:
                component = self.faults.collect(partial(self._create, each, kind, services))
                if component is not None:
                    components[each.name] = component
        return components

    def _create(self, offered: RegisteredOffer, kind: str, services: Any) -> Any:
        """Create a component; raises `RegistryError` naming the plugin and the cause if that fails."""
        owner = f"plugin {offered.plugin.distribution}: {offered.name}"
        offer: Any = offered.offer
        try:
            component = offer.create(self._valid_settings(kind, offer), services)
        except SettingsError:
            raise
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            off = f"; to start without it, set enabled = false in [{kind}.{offered.name}]"
            fix = off if kind == "capabilities" else ""
            raise RegistryError(f"{owner} cannot be created: {cause}{fix}") from error
        required = () if isinstance(component, SyncPolicy) else _REQUIRED_METHODS.get(kind, ())
        missing = [name for name in required if not callable(getattr(component, name, None))]
        if missing:
            raise RegistryError(f"{owner} has no {' and no '.join(missing)}")
        return self.close_later(component) if kind in {"capabilities", "observers"} else component

    def close_later(self, component: _Component) -> _Component:
        """Register an observer or capability to be closed by `close`, if it can be closed."""
        if close := getattr(component, "close", None):
            name = f"{type(component).__module__}.{type(component).__qualname__}"
            self._exit_stack.push_async_callback(_close, name, close)
        return component

    async def close(self) -> None:
        """Close all components in reverse order, the store last; only errors of the store are raised."""
        await self._exit_stack.aclose()

    def owner(self, kind: str, name: str) -> str:
        """Return the distribution and version of the plugin that offers a component."""
        return next(
            str(each.plugin.distribution) for each in self.plugins.of(HOOKS[kind]) if each.name == name
        )

    def _add_unknown_tables(self) -> None:
        """Add a fault for each table that no plugin reads; otherwise a typo would go unnoticed."""
        from difflib import get_close_matches

        for kind, tables in self._settings.tables.items():
            known = [each.name for each in self.plugins.of(HOOKS[kind])]
            withheld = [name for each in self.withheld_plugins for name in each.offers.get(HOOKS[kind], ())]
            for name in (name for name in tables if name not in (*known, *withheld)):
                close = get_close_matches(name, known, 1)
                offered = f"known tables: {', '.join(f'[{kind}.{each}]' for each in known) or 'none'}"
                fix = f"did you mean [{kind}.{close[0]}]?" if close else offered
                self.faults.add(f"[{kind}.{name}]: {self._nobody_offers(name, 'this')}; {fix}")


def add_table_faults(settings: Settings, faults: SettingsFaults) -> None:
    """Add the faults in the tables of the registry's plugins, if the registry can be loaded."""
    try:
        PluginComponents.of(load_snapshot(settings), settings, faults=faults)
    except (SnapshotError, RegistryError):
        # The setting that names the registry may itself be faulty.
        return


def _is_development(settings: Settings) -> bool:
    return Deployment(settings.deployment) is Deployment.DEVELOPMENT


def _check_withheld(plugin: WithheldPlugin, frozen: Mapping[str, Any], settings: Settings) -> None:
    """Raise `RegistryError` for a drifted plugin that must not be withheld.

    In development, that is any plugin; in production, it is one that governs or records calls.
    """
    if _is_development(settings):
        raise RegistryError(f"{plugin}; run `jackfield build`")
    offers = {hook: names for hook, names in plugin.offers.items() if hook in _GOVERNING and names}
    # Old snapshots do not record observers, so a plugin without other offers is assumed to have one.
    if frozen.get("observes", not any(plugin.offers.values())):
        offers["jackfield_observers"] = ()
    if offers:
        kinds = " and ".join(hook.removeprefix("jackfield_").replace("_", " ") for hook in offers)
        raise RegistryError(
            f"{plugin}; it provides {kinds}, which the host cannot run without: reinstall the frozen "
            "version, or review the output of `jackfield check` and run `jackfield build`"
        )


async def _close(name: str, close: Callable[[], Awaitable[None]]) -> None:
    """Close a plugin's component; an error is logged, so that the others are closed too."""
    try:
        await close()
    except BaseException as error:
        if is_external_cancellation(error) or isinstance(error, SystemExit):
            raise
        _log.error("%s failed to close; the other components will still be closed", name, exc_info=error)

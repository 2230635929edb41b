"""The runtime: everything that sessions need, assembled once at startup from a snapshot and its plugins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from jackfield.components import PluginComponents
from jackfield.confirmation import Confirmations, PendingConfirmation
from jackfield.contract.context import Mode
from jackfield.contract.tool import ToolResponse
from jackfield.experiments.definition import ExperimentsError
from jackfield.experiments.experiments import Experiments
from jackfield.experiments.signed_versions import ExperimentsSource
from jackfield.host_reports import HostDirectory
from jackfield.ledger import CallLedger
from jackfield.offers import Services
from jackfield.orchestrator import CallResult, Observer, Orchestrator
from jackfield.registry.registry import Deployment, Registry, RegistryError, UntrustedRegistryError
from jackfield.session.session import Publish, Session, SessionFormatError, State
from jackfield.settings import Settings, SettingsError, SettingsFaults
from jackfield.shadow import ShadowRuns
from jackfield.signatures.dsse_envelope import SignatureError
from jackfield.signatures.requirement import RequiredSignatures
from jackfield.store import Store
from jackfield.toolsets import Toolsets
from jackfield.transport.protocol import Transport

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Runtime:
    """A registry, its policies and its store, ready for sessions."""

    registry: Registry
    store: Store
    orchestrator: Orchestrator
    confirmations: Confirmations
    ledger: CallLedger
    capabilities: Mapping[str, Any]
    components: PluginComponents
    hosts: HostDirectory
    toolsets: Toolsets
    experiments: Experiments | None = None
    """The experiments in effect; None without the setting `experiments`."""

    @classmethod
    async def start(
        cls,
        settings: Settings,
        observers: Sequence[Observer] = (),
        *,
        faults: SettingsFaults | None = None,
    ) -> Runtime:
        """Load and verify the registry, read all settings, then create the components.

        Faults in settings are added to `faults`. One `SettingsError` reports all of them before anything is
        created.
        """
        registry = Registry.load(
            settings.registry, Deployment(settings.deployment), RequiredSignatures.of(settings)
        )
        components = PluginComponents.of(registry.snapshot(), settings, registry.drift, faults)
        return await cls.assemble(registry, components, settings, observers)

    @classmethod
    async def assemble(
        cls,
        registry: Registry,
        components: PluginComponents,
        settings: Settings,
        observers: Sequence[Observer] = (),
        *,
        reloadable: bool = False,
        host_name: str | None = None,
    ) -> Runtime:
        """Create a runtime from plugins whose settings have been read; on failure, close everything.

        The registry is locked unless it is `reloadable`, for `reload` in development. `host_name` is the name
        of this process among those that share the store.
        """
        faults = components.faults
        try:
            for tool in [*registry.tools.values(), *registry.variants.values()]:
                if reason := components.withheld_reason(tool.frozen):
                    registry.withhold(tool.frozen.name, reason)
            source = ExperimentsSource.of(settings)
            if source is not None:
                faults.collect(partial(_check_experiments, source, registry))
            for fault in Toolsets(settings.toolsets, registry.snapshot()).faults():
                faults.add(fault)
            components.check_store()
            faults.check()
            try:
                runtime = cls._create(registry, components, observers, settings, source, host_name=host_name)
            except RegistryError:
                # A plugin may fail because another one could not be created.
                faults.check()
                raise
            faults.check()
            if not reloadable or registry.deployment is not Deployment.DEVELOPMENT:
                registry.lock()
            if runtime.experiments is not None:
                await runtime.experiments.start()
            _start_components(runtime)
            if runtime.experiments is not None:
                runtime.experiments.check_guarded()
        except BaseException:
            # The store has open files and threads, which would interfere with another start.
            await components.close()
            raise
        return runtime

    @classmethod
    def _create(
        cls,
        registry: Registry,
        components: PluginComponents,
        observers: Sequence[Observer],
        settings: Settings,
        source: ExperimentsSource | None,
        *,
        host_name: str | None,
    ) -> Runtime:
        store = components.store()
        offered = {each.name for each in components.plugins.of("jackfield_capabilities")}
        services = Services(store, frozenset(offered - set(components.unavailable)))
        capabilities = components.create_all("capabilities", services)
        services = replace(services, instances=capabilities)
        policies = components.create_all("policies", services)
        intents = components.create_all("intents", services)
        plugin_observers = components.create_all("observers", services).values()
        orchestrator = Orchestrator(
            registry,
            [
                (offer.name, offer.stage, policies[offer.name])
                for offer, _ in components.plugins.policy_chain()
                if offer.name in policies
            ],
            intents=intents,
            capabilities=capabilities,
            observers=[*plugin_observers, *map(components.close_later, observers)],
            enforce_returns=settings.returns == "enforce",
        )
        confirmations, ledger = Confirmations(store), CallLedger(store, capabilities=capabilities)
        hosts = HostDirectory(store, host_name)
        experiments = None
        if source is not None:
            experiments = components.close_later(Experiments(source, store, registry))
            notify = orchestrator.observers.shadow_finished
            shadows = ShadowRuns(capabilities, experiments.is_running, notify)
            registry.shadow = components.close_later(shadows).handler
        toolsets = Toolsets(settings.toolsets, registry.snapshot(), experiments)
        return cls(
            registry, store, orchestrator, confirmations, ledger, capabilities, components, hosts, toolsets,
            experiments,
        )  # fmt: skip

    def transport(self) -> Transport:
        """Create the transport of the configured provider; the caller closes it."""
        return self.components.transport()

    async def open_session(
        self,
        mode: Mode,
        *,
        user: str | None = None,
        prompt_tokens: int = 0,
        declaration_tokens: int = 0,
        **fields: Any,
    ) -> Session:
        """Open a session on this registry and save it, so that it can be resumed."""
        session = self.create_session(mode, user=user, **fields)
        await session.save(self.store)
        self.announce_session(session, prompt_tokens=prompt_tokens, declaration_tokens=declaration_tokens)
        return session

    def create_session(self, mode: Mode, **fields: Any) -> Session:
        """Create a session on this registry; the caller saves and announces it.

        The settings determine its toolset, unless `fields` contains a `toolset`: the object or its name.
        """
        toolset = fields.pop("toolset", None)
        if toolset is None or isinstance(toolset, str):
            organisation = fields.get("organisation")
            roles = fields.get("roles", ())
            toolset = self.toolsets.choose(fields.get("user"), roles, organisation, toolset)
        return Session(mode, self.registry.version, opened_at=self.store.now(), toolset=toolset, **fields)

    def announce_session(
        self, session: Session, *, prompt_tokens: int = 0, declaration_tokens: int = 0
    ) -> None:
        """Notify observers of a new session."""
        observers = self.orchestrator.observers
        observers.session_opened(session, prompt_tokens=prompt_tokens, declaration_tokens=declaration_tokens)
        observers.turn_began(session)

    async def end_session(self, session: Session) -> None:
        """End a session; it cannot be resumed."""
        session.transition(State.TERMINATED)
        self.orchestrator.interrupt(session, "ended")
        await session.save(self.store)
        self.orchestrator.observers.session_ended(session)

    async def resume_session(self, session_id: str, publish: Publish) -> Session | None:
        """Load a saved session; returns None if there is none.

        Raises `RegistryError` if another version of Jackfield saved it, and in development also if it is
        pinned to another registry, unless this host reloads its registry. In production with trusted keys,
        it raises `UntrustedRegistryError` if the registry's signatures are no longer valid.
        """
        await self.check_signatures()
        try:
            session = await Session.resume(session_id, self.store, publish)
        except SessionFormatError as error:
            raise RegistryError(str(error)) from None
        if session is not None and not self.repin(session) and not self._is_pinned_here(session):
            message = f"session {session_id} is pinned to registry {session.registry_version}"
            if self.registry.deployment is Deployment.DEVELOPMENT:
                raise RegistryError(
                    f"{message}, but this host serves {self.registry.version}; "
                    "in development, a session does not continue with another registry"
                )
            _log.warning("%s; the session continues with the tools of %s", message, self.registry.version)
        return session

    async def check_signatures(self) -> None:
        """Raise `UntrustedRegistryError` if signatures that the deployment requires are no longer valid."""
        required = self.registry.signatures
        if required is None or required.is_current():
            return
        try:
            await asyncio.to_thread(required.check_again)
        except SignatureError as error:
            _log.error("sessions can no longer be resumed: %s", error)
            # Users see this message, so it contains no paths or keys.
            raise UntrustedRegistryError(
                "the signatures of this host's registry are no longer valid, so the host resumes no "
                "sessions; the host's log and `jackfield verify` say why"
            ) from None

    def _is_pinned_here(self, session: Session) -> bool:
        return session.registry_version == self.registry.version

    def repin(self, session: Session) -> bool:
        """Pin a session to the served registry if this host reloads it; return whether the pin changed."""
        if self._is_pinned_here(session) or not self.registry.reloadable:
            return False
        _log.debug("session %s: %s -> %s", session.id, session.registry_version, self.registry.version)
        session.repin(self.registry.version)
        return True

    def reload(self, kept: Collection[str] = ()) -> None:
        """Serve the current registry file; the caller re-pins the sessions that it holds.

        Modules in `kept` are not imported again, because plugins use them. Raises `RegistryError` or
        `SnapshotError` if the file cannot be served; the registry stays as it was.
        """
        self.registry.reload(self.components.withheld_reason, kept)
        self.toolsets.adopt(self.registry.snapshot())
        if self.experiments is not None:
            self.experiments.apply_registry()

    async def begin_turn(self, session: Session, user_text: str = "") -> None:
        """Begin a user turn and save the session, so that a reconnect does not reset the turn."""
        session.begin_turn(user_text)
        await session.save(self.store)
        self.orchestrator.observers.turn_began(session)

    async def resolve_confirmation(self, session: Session, token: str, *, approve: bool) -> CallResult | None:
        """Carry out a user's decision on the call that a token identifies; None for an unknown token.

        This is the only place that redeems a token, publishes the decision, runs the call or records that it
        was declined, and publishes the outcome. The first decision wins: a later one, or one after the
        expiry, returns the recorded outcome.
        """
        pending = await self.confirmations.find(session, token)
        return None if pending is None else await self.resolve_pending(session, pending, approve=approve)

    async def resolve_pending(
        self, session: Session, pending: PendingConfirmation, *, approve: bool
    ) -> CallResult:
        """Carry out a decision without a token: at a terminal, or for a call that was approved earlier."""
        return await self.orchestrator.resolve_confirmation(session, pending, self.ledger, approve=approve)

    async def settle_call(
        self, key: str, *, ran: bool, by: str, data: Any = None, response: ToolResponse | None = None
    ) -> bytes | None:
        """Record an operator's finding about a call in doubt, and return the call's envelope.

        Returns None if the call is not in doubt. The audit gets a line, as for every finished call. A host
        that knows the outcome itself passes the whole `response`.
        """
        doubtful = next((each for each in await self.ledger.in_doubt() if each.key == key), None)
        if doubtful is None:
            return None
        wire = await self.ledger.settle(key, ran=ran, data=data, by=by, response=response)
        if wire is not None:
            self.orchestrator.record_settled(doubtful, wire, by)
        return wire

    async def close(self) -> None:
        """Close observers, capabilities and the store."""
        await self.components.close()


def _check_experiments(source: ExperimentsSource, registry: Registry) -> None:
    """Raise `SettingsError` if the experiments file may not be used, or does not fit the registry."""
    try:
        found = source.verify(source.read())
    except ExperimentsError as error:
        raise SettingsError(str(error)) from None
    faults = [f"{source.path} {name}: {fault}" for name, fault in found.faults(registry.snapshot())]
    if faults:
        raise SettingsError("\n".join(faults))


def _start_components(runtime: Runtime) -> None:
    """Call `started` of each capability and observer; raises `RegistryError`, which names one that fails."""
    for name, capability in runtime.capabilities.items():
        _start(runtime, capability, f"plugin {runtime.components.owner('capabilities', name)}: {name}")
    for observer in runtime.orchestrator.observers:
        _start(runtime, observer, f"the observer {type(observer).__name__}")


def _start(runtime: Runtime, component: Any, what: str) -> None:
    if started := getattr(component, "started", None):
        try:
            started(runtime)
        except (RegistryError, SettingsError):
            raise
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            raise RegistryError(f"{what} cannot be started: {cause}") from error

"""Everything a session needs, put together once at start from a snapshot and the plugins it names."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jackfield.components import PluginComponents
from jackfield.confirmation import Confirmations, PendingConfirmation
from jackfield.contract.context import Mode
from jackfield.ledger import CallLedger
from jackfield.offers import Services
from jackfield.orchestrator import CallResult, Observer, Orchestrator
from jackfield.registry.registry import Deployment, Registry, RegistryError
from jackfield.session.session import Publish, Session, SessionFormatError, State
from jackfield.settings import Settings, SettingsError, SettingsFaults
from jackfield.store import Store
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

    @classmethod
    async def start(
        cls,
        settings: Settings,
        observers: Sequence[Observer] = (),
        *,
        faults: SettingsFaults | None = None,
    ) -> Runtime:
        """Load and verify the registry, read all settings, then create everything that they ask for.

        Faults in settings are added to `faults`; one `SettingsError` reports them all, before anything is
        created.
        """
        registry = Registry.load(settings.registry, Deployment(settings.deployment))
        components = PluginComponents.of(registry.snapshot(), settings, registry.drift, faults)
        return await cls.assemble(registry, components, settings, observers)

    @classmethod
    async def assemble(
        cls,
        registry: Registry,
        components: PluginComponents,
        settings: Settings,
        observers: Sequence[Observer] = (),
    ) -> Runtime:
        """A runtime from plugins whose settings have been read; on failure everything is closed again."""
        faults = components.faults
        try:
            for tool in list(registry.tools.values()):
                if reason := components.withheld(tool.frozen):
                    registry.withhold(tool.id, reason)
            components.check_store()
            faults.check()
            try:
                runtime = cls._made(
                    registry, components, observers, enforce_returns=settings.returns == "enforce"
                )
            except RegistryError:
                # A plugin may fail because another one could not be created.
                faults.check()
                raise
            faults.check()
            registry.lock()
            _tell_started(runtime)
        except BaseException:
            # A store has threads and files, and whoever starts again would meet them.
            await components.close()
            raise
        return runtime

    @classmethod
    def _made(
        cls,
        registry: Registry,
        components: PluginComponents,
        observers: Sequence[Observer],
        *,
        enforce_returns: bool,
    ) -> Runtime:
        store = components.store()
        offered = {each.name for each in components.plugins.of("jackfield_capabilities")}
        services = Services(store, frozenset(offered - set(components.unavailable)))
        capabilities = components.made("capabilities", services)
        services = replace(services, lent=capabilities)
        policies = components.made("policies", services)
        orchestrator = Orchestrator(
            registry,
            [
                (offer.name, offer.stage, policies[offer.name])
                for offer, _ in components.plugins.policy_chain()
                if offer.name in policies
            ],
            intents=components.made("intents", services),
            capabilities=capabilities,
            observers=[*components.made("observers", services).values(), *map(components.hold, observers)],
            enforce_returns=enforce_returns,
        )
        confirmations, ledger = Confirmations(store), CallLedger(store)
        return cls(registry, store, orchestrator, confirmations, ledger, capabilities, components)

    def transport(self) -> Transport:
        """The way to the provider that the settings name; whoever asks closes it."""
        return self.components.transport()

    async def open_session(
        self,
        mode: Mode,
        *,
        user: str | None = None,
        prompt_tokens: int = 0,
        declaration_tokens: int = 0,
        **facts: Any,
    ) -> Session:
        """A new session on this registry, kept so that it can be taken up again."""
        session = Session(mode, self.registry.version, user=user, began=self.store.now(), **facts)
        await session.save(self.store)
        told = self.orchestrator.observers
        told.session_opened(session, prompt_tokens=prompt_tokens, declaration_tokens=declaration_tokens)
        told.turn_began(session)
        return session

    async def end_session(self, session: Session) -> None:
        """The conversation is over; it cannot be taken up again."""
        session.transition(State.TERMINATED)
        self.orchestrator.interrupt(session, "ended")
        await session.save(self.store)
        self.orchestrator.observers.session_ended(session)

    async def resume_session(self, session_id: str, publish: Publish) -> Session | None:
        """A session that was saved; `RegistryError` where it cannot go on.

        That is so in the format of another version and, in development, on another registry than its own.
        """
        try:
            session = await Session.resume(session_id, self.store, publish)
        except SessionFormatError as error:
            raise RegistryError(str(error)) from None
        if session is not None and session.registry_version != self.registry.version:
            message = f"session {session_id} is pinned to registry {session.registry_version}"
            if self.registry.deployment is Deployment.DEVELOPMENT:
                raise RegistryError(f"{message}, and this one is {self.registry.version}")
            _log.error("%s; it goes on with what is unchanged in %s", message, self.registry.version)
        return session

    async def begin_turn(self, session: Session, said: str = "") -> None:
        """A user's turn begins; the counter is kept, so that a reconnect does not start it over."""
        session.begin_turn()
        session.add_user_text(said)
        await session.save(self.store)
        self.orchestrator.observers.turn_began(session)

    async def resolve_confirmation(self, session: Session, token: str, *, approve: bool) -> CallResult | None:
        """Carry out the decision of the user who holds a token; nothing for an unknown token.

        This alone redeems the token, publishes the decision, runs the call or records that it was declined,
        and publishes the outcome. The first decision counts: a later one, or one that comes too late, gets
        the outcome that stands.
        """
        pending = await self.confirmations.find(session, token)
        return None if pending is None else await self.resolve_pending(session, pending, approve=approve)

    async def resolve_pending(
        self, session: Session, pending: PendingConfirmation, *, approve: bool
    ) -> CallResult:
        """Do the same where the question is known: at a terminal, or for a call that was approved before."""
        return await self.orchestrator.resolve_confirmation(session, pending, self.ledger, approve=approve)

    async def settle_call(self, key: str, *, ran: bool, by: str, data: Any = None) -> bytes | None:
        """Record what a person found out about a call in doubt; its envelope, or nothing if it is not.

        The audit gets a line, as for every other answer to a call.
        """
        doubtful = next((each for each in await self.ledger.in_doubt() if each.key == key), None)
        if doubtful is None:
            return None
        wire = await self.ledger.settle(key, ran=ran, data=data, by=by)
        if wire is not None:
            self.orchestrator.record_settled(doubtful, wire, by)
        return wire

    async def close(self) -> None:
        """Let observers write out, and capabilities and the store let go."""
        await self.components.close()


def _tell_started(runtime: Runtime) -> None:
    """Let capabilities begin their own work; one that cannot stops the start and is named."""
    for name, capability in runtime.capabilities.items():
        if started := getattr(capability, "started", None):
            try:
                started(runtime)
            except (RegistryError, SettingsError):
                raise
            except Exception as error:
                owner = runtime.components.owner("capabilities", name)
                cause = f"{type(error).__name__}: {error}"
                raise RegistryError(f"plugin {owner}: {name} cannot be started: {cause}") from error

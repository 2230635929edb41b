"""Everything a session needs, put together once at start from a snapshot and the plugins it names."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jackfield.confirmation import Confirmations, Pending
from jackfield.contract.context import Mode
from jackfield.offers import Services
from jackfield.orchestrator import Answer, Observer, Orchestrator
from jackfield.provision import Provision
from jackfield.registry.registry import Deployment, Registry, RegistryError
from jackfield.session.machine import State
from jackfield.session.session import Publish, Session
from jackfield.settings import Settings
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
    capabilities: Mapping[str, Any]
    provision: Provision

    @classmethod
    async def start(cls, settings: Settings, observers: Sequence[Observer] = ()) -> Runtime:
        """Load, verify and lock; what cannot be served stops the start with a sentence."""
        registry = Registry.load(settings.registry, Deployment(settings.deployment))
        provision = Provision.of(registry.snapshot(), settings)
        try:
            with provision.mistakes:
                enforce_returns = settings.returns == "enforce"
                runtime = cls._made(registry, provision, observers, enforce_returns=enforce_returns)
            provision.mistakes.tell()
            registry.lock()
            for capability in runtime.capabilities.values():
                if started := getattr(capability, "started", None):
                    started(runtime)
        except BaseException:
            # A store has threads and files, and whoever starts again would meet them.
            await provision.close()
            raise
        return runtime

    @classmethod
    def _made(
        cls,
        registry: Registry,
        provision: Provision,
        observers: Sequence[Observer],
        *,
        enforce_returns: bool,
    ) -> Runtime:
        for tool in list(registry.tools.values()):
            if reason := provision.withheld(tool.frozen):
                registry.withhold(tool.id, reason)
        store = provision.store()
        offered = {each.name for each in provision.plugins.of("jackfield_capabilities")}
        services = Services(store, frozenset(offered - set(provision.unavailable)))
        capabilities = provision.made("capabilities", services)
        services = replace(services, lent=capabilities)
        policies = provision.made("policies", services)
        orchestrator = Orchestrator(
            registry,
            [
                (offer.name, offer.stage, policies[offer.name])
                for offer, _ in provision.plugins.policy_chain()
                if offer.name in policies
            ],
            intents=provision.made("intents", services),
            capabilities=capabilities,
            observers=[*provision.made("observers", services).values(), *map(provision.hold, observers)],
            enforce_returns=enforce_returns,
        )
        return cls(registry, store, orchestrator, Confirmations(store), capabilities, provision)

    def transport(self) -> Transport:
        """The way to the provider that the settings name; whoever asks closes it."""
        return self.provision.transport()

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
        for observer in self.orchestrator.observers:
            observer.session_opened(
                session, prompt_tokens=prompt_tokens, declaration_tokens=declaration_tokens
            )
            observer.turn_began(session)
        return session

    async def end_session(self, session: Session) -> None:
        """The conversation is over; it cannot be taken up again."""
        session.go(State.TERMINATED)
        self.orchestrator.interrupt(session, "ended")
        await session.save(self.store)
        for observer in self.orchestrator.observers:
            observer.session_ended(session)

    async def resume_session(self, session_id: str, publish: Publish) -> Session | None:
        """A session that was kept; on another registry than its own it is fatal in development."""
        session = await Session.resume(session_id, self.store, publish)
        if session is not None and session.registry_version != self.registry.version:
            message = f"session {session_id} is pinned to registry {session.registry_version}"
            if self.registry.deployment is Deployment.DEVELOPMENT:
                raise RegistryError(f"{message}, and this one is {self.registry.version}")
            _log.error("%s; it goes on with what is unchanged in %s", message, self.registry.version)
        return session

    async def begin_turn(self, session: Session, said: str = "") -> None:
        """A user's turn begins; the counter is kept, so that a reconnect does not start it over."""
        session.begin_turn()
        session.hear(said)
        await session.save(self.store)
        for observer in self.orchestrator.observers:
            observer.turn_began(session)

    async def confirm(self, session: Session, token: str, *, approve: bool) -> Answer | Pending | None:
        """A user's word: the approved call's answer, the declined call, or nothing for a bad token."""
        pending = await self.confirmations.redeem(session, token)
        if pending is None:
            return None
        if not approve:
            self.orchestrator.record_declined(session, pending)
            return pending
        return await self.orchestrator.run_confirmed(session, pending)

    async def close(self) -> None:
        """Let observers write out, and capabilities and the store let go."""
        await self.provision.close()

"""Everything a session needs, put together once at start from a snapshot and the plugins it names."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from jackfield.build.discovery import PLUGINS, Entry
from jackfield.build.findings import Distribution
from jackfield.build.plugins import Offered, Plugins, load
from jackfield.confirmation import Confirmations, Pending
from jackfield.contract.context import Mode
from jackfield.contract.snapshot import Snapshot
from jackfield.governance import Check
from jackfield.offers import PluginSettings, Services, StoreOffer
from jackfield.orchestrator import Answer, Observer, Orchestrator
from jackfield.packages import locate, package_hash
from jackfield.registry.registry import Deployment, Registry, RegistryError
from jackfield.session.machine import State
from jackfield.session.session import Publish, Session
from jackfield.settings import Settings, SettingsError
from jackfield.store import MemoryStore, Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Runtime:
    """A registry, its policies and its store, ready for sessions."""

    registry: Registry
    store: Store
    orchestrator: Orchestrator
    confirmations: Confirmations

    @classmethod
    async def start(cls, settings: Settings, observers: Sequence[Observer] = ()) -> Runtime:
        """Load, verify and lock; what cannot be served stops the start with a sentence."""
        registry = Registry.load(settings.registry, Deployment(settings.deployment))
        plugins = _plugins(registry.snapshot(), registry.deployment)
        store = _store(plugins, settings)
        capabilities = plugins.of("jackfield_capabilities")
        services = Services(store, frozenset(each.name for each in capabilities))
        _refuse_unknown_tables(plugins, settings)

        def made(hook: str, kind: str) -> dict[str, Any]:
            return {
                each.name: _make(each, settings.table(kind, each.name), services)
                for each in plugins.of(hook)
                if settings.enabled(kind, each.name)
            }

        policies = made("jackfield_policies", "policies")
        orchestrator = Orchestrator(
            registry,
            [
                (offer.name, offer.stage, policies[offer.name])
                for offer, _ in plugins.policy_chain()
                if offer.name in policies
            ],
            intents=made("jackfield_intent_handlers", "intents"),
            capabilities=made("jackfield_capabilities", "capabilities"),
            observers=[*made("jackfield_observers", "observers").values(), *observers],
        )
        registry.lock()
        return cls(registry, store, orchestrator, Confirmations(store))

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
        session = Session(mode, self.registry.version, user=user, **facts)
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

    async def begin_turn(self, session: Session) -> None:
        """A user's turn begins; the counter is kept, so that a reconnect does not start it over."""
        session.begin_turn()
        await session.save(self.store)
        for observer in self.orchestrator.observers:
            observer.turn_began(session)

    async def confirm(self, session: Session, token: str, *, approve: bool) -> Answer | Pending | None:
        """A user's word: the approved call's answer, the declined call, or nothing for a bad token."""
        pending = await self.confirmations.redeem(session, token)
        if pending is None or not approve:
            return pending
        return await self.orchestrator.run_confirmed(session, pending)

    async def close(self) -> None:
        """Let observers write out and the store let go."""
        for observer in self.orchestrator.observers:
            await observer.close()
        await self.store.close()


def _plugins(snapshot: Snapshot, deployment: Deployment) -> Plugins:
    """The plugins the snapshot names, not those that happen to be installed."""
    entries = []
    for plugin in snapshot.wire["plugins"]:
        owner: Mapping[str, Any] = plugin["distribution"]
        folder = locate(plugin["value"].partition(":")[0].partition(".")[0])
        if folder is None or package_hash(folder, owner["version"]) != owner["contentHash"]:
            message = f"plugin {owner['name']} is not the code that was frozen"
            if deployment is Deployment.DEVELOPMENT:
                raise RegistryError(f"{message}; run `jackfield build`")
            _log.error(message)
        entries.append(
            Entry(PLUGINS, plugin["name"], plugin["value"], Distribution(owner["name"], owner["version"]))
        )
    plugins = load(entries)
    for finding in plugins.findings:
        raise RegistryError(f"plugin {finding.distribution}: {finding.message}")
    return plugins


def _store(plugins: Plugins, settings: Settings) -> Store:
    offers = {each.name: each.offer for each in plugins.of("jackfield_stores")}
    name = settings.store or ("sqlite" if "sqlite" in offers else "memory")
    if name == "memory":
        return MemoryStore()
    offer = offers.get(name)
    if not isinstance(offer, StoreOffer):
        known = ", ".join(["memory", *offers])
        raise SettingsError(f"no installed plugin offers the store {name!r}; there are {known}")
    return offer.create(settings.table("stores", name))


# What is made from an offer has to have these, or it would fail in the middle of a call.
_SHAPES = {
    "jackfield_policies": ("concerns", "apply"),
    "jackfield_intent_handlers": ("refusal", "apply"),
    "jackfield_observers": ("call_finished", "session_opened", "turn_began", "session_ended", "close"),
}


def _make(offered: Offered, said: PluginSettings, services: Services) -> Any:
    """What an offer makes; a plugin that cannot is named, with the cause."""
    owner = f"plugin {offered.plugin.distribution}: {offered.name}"
    offer: Any = offered.offer
    try:
        made = offer.create(said, services)
    except SettingsError:
        raise
    except Exception as error:
        raise RegistryError(f"{owner} cannot be made: {type(error).__name__}: {error}") from error
    shape = () if isinstance(made, Check) else _SHAPES.get(offered.hook, ())
    missing = [name for name in shape if not callable(getattr(made, name, None))]
    if missing:
        raise RegistryError(f"{owner} has no {' and no '.join(missing)}")
    return made


_HOOKS = {
    "policies": "jackfield_policies",
    "intents": "jackfield_intent_handlers",
    "capabilities": "jackfield_capabilities",
    "stores": "jackfield_stores",
    "observers": "jackfield_observers",
    "transports": "jackfield_transports",
}


def _refuse_unknown_tables(plugins: Plugins, settings: Settings) -> None:
    for kind, tables in settings.tables.items():
        known = [each.name for each in plugins.of(_HOOKS[kind])]
        for name in tables:
            if name not in known:
                close = get_close_matches(name, known, 1)
                meant = (
                    f"did you mean [{kind}.{close[0]}]?"
                    if close
                    else f"offered are {', '.join(known) or 'none'}"
                )
                raise SettingsError(f"[{kind}.{name}]: no installed plugin offers that; {meant}")

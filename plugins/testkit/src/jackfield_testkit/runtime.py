"""Runtimes for tests: tools defined in the test, and the real capabilities of installed plugins."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from jackfield import ToolCall
from jackfield.confirmation import Confirmations
from jackfield.contract.context import Mode
from jackfield.contract.manifest import ToolManifest
from jackfield.contract.snapshot import FrozenTool, Snapshot
from jackfield.distributions import EntryPoint
from jackfield.invocation import as_handler
from jackfield.ledger import CallLedger
from jackfield.offers import CapabilityOffer, IntentHandlerOffer, PolicyOffer, Services
from jackfield.orchestrator import CallResult, Observer, Orchestrator
from jackfield.registry.registry import RegisteredTool, Registry
from jackfield.session.session import Session
from jackfield.settings import parse_offer
from jackfield.store import MemoryStore, Store
from jackfield_builder.discovery import discover

from jackfield_testkit.tool.runner import plugins

VERSION = "1.0.00000000"

_FIELDS: dict[str, Any] = {
    "version": "1.0.0",
    "description": "A tool of a test.",
    "category": "utility",
    "sideEffects": "none",
    "idempotent": True,
    "requiresConfirmation": False,
    "allowedModes": ["text", "voice"],
    "latencyBudgetMs": 1000,
}


def make_tool(tool_id: str, execute: Callable[..., Any], *, guide: str = "", **fields: Any) -> RegisteredTool:
    """Make a registered tool; `fields` replace the default fields of schema.json."""
    parameters = {"type": "object", "additionalProperties": False, "properties": {}}
    wire = {**_FIELDS, "parameters": parameters, **fields, "toolId": tool_id}
    frozen = FrozenTool(
        ToolManifest.from_wire(wire), {}, "", guide, f"{tool_id}:execute", tool_id, "1.0.0", "", ""
    )
    return RegisteredTool(frozen, as_handler(execute), VERSION)


def _create(
    kind: str,
    offer: PolicyOffer | IntentHandlerOffer | CapabilityOffer,
    table: Mapping[str, Any],
    services: Services,
) -> Any:
    return offer.create(parse_offer(kind, offer, table), services)


class TestRuntime:
    """Tools, policies and a store, combined without a build; for tests of policies, intents and stores."""

    __test__ = False  # keeps pytest from collecting the class

    def __init__(
        self,
        *tools: RegisteredTool,
        policies: Iterable[PolicyOffer] = (),
        intents: Iterable[IntentHandlerOffer] = (),
        capabilities: Iterable[CapabilityOffer] = (),
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        store: Store | None = None,
        observers: Iterable[Observer] = (),
        enforce_returns: bool = False,
    ) -> None:
        self.store: Store = store or MemoryStore()
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        tables = settings or {}
        offers = list(capabilities)
        services = Services(self.store, frozenset(offer.name for offer in offers))
        instances = {offer.name: _create("capabilities", offer, {}, services) for offer in offers}
        services = replace(services, instances=instances)
        by_id = {tool.id: tool for tool in tools}
        snapshot = Snapshot(VERSION, "", {tool.id: tool.frozen for tool in tools}, {"capabilities": []})
        ordered = sorted(policies, key=lambda offer: (offer.stage, offer.rank, offer.name))
        self.orchestrator = Orchestrator(
            Registry(snapshot, by_id),
            [
                (offer.name, offer.stage, _create("policies", offer, tables.get(offer.name, {}), services))
                for offer in ordered
            ],
            intents={offer.name: _create("intents", offer, {}, services) for offer in intents},
            capabilities=instances,
            observers=list(observers),
            enforce_returns=enforce_returns,
        )

    def session(self, mode: Mode = "text", **facts: Any) -> Session:
        """Make a session whose published events are recorded in `events`."""
        facts.setdefault("publish", self._publish)
        return Session(mode, VERSION, **facts)

    def _publish(self, event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
        # Like a host's event log, which skips the outcome of a call that it has published before.
        if once and any(name == event and each["callId"] == fields["callId"] for name, each in self.events):
            return
        self.events.append((event, fields))

    async def resolve(self, session: Session, token: str, *, approve: bool = True) -> CallResult | None:
        """Approve or reject a call that needs confirmation; None if the token is not this session's."""
        pending = await Confirmations(self.store).find(session, token)
        if pending is None:
            return None
        ledger = CallLedger(self.store)
        return await self.orchestrator.resolve_confirmation(session, pending, ledger, approve=approve)

    async def call(
        self, session: Session, tool_id: str, arguments: str = "{}", call_id: str | None = None
    ) -> CallResult:
        """Make one call and return its answer."""
        (answer,) = await self.orchestrator.handle(session, [ToolCall(tool_id, arguments, call_id)])
        return answer


def capability(name: str, settings: Mapping[str, Any] | None = None) -> Any:
    """Create a capability of an installed plugin with these settings, over a store in memory.

    Raises `LookupError` if no installed plugin offers it.
    """
    for each in plugins(_installed_plugins(_import_path())).of("jackfield_capabilities"):
        if isinstance(each.offer, CapabilityOffer) and each.name == name:
            return _create("capabilities", each.offer, settings or {}, Services(MemoryStore()))
    raise LookupError(f"no installed plugin offers the capability {name!r}; install one to test with it")


@lru_cache(maxsize=8)
def _installed_plugins(_path: Hashable) -> tuple[EntryPoint, ...]:
    """Return the installed plugins, cached: tests create many capabilities, and discovery reads files."""
    return discover().plugins


def _import_path() -> Hashable:
    """Return the import path with the times of its folders, which change with each installation."""
    return tuple((place, _changed_at(place)) for place in sys.path)


def _changed_at(place: str) -> int:
    try:
        return os.stat(place or ".").st_mtime_ns  # noqa: PTH116 - runs before each call of a tool
    except OSError:
        return 0

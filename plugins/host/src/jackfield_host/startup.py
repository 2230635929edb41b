"""The startup of a host: checks that report every fault in one run, and the summary that is printed."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from jackfield.components import PluginComponents
from jackfield.contract.snapshot import SnapshotError
from jackfield.host_reports import SILENT_SECONDS, HostDirectory
from jackfield.registry.registry import Deployment, Registry, RegistryError
from jackfield.runtime import Runtime
from jackfield.settings import AUTO, NO_PROVIDER, Settings, SettingsError, SettingsFaults
from jackfield.signatures.requirement import RequiredSignatures
from jackfield.store import Store, StoreUnavailableError

if TYPE_CHECKING:
    from jackfield_host.host import Host

_log = logging.getLogger(__name__)

PROBE = "readiness"
"""The prefix of the key that is written to check that the store accepts writes."""

UNSHARED = (
    "[host] workers: several workers cannot share the `memory` store, because it is part of one process; set "
    '`store = "sqlite"` (install jackfield-store-sqlite and run `jackfield build`), or use --workers 1'
)


async def start_runtime(
    settings: Settings,
    faults: SettingsFaults,
    closing: AsyncExitStack,
    *,
    certain: bool = True,
    reloadable: bool = False,
    one_of_several: bool = False,
    host_name: str | None = None,
) -> Runtime:
    """Start a runtime with a working provider and store; one `SettingsError` reports every fault.

    If the settings are not `certain`, because keys in the settings file are faulty, faults that may only be
    consequences of that are omitted: a registry, provider or store that was meant to have another name.
    `one_of_several` says that several processes serve a port together, which requires a shared store.
    """
    # With faults in the settings, the host will not start, so it must not create a store.
    may_create = not faults
    try:
        registry = Registry.load(
            settings.registry, Deployment(settings.deployment), RequiredSignatures.of(settings)
        )
        components = PluginComponents.of(registry.snapshot(), settings, registry.drift, faults)
    except (SnapshotError, RegistryError) as error:
        if certain:
            faults.add(str(error))
        raise SettingsError(str(faults)) from None
    closing.push_async_callback(components.close)
    if certain or settings.provider not in ("", AUTO):
        await check_provider(components)
    if certain:
        if one_of_several and components.store_name == "memory":
            faults.add(UNSHARED)
        components.check_store(create=may_create)
        if faults:
            await _check_existing_store(components)
    runtime = await Runtime.assemble(
        registry, components, settings, reloadable=reloadable, host_name=host_name
    )
    await check_store(runtime.store, faults)
    faults.check()
    if host_name:
        await _check_name(runtime.hosts, faults)
        faults.check()
    await _log_store_warnings(components)
    return runtime


async def check_provider(components: PluginComponents) -> None:
    """Choose the provider; add a fault if it cannot be used with these settings."""
    # In a thread, because `provider = "auto"` may contact servers on this machine.
    choice = await asyncio.to_thread(components.faults.collect, lambda: components.provider_choice)
    if choice is None:
        return
    if missing := components.faults.collect(components.provider_unavailable_reason):
        components.faults.add(f"provider: {choice.name} cannot be used: {missing}")
    components.faults.collect(lambda: components.model_choices)


async def check_store(store: Store, faults: SettingsFaults) -> None:
    """Add a fault if the store accepts no writes."""
    try:
        await store.put(f"{PROBE}/start/{os.getpid()}", b"1", ttl=60.0)
    except StoreUnavailableError as error:
        faults.add(f"{error}; or choose a different `store`")


async def _log_store_warnings(components: PluginComponents) -> None:
    """Log what an operator should know about the store."""
    try:
        # In a thread, because it may query a server.
        warnings = await asyncio.to_thread(components.store_warnings)
    except StoreUnavailableError as error:
        # The store has just accepted a write, so the host can serve.
        warnings = [f"cannot find out how durable the store is: {error}"]
    for warning in warnings:
        _log.warning(warning)


async def _check_name(hosts: HostDirectory, faults: SettingsFaults) -> None:
    """Claim the host's name; add a fault if another running host has it."""
    try:
        if await hosts.take_name():
            return
        _log.warning(
            "a host with the name %s uses the store; waiting up to %g s in case it has died",
            hosts.name,
            SILENT_SECONDS,
        )
        if await hosts.take_name(within=SILENT_SECONDS):
            return
        others = ", ".join(each.address for each in await hosts.namesakes() if each.address)
        where = f" at {others}" if others else ""
        faults.add(
            f"[host] name: another host with the name {hosts.name} is running{where}; give each host that "
            "shares the store its own name, or stop the other one first"
        )
    except StoreUnavailableError as error:
        faults.add(str(error))


async def _check_existing_store(components: PluginComponents) -> None:
    """Check the store of a host that will not start, without creating one."""
    try:
        missing = components.store_missing()
    except (SettingsError, StoreUnavailableError):
        # Already reported.
        return
    if missing is None and (store := components.faults.collect(components.store)) is not None:
        await check_store(store, components.faults)


class StartupSummary(NamedTuple):
    """The summary that a host prints or logs when it is ready."""

    url: str
    reachable: str
    """How other machines reach the host; empty if the URL shows that or no other machine can."""
    registry: str
    registry_file: str
    deployment: str
    provider: str
    provider_reason: str
    """Why this provider was chosen."""
    provider_hints: tuple[str, ...]
    """How to get a better provider."""
    modes: tuple[str, ...]
    prompt: tuple[str, ...]
    """The size of each mode's prompt in tokens, and a warning if it exceeds the budget."""
    store: str
    offered: tuple[str, ...]
    withheld: dict[str, str]
    """The tools that are not offered, each with the reason."""
    token: str
    """Which tokens are accepted."""
    sources: tuple[str, ...]
    """Where the settings come from."""
    workers: int = 1
    """The number of processes that serve the port."""

    def lines(self) -> Iterator[str]:
        """Return the lines for people; the URL comes last, where it is easiest to see."""
        yield f"Jackfield {version('jackfield-host')}"
        if self.reachable:
            yield f"  network   {self.reachable}"
        yield f"  registry  {self.registry} ({self.registry_file}, {self.deployment})"
        if self.provider == NO_PROVIDER:
            yield f"  provider  none, conversations are off: {self.provider_reason}; tools can be called"
            yield from (f"  turn on   {hint}" for hint in self.provider_hints)
        else:
            yield f"  provider  {self.provider} ({', '.join(self.modes)}): {self.provider_reason}"
            yield from (f"  better    {hint}" for hint in self.provider_hints)
        yield from (f"  prompt    {figures}" for figures in self.prompt)
        yield f"  store     {self.store}"
        if self.workers > 1:
            yield f"  workers   {self.workers} processes; `max_sessions` applies to each"
        yield f"  tools     {len(self.offered)} offered: {', '.join(self.offered) or 'none'}"
        for reason, tools in self._withheld_by_reason().items():
            yield f"  withheld  {', '.join(tools)}: {reason}"
        yield f"  token     {self.token}"
        yield f"  settings  {', '.join(self.sources) or 'the defaults'}"
        yield f"Open {self.url} · Ctrl-C stops"

    def _withheld_by_reason(self) -> dict[str, list[str]]:
        reasons: dict[str, list[str]] = {}
        for tool, reason in self.withheld.items():
            reasons.setdefault(reason, []).append(tool)
        return reasons

    def facts(self) -> dict[str, Any]:
        """Return the members of the JSON log record."""
        return self._asdict()


def startup_summary(host: Host, settings: Settings, port: int, sources: tuple[str, ...]) -> StartupSummary:
    """Return the summary of a host that listens on a port."""
    sessions = host.sessions
    registry = sessions.runtime.registry
    return StartupSummary(
        url=local_url(host.options.address, port),
        reachable=network_access(host.options.address, port),
        registry=registry.version,
        registry_file=str(settings.registry),
        deployment=registry.deployment.value,
        provider=sessions.factory.provider,
        provider_reason=sessions.factory.provider_choice.reason,
        provider_hints=sessions.factory.provider_choice.hints,
        modes=tuple(sorted(sessions.transport.modes)),
        prompt=tuple(prompt.excess or prompt.figures for prompt in sessions.factory.prompts),
        store=sessions.runtime.components.store_name,
        offered=tuple(sorted(registry.tools)),
        withheld=dict(sorted(registry.withheld.items())),
        token=_token_requirement(host),
        sources=sources,
        workers=host.options.workers,
    )


def local_url(address: str, port: int) -> str:
    """Return the URL for a browser on this machine."""
    name = address
    if _is_unspecified(address):
        name = "localhost"
    elif ":" in address:
        name = f"[{ipaddress.ip_address(address)}]"
    return f"http://{name}:{port}"


def network_access(address: str, port: int) -> str:
    """Return how other machines reach a host that listens on every address; empty for any other host."""
    return f"reachable on port {port} at every address of this machine" if _is_unspecified(address) else ""


def _is_unspecified(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_unspecified
    except ValueError:
        return False


def _token_requirement(host: Host) -> str:
    options = host.options
    if not host.authenticator.requires_token:
        return (
            "not required: every program on this machine has access; if a proxy or tunnel forwards "
            "to this host, set up a token (jackfield key)"
        )
    accepted = []
    if options.keys:
        accepted.append(f"an API key ({', '.join(sorted(options.keys))})")
    if options.jwt:
        accepted.append(f"a JWT for {options.jwt.audience}")
    return f"required: {' or '.join(accepted)}"

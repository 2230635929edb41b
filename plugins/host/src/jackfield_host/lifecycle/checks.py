"""Checks before a host starts: one run reports every fault in settings, registry, provider and store."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack

from jackfield.components import PluginComponents
from jackfield.contract.snapshot import SnapshotError
from jackfield.registry.registry import Deployment, Registry, RegistryError
from jackfield.runtime import Runtime
from jackfield.settings import AUTO, Settings, SettingsError, SettingsFaults
from jackfield.store import Store, StoreUnavailableError

PROBE = "readiness"
"""The key that is written to see whether the store accepts writes."""


async def start_runtime(
    settings: Settings,
    faults: SettingsFaults,
    closing: AsyncExitStack,
    *,
    certain: bool = True,
) -> Runtime:
    """A runtime on a provider and a store that work; one `SettingsError` with every fault otherwise.

    If the settings are not `certain`, because keys of the file are faulty, nothing is reported that may only
    follow from that: a registry, a provider or a store that may have been named differently.
    """
    # A start that is refused for the keys or for [host] creates nothing.
    may_create = not faults
    try:
        registry = Registry.load(settings.registry, Deployment(settings.deployment))
        components = PluginComponents.of(registry.snapshot(), settings, registry.drift, faults)
    except (SnapshotError, RegistryError) as error:
        if certain:
            faults.add(str(error))
        raise SettingsError(str(faults)) from None
    closing.push_async_callback(components.close)
    if certain or settings.provider not in ("", AUTO):
        await check_provider(components)
    if certain:
        components.check_store(create=may_create)
        if faults:
            await _check_existing_store(components)
    runtime = await Runtime.assemble(registry, components, settings)
    await check_store(runtime.store, faults)
    faults.check()
    return runtime


async def check_provider(components: PluginComponents) -> None:
    """Choose the provider; add a fault if it cannot be used as it is set up."""
    # In a thread, because `provider = "auto"` may ask servers on this machine.
    choice = await asyncio.to_thread(components.faults.collect, lambda: components.provider_choice)
    if choice is None:
        return
    if missing := components.faults.collect(components.provider_unavailable_reason):
        components.faults.add(f"provider: {choice.name} cannot be used: {missing}")


async def check_store(store: Store, faults: SettingsFaults) -> None:
    """Add a fault if the store accepts no writes."""
    try:
        await store.put(f"{PROBE}/start/{os.getpid()}", b"1", ttl=60.0)
    except StoreUnavailableError as error:
        faults.add(f"{error}; or choose another `store`")


async def _check_existing_store(components: PluginComponents) -> None:
    """Check the store of a host that will not start."""
    try:
        missing = components.store_missing()
    except (SettingsError, StoreUnavailableError):
        # It was reported already.
        return
    if missing is None and (store := components.faults.collect(components.store)) is not None:
        await check_store(store, components.faults)

"""What has to be good before a host opens its door, and all of it that is not, at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress

from jackfield.contract.snapshot import Snapshot, SnapshotError
from jackfield.provision import Provision
from jackfield.registry.registry import RegistryError
from jackfield.runtime import Runtime
from jackfield.settings import AUTO, Mistakes, Settings, SettingsError
from jackfield.store import Store, StoreUnavailableError

from jackfield_host.options import HostOptions
from jackfield_host.security.gate import Gate

PROBE = "readiness"
"""The key that is written to see whether the store takes something."""


async def started(
    settings: Settings, mistakes: Mistakes, closing: AsyncExitStack, *, create_store: bool = True
) -> Runtime:
    """A runtime on a provider and a store that can be used; all that stands in the way is noted."""
    try:
        runtime = await Runtime.start(settings, create_store=create_store)
    except SettingsError:
        with mistakes:
            await _note_beside(settings, mistakes)
        raise
    closing.push_async_callback(runtime.close)
    with mistakes:
        await check_provider(runtime.provision)
    if create_store or runtime.provision.store_missing() is None:
        with mistakes:
            await check_store(runtime.store)
    return runtime


async def _note_beside(settings: Settings, mistakes: Mistakes) -> None:
    """Note what is wrong with provider and store where something else has kept a runtime from starting."""
    provision = _provision(settings)
    try:
        with mistakes:
            await check_provider(provision)
        # The start has told that nobody offers the store, or that it is missing.
        with suppress(SettingsError):
            if provision.store_missing() is None:
                store = provision.store()
                with mistakes:
                    await check_store(store)
    finally:
        await provision.close()


def _provision(settings: Settings) -> Provision:
    return Provision.of(Snapshot.load(settings.registry), settings)


async def check_provider(provision: Provision) -> None:
    """Choose the provider, and stop the start when it cannot be used as it is set up."""
    # In a thread, because `provider = "auto"` may ask servers on this machine.
    choice = await asyncio.to_thread(lambda: provision.provider_choice)
    if missing := provision.without_provider():
        raise SettingsError(f"the provider {choice.name} cannot be used: {missing}")


async def check_store(store: Store) -> None:
    """Stop the start when the store takes nothing."""
    try:
        await store.put(f"{PROBE}/start/{os.getpid()}", b"1", ttl=60.0)
    except StoreUnavailableError as error:
        raise SettingsError(f"{error}; or choose another `store`") from None


@contextmanager
def noting(mistakes: Mistakes) -> Iterator[None]:
    """Note what is wrong with the registry beside what is wrong with settings, which would hide it."""
    with mistakes:
        try:
            yield
        except (SnapshotError, RegistryError) as error:
            raise SettingsError(str(error)) from None


async def judge(settings: Settings, options: HostOptions | None, *, certain: bool) -> None:
    """Raise with everything that would keep a host with these settings from starting; nothing stays open.

    Where they are not `certain` to be all that was meant, only for what stands in them: not for a registry
    or a provider that may have been named otherwise. No store is created: `deployment` may be misspelt.
    """
    mistakes = Mistakes()
    if options is not None:
        with mistakes:
            Gate(options)
    async with AsyncExitStack() as closing:
        if certain:
            with noting(mistakes):
                await started(settings, mistakes, closing, create_store=False)
        else:
            with mistakes:
                closing.push_async_callback((await Runtime.start(settings, create_store=False)).close)
            with mistakes:
                if settings.provider not in ("", AUTO):
                    await check_provider(_provision(settings))
    mistakes.tell()

"""Opens the deployment's store for commands that read or change it, even while a host runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    from jackfield.components import PluginComponents
    from jackfield.contract.snapshot import Snapshot
    from jackfield.orchestrator import Observer
    from jackfield.settings import Settings
    from jackfield.store import Store

_T = TypeVar("_T")


class StoreWithObservers(NamedTuple):
    """A store with the observers of the deployment."""

    store: Store
    observers: tuple[Observer, ...]
    snapshot: Snapshot


def with_store(settings: Settings, work: Callable[[Store], Awaitable[_T]]) -> _T:
    """Run `work` with the deployment's store and return its result."""

    async def run() -> _T:
        async with _open_store(settings) as (store, _):
            return await work(store)

    return _run(run)


def with_observed_store(settings: Settings, work: Callable[[StoreWithObservers], Awaitable[_T]]) -> _T:
    """Run `work` with the store and the observers; fail before `work` if an observer cannot be created."""

    async def run() -> _T:
        from jackfield.contract.snapshot import Snapshot
        from jackfield.offers import Services

        async with _open_store(settings) as (store, components):
            observers = tuple(components.create_all("observers", Services(store)).values())
            components.faults.check()
            return await work(StoreWithObservers(store, observers, Snapshot.load(settings.registry)))

    return _run(run)


def operator_name() -> str:
    """Return the current user's name, or the user id if the user has no name, as in some containers."""
    import getpass
    import os

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _run(work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    import asyncio

    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.store import StoreUnavailableError

    try:
        return asyncio.run(work())
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError, ValueError) as error:
        # The store raises ValueError for a key that it cannot use.
        raise click.ClickException(str(error)) from None


@asynccontextmanager
async def _open_store(settings: Settings) -> AsyncIterator[tuple[Store, PluginComponents]]:
    from jackfield.components import PluginComponents
    from jackfield.signatures.requirement import load_snapshot

    components = PluginComponents.of(load_snapshot(settings), settings)
    components.faults.check()
    if components.store_name == "memory":
        raise click.ClickException(
            "this deployment uses the `memory` store, which no other process can read; to keep sessions and "
            "bans, install jackfield-store-sqlite and run `jackfield build`"
        )
    try:
        yield components.store(), components
    finally:
        await components.close()

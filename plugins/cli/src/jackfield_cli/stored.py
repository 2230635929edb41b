"""Work on the store of a deployment, for commands that look at what it keeps or change it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    from jackfield.components import PluginComponents
    from jackfield.orchestrator import Observer
    from jackfield.settings import Settings
    from jackfield.store import Store

_T = TypeVar("_T")


class Watched(NamedTuple):
    """A store, and those who are told of every call of the deployment."""

    store: Store
    observers: tuple[Observer, ...]
    registry_version: str


def with_store(settings: Settings, work: Callable[[Store], Awaitable[_T]]) -> _T:
    """What some work on the store of a deployment comes to; also beside a running host."""

    async def worked() -> _T:
        async with _store(settings) as (store, _):
            return await work(store)

    return _run(worked)


def with_watched_store(settings: Settings, work: Callable[[Watched], Awaitable[_T]]) -> _T:
    """The same for work that observers are told of; where one of them cannot be made, nothing is done."""

    async def worked() -> _T:
        from jackfield.contract.snapshot import Snapshot
        from jackfield.offers import Services

        async with _store(settings) as (store, components):
            observers = tuple(components.create_all("observers", Services(store)).values())
            components.faults.check()
            return await work(Watched(store, observers, Snapshot.load(settings.registry).version))

    return _run(worked)


def operator_name() -> str:
    """Who is logged in; a container may know no name for that."""
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
        # The last one is the store's word on a name that it cannot keep anything under.
        raise click.ClickException(str(error)) from None


@asynccontextmanager
async def _store(settings: Settings) -> AsyncIterator[tuple[Store, PluginComponents]]:
    from jackfield.components import PluginComponents
    from jackfield.contract.snapshot import Snapshot

    components = PluginComponents.of(Snapshot.load(settings.registry), settings)
    components.faults.check()
    if components.store_name == "memory":
        raise click.ClickException(
            "the store of this deployment is `memory`, which ends with its host: nothing is kept for others "
            "to see; install jackfield-store-sqlite, run `jackfield build`, and sessions and bans are kept"
        )
    try:
        yield components.store(), components
    finally:
        await components.close()

"""Work on the store of a deployment, for commands that look at what it keeps or change it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from jackfield.settings import Settings
    from jackfield.store import Store

_T = TypeVar("_T")


def with_store(settings: Settings, work: Callable[[Store], Awaitable[_T]]) -> _T:
    """What some work on the store of a deployment comes to; also beside a running host."""
    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.store import StoreUnavailableError

    async def worked() -> _T:
        async with _store(settings) as store:
            return await work(store)

    try:
        return asyncio.run(worked())
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None


@asynccontextmanager
async def _store(settings: Settings) -> AsyncIterator[Store]:
    from jackfield.contract.snapshot import Snapshot
    from jackfield.provision import Provision

    provision = Provision.of(Snapshot.load(settings.registry), settings)
    provision.mistakes.tell()
    if provision.store_name == "memory":
        raise click.ClickException(
            "the store of this deployment is `memory`, which ends with its host: nothing is kept for others "
            "to see; install jackfield-store-sqlite, run `jackfield build`, and sessions and bans are kept"
        )
    store = provision.store()
    try:
        yield store
    finally:
        await store.close()

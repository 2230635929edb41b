"""`jackfield store`: creates the deployment's store, shows its identity and copies it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.options import as_json, with_registry
from jackfield_cli.terminal import echo, print_json

if TYPE_CHECKING:
    from jackfield.offers import StoreOffer
    from jackfield.settings import Settings


@click.group()
def store() -> None:
    """Create this deployment's store, show its identity, or back it up.

    In production, only `jackfield store create` creates a store: a host without its store does not start.
    """


@store.command()
@with_registry
def create(settings: Settings) -> None:
    """Create the configured store; fails if something already exists at its location."""
    with _offer(settings) as (offer, chosen):
        if offer.initialise is None:
            raise click.ClickException(f"the store {offer.name!r} does not need to be created")
        echo(offer.initialise(chosen))


@store.command()
@with_registry
@as_json
def show(settings: Settings, as_json: bool) -> None:
    """Show the store's identity and size. Works while a host is running.

    The numbers of claims, values and streams include expired ones that have not been pruned yet.
    """
    with _offer(settings) as (offer, chosen):
        if offer.describe is None:
            raise click.ClickException(f"the store {offer.name!r} does not report its identity or size")
        if why := offer.missing(chosen):
            raise click.ClickException(why)
        facts = offer.describe(chosen)
    if as_json:
        print_json(facts)
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        echo(f"{name:<{width}}  {'unknown' if value is None else value}")


@store.command()
@click.argument("file", type=click.Path(path_type=Path))
@with_registry
def backup(settings: Settings, file: Path) -> None:
    """Copy the store to FILE, which must not exist. Works while a host is running."""
    with _offer(settings) as (offer, chosen):
        if offer.backup is None:
            raise click.ClickException(
                f"the store {offer.name!r} cannot be backed up to a file; "
                "use the backup tool of its database server"
            )
        echo(offer.backup(chosen, file))


@contextmanager
def _offer(settings: Settings) -> Iterator[tuple[StoreOffer, Any]]:
    from jackfield.components import PluginComponents
    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.signatures.requirement import load_snapshot
    from jackfield.store import StoreUnavailableError

    try:
        components = PluginComponents.of(load_snapshot(settings), settings)
        components.faults.check()
        if components.store_name == "memory":
            raise click.ClickException(
                "this deployment uses the `memory` store, which exists only while its process runs and does "
                "not need to be created; for a persistent store, install jackfield-store-sqlite and run "
                "`jackfield build`"
            )
        yield components.store_offer()
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None

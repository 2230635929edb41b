"""`jackfield store`: create the store of a deployment, and see which one it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.options import as_json, print_json, with_registry
from jackfield_cli.report import echo

if TYPE_CHECKING:
    from jackfield.offers import StoreOffer
    from jackfield.settings import Settings


@click.group()
def store() -> None:
    """Create the store of this deployment, or show which one it is.

    In production nothing else creates a store: a host whose store is missing does not start.
    """


@store.command()
@with_registry
def create(settings: Settings) -> None:
    """Create the store that the settings name; refuse if there is anything in its place."""
    with _offer(settings) as (offer, chosen):
        if offer.initialise is None:
            raise click.ClickException(f"the store {offer.name!r} does not have to be created")
        echo(offer.initialise(chosen))


@store.command()
@with_registry
@as_json
def show(settings: Settings, as_json: bool) -> None:
    """Show the identity of the store and how much is in it; works beside a running host.

    Claims, values and streams are counted with what has expired and was not pruned yet.
    """
    with _offer(settings) as (offer, chosen):
        if offer.describe is None:
            raise click.ClickException(f"the store {offer.name!r} has nothing to show")
        if why := offer.missing(chosen):
            raise click.ClickException(why)
        facts = offer.describe(chosen)
    if as_json:
        print_json(facts)
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        echo(f"{name:<{width}}  {'not known' if value is None else value}")


@contextmanager
def _offer(settings: Settings) -> Iterator[tuple[StoreOffer, Any]]:
    from jackfield.components import PluginComponents
    from jackfield.contract.snapshot import Snapshot, SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.store import StoreUnavailableError

    try:
        components = PluginComponents.of(Snapshot.load(settings.registry), settings)
        components.faults.check()
        if components.store_name == "memory":
            raise click.ClickException(
                "the store of this deployment is `memory`, which ends with its process and is never created; "
                "for one that lasts, install jackfield-store-sqlite and run `jackfield build`"
            )
        yield components.store_offer()
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None

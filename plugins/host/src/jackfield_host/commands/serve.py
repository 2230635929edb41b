"""`jackfield serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from jackfield.cli.options import with_registry

if TYPE_CHECKING:
    from jackfield.settings import Settings


@click.command()
@click.option("--address", metavar="ADDRESS", help="The address to listen on (default: 127.0.0.1).")
@click.option(
    "--port", type=int, metavar="PORT", help="The port to listen on (default: 8765; 0: a free one)."
)
@click.option("--provider", metavar="NAME", help="The provider of models, instead of the setting `provider`.")
@with_registry
def serve(settings: Settings, address: str | None, port: int | None, provider: str | None) -> None:
    """Serve voice and text sessions until told to stop."""
    import asyncio
    from dataclasses import replace

    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.store import StoreUnavailableError

    from jackfield_host.options import HostOptions
    from jackfield_host.serving import serve as run

    if provider:
        settings = replace(settings, provider=provider)
    try:
        options = HostOptions.load(settings.sections.get("host", {}), address=address, port=port)
        asyncio.run(run(settings, options))
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None

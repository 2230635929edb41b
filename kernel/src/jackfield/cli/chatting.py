"""`jackfield chat`: a conversation in the terminal, with whichever provider is set up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jackfield.cli.options import with_registry

if TYPE_CHECKING:
    from jackfield.settings import Settings


@click.command()
@click.option("--provider", metavar="NAME", help="The provider of models, instead of the setting `provider`.")
@click.option("--user", metavar="NAME", help="Who is talking.")
@click.option("--yes", is_flag=True, help="Approve without asking, where a tool needs confirmation.")
@with_registry
def chat(settings: Settings, provider: str | None, user: str | None, yes: bool) -> None:
    """Talk to a model that may use the registry's tools, under every policy.

    Write a line and read the answer as it comes; what tools do is shown in between, and what needs your word
    is asked. Ctrl-C interrupts an answer, Ctrl-D ends. Lines from a pipe are taken one after the other.
    """
    import asyncio
    from dataclasses import replace

    from jackfield.cli.terminal import converse
    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.store import StoreUnavailableError
    from jackfield.transport.protocol import TransportError

    if provider:
        settings = replace(settings, provider=provider)
    try:
        asyncio.run(converse(settings, user, approve=yes))
    except TransportError as error:
        raise click.ClickException(_explained(error.code, error.detail)) from None
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None


def _explained(code: str, detail: str) -> str:
    from jackfield.transport.troubles import TROUBLES

    kind = TROUBLES[code]
    return f"{kind.sentence} {kind.suggestion}" + (f" ({detail})" if detail else "")

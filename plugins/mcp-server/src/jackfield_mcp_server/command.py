"""`jackfield mcp`: serves one MCP client over stdio."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from jackfield_host.commands.deployment import with_deployment

if TYPE_CHECKING:
    from jackfield_host.commands.deployment import DeploymentSettings


@click.command()
@click.option("--user", default="local", show_default=True, help="The user for whom calls are made.")
@click.option("--role", "roles", multiple=True, help="A role of that user; repeatable.")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The deployment's folder, in which the command runs (default: where the client starts it).",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="The lowest level of the messages on stderr.",
)
@with_deployment
def mcp(
    load: Callable[..., DeploymentSettings],
    user: str,
    roles: tuple[str, ...],
    folder: Path | None,
    log_level: str,
) -> None:
    """Serve the tools to an MCP client over stdin and stdout.

    An MCP client starts this command itself; it ends when the client closes stdin. A client may start it in
    any folder, so set --folder to the folder that contains jackfield.toml and the registry. All policies
    apply, as on a host. A host that uses the same store shows the confirmation cards: set `public_url` in
    [endpoints.mcp] to its URL.
    """
    if folder is not None:
        os.chdir(folder)
    _serve(load(provider="none", log_level=log_level), user, frozenset(roles))


def _serve(deployment: DeploymentSettings, user: str, roles: frozenset[str]) -> None:
    import asyncio

    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.store import StoreUnavailableError
    from jackfield_host.logs import configure_logging
    from jackfield_host.settings import MAX_NAME, is_valid_name
    from jackfield_sessions.admission import Identity

    from jackfield_mcp_server.stdio import serve_stdio

    for name in (user, *roles):
        if not is_valid_name(name):
            raise click.BadParameter(
                f"{name!r} is not a valid name for a user or a role; use 1 to {MAX_NAME} printable "
                "characters without spaces around them"
            )
    configure_logging(deployment.host, deployment.document, os.environ)
    served: Any = serve_stdio(deployment, Identity(user, roles))
    try:
        asyncio.run(served)
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None

"""`jackfield serve`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from jackfield_host.commands.deployment import with_deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackfield_host.commands.deployment import Deployment
    from jackfield_host.house import House


@click.command()
@click.option("--address", metavar="ADDRESS", help="The address to listen on (default: 127.0.0.1).")
@click.option(
    "--port", type=int, metavar="PORT", help="The port to listen on (default: 8765; 0: a free one)."
)
@click.option("--provider", metavar="NAME", help="The provider of models, instead of the setting `provider`.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="How much is logged (default: info).",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    help="A log for people or for machines (default: text).",
)
@click.option("--access-log/--no-access-log", default=None, help="Log every request (default: do not).")
@with_deployment
def serve(load: Callable[..., Deployment], **flags: Any) -> None:
    """Serve voice and text sessions until told to stop.

    SIGTERM or Ctrl-C drains: no new sessions, running tools finish, clients are told to reconnect. The second
    one ends at once. Settings: flags, then JACKFIELD_HOST_* in the environment, then [host] in the settings
    file; `jackfield settings` shows them.
    """
    import logging

    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.store import StoreUnavailableError

    from jackfield_host.lifecycle import logs
    from jackfield_host.serving import run

    deployment = load(**flags)
    if deployment.faults:
        # The start goes on only to find the other faults; what it logs is of no use.
        logging.disable()
    else:
        logs.set_up(deployment.host, deployment.document, os.environ)
    try:
        status = run(
            deployment.settings,
            deployment.host,
            lambda house, port: _announce(house, port, deployment),
            deployment.faults,
            certain=deployment.certain,
        )
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None
    except Exception:
        # Whatever it is, it must not hide the faults that are known.
        if deployment.faults:
            raise click.ClickException(str(deployment.faults)) from None
        raise
    finally:
        logging.disable(logging.NOTSET)
    sys.exit(status)


def _announce(house: House, port: int, deployment: Deployment) -> None:
    import logging

    from jackfield_host.lifecycle.announcement import announcement

    said = announcement(house, deployment.settings, port, deployment.sources())
    if deployment.host.log_format == "json":
        logging.getLogger(__name__).info("serving at %s", said.url, extra=said.facts())
        return
    for line in said.lines():
        click.echo(line)

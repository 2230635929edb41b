"""`jackfield serve`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from jackfield_host.commands.deployment import with_deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackfield.settings import Settings

    from jackfield_host.commands.deployment import Deployment
    from jackfield_host.house import House
    from jackfield_host.options import HostOptions


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
    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.store import StoreUnavailableError

    from jackfield_host.lifecycle import logs
    from jackfield_host.serving import run

    deployment = load(rest=_rest, **flags)
    settings, options = deployment.settings, deployment.options
    logs.set_up(options, deployment.document, os.environ)
    try:
        status = run(settings, options, lambda house, port: _announce(house, port, deployment))
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None
    sys.exit(status)


def _rest(settings: Settings, options: HostOptions | None, certain: bool) -> str:
    """What would stop a start with settings that are right so far."""
    import asyncio
    import logging

    from jackfield.settings import SettingsError

    from jackfield_host.lifecycle.checks import judge

    # What plugins log about a start that will not be is not for anybody.
    logging.disable()
    try:
        asyncio.run(judge(settings, options, certain=certain))
    except SettingsError as error:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever it is, it must not hide the mistakes that are known
        return ""
    finally:
        logging.disable(logging.NOTSET)
    return ""


def _announce(house: House, port: int, deployment: Deployment) -> None:
    import logging

    from jackfield_host.lifecycle.announcement import announcement

    said = announcement(house, deployment.settings, port, deployment.sources())
    if deployment.options.log_format == "json":
        logging.getLogger(__name__).info("serving at %s", said.url, extra=said.facts())
        return
    for line in said.lines():
        click.echo(line)

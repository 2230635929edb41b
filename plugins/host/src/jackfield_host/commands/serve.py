"""`jackfield serve`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from jackfield_host.commands.deployment import with_deployment

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jackfield_host.commands.deployment import DeploymentSettings
    from jackfield_host.development.reloader import Reloader
    from jackfield_host.host import Host


_OPTIONS = (
    click.option("--address", metavar="ADDRESS", help="The address to listen on (default: 127.0.0.1)."),
    click.option(
        "--port", type=int, metavar="PORT", help="The port to listen on (default: 8765; 0 picks a free one)."
    ),
    click.option("--provider", metavar="NAME", help="The model provider; overrides the setting `provider`."),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        help="The log level (default: info).",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        help="The log format (default: text).",
    ),
    click.option("--access-log/--no-access-log", default=None, help="Log every request (default: off)."),
)


def serving_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that serves."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@serving_options
@with_deployment
def serve(load: Callable[..., DeploymentSettings], **flags: Any) -> None:
    """Serve voice and text sessions until a signal stops the host.

    SIGTERM or Ctrl-C drains the host: it accepts no new sessions, running tools finish, clients reconnect. A
    second signal stops at once. Flags override JACKFIELD_HOST_* in the environment, and those override [host]
    in the settings file; `jackfield settings` shows them.
    """
    deployment = load(**flags)
    sys.exit(serve_deployment(deployment, lambda host, port: report_ready(host, port, deployment)))


def serve_deployment(
    deployment: DeploymentSettings,
    on_ready: Callable[[Host, int], None],
    prepare: Callable[[], Awaitable[Reloader]] | None = None,
) -> int:
    """Serve until a signal stops the host, and return the exit status; faults become a `ClickException`.

    `prepare` builds the registry and returns the development loop.
    """
    import logging

    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.store import StoreUnavailableError

    from jackfield_host.logs import configure_logging
    from jackfield_host.server import run

    if deployment.faults:
        # The start continues only to find the other faults; its log would be misleading.
        logging.disable()
    else:
        configure_logging(deployment.host, deployment.document, os.environ)
    try:
        return run(
            deployment.settings,
            deployment.host,
            on_ready,
            deployment.faults,
            certain=deployment.certain,
            # Faulty settings cannot be built with; the start reports all faults.
            prepare=None if deployment.faults else prepare,
        )
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None
    except Exception:
        # An unexpected error must not hide the known faults.
        if deployment.faults:
            raise click.ClickException(str(deployment.faults)) from None
        raise
    finally:
        logging.disable(logging.NOTSET)


def report_ready(host: Host, port: int, deployment: DeploymentSettings) -> None:
    """Print the summary of a host that listens on a port."""
    import logging

    from jackfield_host.startup import startup_summary

    summary = startup_summary(host, deployment.settings, port, deployment.sources())
    if deployment.host.log_format == "json":
        logging.getLogger(__name__).info("serving at %s", summary.url, extra=summary.facts())
        return
    for line in summary.lines():
        click.echo(line)

"""`jackfield serve`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from jackfield_host.commands.deployment import with_deployment

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jackfield_host.commands.deployment import DeploymentSettings
    from jackfield_host.development.reloader import Reloader
    from jackfield_host.host import Host
    from jackfield_host.startup import StartupSummary
    from jackfield_host.worker import Worker


_OPTIONS = (
    click.option("--address", metavar="ADDRESS", help="The address to listen on (default: 127.0.0.1)."),
    click.option(
        "--port", type=int, metavar="PORT", help="The port to listen on (default: 8765; 0 picks a free one)."
    ),
    click.option("--provider", metavar="NAME", help="The model provider; overrides the `provider` setting."),
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
@click.option(
    "--workers",
    type=int,
    metavar="N",
    help="The number of processes that serve the port (default: 1); several processes need a shared store.",
)
@with_deployment
def serve(load: Callable[..., DeploymentSettings], **flags: Any) -> None:
    """Serve voice and text sessions until a signal stops the host.

    SIGTERM or Ctrl-C drains the host: it accepts no new sessions, running tools finish, and clients
    reconnect. A second signal stops the host immediately. With --workers, a parent process restarts workers
    that die, and stops all of them when it gets a signal. Options override JACKFIELD_HOST_* variables, which
    override [host] in the settings file; `jackfield settings` shows the values in effect.
    """
    deployment = load(**flags)
    # Faulty settings are never served; one process finds the other faults.
    if deployment.host.workers > 1 and not deployment.faults:
        sys.exit(_serve_with_workers(deployment))
    sys.exit(serve_deployment(deployment, lambda host, port: report_ready(host, port, deployment)))


def _serve_with_workers(deployment: DeploymentSettings) -> int:
    """Serve with several processes until a signal stops them, and return the exit status."""
    from jackfield.settings import SettingsError

    from jackfield_host.logs import configure_logging
    from jackfield_host.startup import StartupSummary, startup_summary
    from jackfield_host.supervisor import Supervisor

    def serve_in_worker(worker: Worker) -> int:
        def ready(host: Host, port: int) -> None:
            summary = startup_summary(host, deployment.settings, port, deployment.sources())
            worker.parent.report_ready(summary.facts())

        own = replace(deployment, host=worker.settings(deployment.host))
        try:
            return serve_deployment(own, ready, worker=worker)
        except click.ClickException as error:
            error.show()
            return error.exit_code

    configure_logging(deployment.host, deployment.document, os.environ)
    try:
        supervisor = Supervisor(
            deployment.host,
            serve_in_worker,
            lambda summary: _print_summary(StartupSummary(**summary), deployment),
        )
        return supervisor.run()
    except SettingsError as error:
        raise click.ClickException(str(error)) from None


def serve_deployment(
    deployment: DeploymentSettings,
    on_ready: Callable[[Host, int], None],
    prepare: Callable[[], Awaitable[Reloader]] | None = None,
    worker: Worker | None = None,
) -> int:
    """Serve until a signal stops the host, and return the exit status; faults become a `ClickException`.

    `prepare` builds the registry and returns the development loop. `worker` says that this process is one of
    several that serve a port together.
    """
    import gc
    import logging

    # Almost everything that is created at startup stays, so collections would find next to nothing. The
    # server enables them again when startup is complete.
    gc.disable()
    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield.store import StoreUnavailableError

    from jackfield_host.logs import configure_logging
    from jackfield_host.uvicorn_server import run

    if deployment.faults:
        # The start continues only to find the other faults; its log would be misleading.
        logging.disable()
    else:
        number = worker.parent.number if worker is not None else 0
        configure_logging(deployment.host, deployment.document, os.environ, worker=number)
    try:
        return run(
            deployment.settings,
            deployment.host,
            on_ready,
            deployment.faults,
            certain=deployment.certain,
            # Faulty settings cannot be built with; the start reports all faults.
            prepare=None if deployment.faults else prepare,
            worker=worker,
        )
    except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
        raise click.ClickException(str(error)) from None
    except Exception:
        # An unexpected error must not hide the known faults.
        if deployment.faults:
            raise click.ClickException(str(deployment.faults)) from None
        raise
    finally:
        gc.enable()
        logging.disable(logging.NOTSET)


def report_ready(host: Host, port: int, deployment: DeploymentSettings) -> None:
    """Print the summary of a host that listens on a port."""
    from jackfield_host.startup import startup_summary

    _print_summary(startup_summary(host, deployment.settings, port, deployment.sources()), deployment)


def _print_summary(summary: StartupSummary, deployment: DeploymentSettings) -> None:
    import logging

    if deployment.host.log_format == "json":
        logging.getLogger(__name__).info("serving at %s", summary.url, extra=summary.facts())
        return
    for line in summary.lines():
        click.echo(line)

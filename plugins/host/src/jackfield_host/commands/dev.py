"""`jackfield dev`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jackfield_host.commands.deployment import with_deployment
from jackfield_host.commands.serve import report_ready, serve_deployment, serving_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackfield_host.commands.deployment import DeploymentSettings
    from jackfield_host.development.build_worker import BuildWorker, WorkerResult
    from jackfield_host.development.reloader import Reloader
    from jackfield_host.development.source_watch import SourceWatch
    from jackfield_host.host import Host


_KEEP_PREVIOUS = "_JACKFIELD_DEV_KEEP_PREVIOUS"
"""Set by a process that restarts itself after it has made a backup of the first registry."""


@click.command()
@serving_options
@with_deployment
def dev(load: Callable[..., DeploymentSettings], **flags: Any) -> None:
    """Serve for development: build, serve, and watch the sources of the installed tools.

    When you save a guide, a schema or a handler, it is checked, rebuilt and served at once. Sessions continue
    with the new registry. Errors are shown in this terminal and in the console, and the last valid registry
    stays in use. The host restarts when a plugin, the settings file or the installed packages change. The
    options and signals are the same as for `jackfield serve`, but there is always only one process.
    """
    deployment = load(**flags)
    deployment = replace(deployment, host=replace(deployment.host, workers=1))
    if deployment.settings.deployment != "development":
        raise click.ClickException(
            "`jackfield dev` is for development only; for production run `jackfield build` and "
            "`jackfield serve`"
        )
    loop = _DevelopmentLoop(deployment)
    status = serve_deployment(deployment, loop.report_ready, loop.prepare)
    if loop.restart_requested:
        loop.restart()
    sys.exit(status)


class _DevelopmentLoop:
    """Builds before the host starts, and starts the process again if the host requests that."""

    def __init__(self, deployment: DeploymentSettings) -> None:
        self._deployment = deployment
        self._is_text = deployment.host.log_format == "text"
        self._reloader: Reloader | None = None
        self._port = 0
        self._worker: BuildWorker | None = None

    @property
    def restart_requested(self) -> bool:
        return self._reloader is not None and self._reloader.restart_requested

    def report_ready(self, host: Host, port: int) -> None:
        self._port = port
        report_ready(host, port, self._deployment)

    async def prepare(self) -> Reloader:
        """Build until there is a registry to start with; return the loop that keeps it up to date."""
        from jackfield.settings import config_path

        from jackfield_host.development.build_worker import BuildWorker
        from jackfield_host.development.reloader import Reloader

        deployment = self._deployment
        settings_file = config_path(Path(deployment.config) if deployment.config else None)
        worker = self._worker = BuildWorker(
            deployment.config,
            deployment.given,
            report=self._is_text,
            # Taken out of the environment, so that no other process inherits it.
            keep_previous=os.environ.pop(_KEEP_PREVIOUS, "") == "1",
        )
        result = await worker.build(report=False)
        if result.version is None:
            result = await self._fixed_build(worker, self._watch(result, settings_file))
        self._reloader = Reloader(
            worker,
            result,
            self._watch(result, settings_file),
            deployment.settings.registry,
            say=self._say,
        )
        return self._reloader

    def _watch(self, result: WorkerResult, settings_file: Path) -> SourceWatch:
        from jackfield_host.development.source_watch import SourceWatch

        return SourceWatch(result.folders, settings_file, self._deployment.settings.prompts)

    async def _fixed_build(self, worker: BuildWorker, watch: SourceWatch) -> WorkerResult:
        """Show the errors, wait for changes and build again until there is a registry."""
        import asyncio

        watching = asyncio.create_task(watch.run())
        try:
            # First build again, because a file may have been saved before the watch began.
            while (result := await worker.build()).version is None:
                self._say(f"{result.problem or 'There is no registry to serve'}; waiting for a change.")
                changes = await watch.next(watching)
                await worker.restart()
                if changes.settings or changes.installed:
                    # The new process watches what is installed now.
                    self.restart()
            return result
        finally:
            watching.cancel()

    def restart(self) -> None:
        """Replace this process with a new one that has the same arguments and the same port."""
        arguments = [*sys.orig_argv[1:]]
        if self._port and self._deployment.host.port == 0:
            arguments += ["--port", str(self._port)]
        if self._worker is not None and self._worker.keep_previous:
            os.environ[_KEEP_PREVIOUS] = "1"
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - the command that runs already

    def _say(self, line: str) -> None:
        if self._is_text:
            import time

            click.echo(f"{time.strftime('%H:%M:%S')}  {line}")
        else:
            import logging

            logging.getLogger(__name__).info(line)

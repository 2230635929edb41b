"""Rebuilds and reloads the registry of a running host whenever a source changes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jackfield.contract.snapshot import Snapshot, SnapshotError
from jackfield.registry.registry import RegistryError, needs_restart
from jackfield.settings import SettingsError

from jackfield_host.development.plugin_modules import PluginModules, plugin_modules
from jackfield_host.development.source_watch import SourceChanges, SourceWatch
from jackfield_host.development.status import DevelopmentStatus

if TYPE_CHECKING:
    from jackfield_host.development.build_worker import BuildWorker, WorkerResult
    from jackfield_host.host import Host

_log = logging.getLogger(__name__)

MAX_NAMES = 6
"""The maximum number of tools listed by name; the others are only counted."""


class Reloader:
    """The development loop of one host."""

    def __init__(
        self,
        worker: BuildWorker,
        first: WorkerResult,
        watch: SourceWatch,
        registry: Path,
        *,
        say: Callable[[str], None],
    ) -> None:
        """`first` is the build that the host starts with; `say` prints a line for the developer.

        Create the reloader before the host imports plugins, so that a file saved in between counts as
        changed.
        """
        shown = [each for each in first.findings if each["severity"] != "note"]
        self.status = DevelopmentStatus(shown, watch.accept_listings)
        self.restart_requested = False
        """True if the process must restart to serve the changes."""
        self._worker = worker
        self._say = say
        self._tool_folders = [Path(folder) for folder in first.tool_folders]
        self._watch = watch
        self._watched = len(first.folders)
        self._plugin_modules = plugin_modules(Snapshot.load(registry))

    async def run(self, host: Host, stop: Callable[[], None]) -> None:
        """Watch and reload until cancelled; `stop` drains the host for a restart."""
        self._say(
            f"Watching {self._watched} {_noun(self._watched, 'source')}: a saved tool is served at once."
        )
        watching = asyncio.create_task(self._watch.run())
        try:
            await self._check_start(host)
            while not self.restart_requested:
                changes = await self._watch.next(watching)
                try:
                    await self._handle(changes, host)
                except Exception as error:  # noqa: BLE001 - the loop must outlast any fault
                    _log.exception("the development loop failed")
                    await self._report_failure(f"the reload failed: {type(error).__name__}: {error}")
            stop()
        finally:
            watching.cancel()
            await self._worker.close()

    async def _check_start(self, host: Host) -> None:
        """Build once more, because a file may have been saved while the host started."""
        started = time.monotonic()
        await self._worker.restart()
        result = await self._worker.build()
        if result.version != host.sessions.runtime.registry.version:
            await self._apply(result, SourceChanges(), host, started)

    async def _handle(self, changes: SourceChanges, host: Host) -> None:
        started = time.monotonic()
        if changes.projects:
            names = ", ".join(sorted(_shown(path) for path in changes.projects))
            self._say(f"{names} changed: reinstall the project to apply its entry points and dependencies.")
        if not (changes.sources or changes.settings or changes.is_external):
            if changes.prompts:
                await self._reload_prompts(host)
            return
        if changes.installed or changes.settings or not self._only_tools(changes):
            # The worker has imported code or read metadata that has changed.
            await self._worker.restart()
        result = await self._worker.build(keep_listed=not changes.listings)
        await self._apply(result, changes, host, started)

    async def _apply(self, result: WorkerResult, changes: SourceChanges, host: Host, started: float) -> None:
        """Serve what was built, or report why that is not possible."""
        if result.version is None:
            await self._report_failed_build(result, changes)
        elif changes.settings or changes.installed:
            what = "the settings changed" if changes.settings else "a distribution was installed or removed"
            self._restart(what)
        else:
            await self._reload(result, changes, host, started)

    def _only_tools(self, changes: SourceChanges) -> bool:
        return all(any(path.is_relative_to(each) for each in self._tool_folders) for path in changes.sources)

    async def _reload(self, result: WorkerResult, changes: SourceChanges, host: Host, started: float) -> None:
        runtime, sessions = host.sessions.runtime, host.sessions
        path, before = runtime.registry.path, runtime.registry.snapshot()
        if result.version == before.version or path is None:
            message = f"{_names(changes)}: no change to registry {before.version}"
            await self._report(result, message)
            return
        try:
            after = Snapshot.load(path)
            now = await asyncio.to_thread(plugin_modules, after)
            if reason := self._restart_reason(before, after, now, changes):
                self._restart(reason)
                return
            runtime.reload({name for each in self._plugin_modules.values() for name in each.modules})
            tools = _changed_tools(before, runtime.registry.snapshot())
            await sessions.adopt_registry(tools)
        except (RegistryError, SnapshotError, SettingsError) as error:
            await self._report_failure(str(error))
            return
        seconds = time.monotonic() - started
        live = len(sessions.live)
        going_on = (
            f"; {live} {'session continues' if live == 1 else 'sessions continue'} with it" if live else ""
        )
        listed = ", ".join(tools) if len(tools) <= MAX_NAMES else f"{len(tools)} tools"
        await self._report(
            result,
            f"{listed or _names(changes)}: built and loaded registry {result.version} in {seconds:.1f} s"
            f"{going_on}",
            tools,
        )

    def _restart_reason(
        self, before: Snapshot, after: Snapshot, now: Mapping[str, PluginModules], changes: SourceChanges
    ) -> str | None:
        """Return why the host has to restart; None if it need not."""
        for owner, found in now.items():
            started = self._plugin_modules.get(owner)
            # A saved file may be built before the watch notices it, so the changes may not name it.
            if started is not None and (files := started.changed(found)):
                reason = found.unclear or f"the plugin of {owner} uses {'it' if len(files) == 1 else 'them'}"
                names = _names(SourceChanges(files))
                return f"{names} changed: {reason}, and plugins are loaded only at startup"
        # The modules of the other plugins are unchanged, whatever else changed in their packages.
        if needs_restart(before, after, self._plugin_modules.keys() & now.keys()):
            return f"{_names(changes)} changed, and plugins are loaded only at startup"
        return None

    async def _reload_prompts(self, host: Host) -> None:
        try:
            await host.sessions.adopt_registry()
        except SettingsError as error:
            await self._report_failure(str(error))
            return
        self._say("The prompts changed: the next turns use them.")

    def _restart(self, reason: str) -> None:
        self._say(f"{reason}; the host restarts, and clients resume their sessions.")
        self.restart_requested = True

    async def _report(self, result: WorkerResult, message: str, tools: list[str] | None = None) -> None:
        warnings = sum(each["severity"] == "warning" for each in result.findings)
        more = f" ({warnings} {_noun(warnings, 'warning')}: `jackfield check`)" if warnings else ""
        self._say(message + more)
        shown = [each for each in result.findings if each["severity"] != "note"]
        await self.status.update(ok=True, message=message, findings=shown, tools=tools or ())

    async def _report_failed_build(self, result: WorkerResult, changes: SourceChanges) -> None:
        if result.problem:
            await self._report_failure(result.problem)
            return
        number = len(result.errors)
        message = f"{_names(changes)}: {number} {_noun(number, 'error')}; the last good registry is served"
        self._say(message)
        await self.status.update(ok=False, message=message, findings=result.errors)

    async def _report_failure(self, problem: str) -> None:
        self._say(f"{problem}; the last good registry is served")
        await self.status.update(ok=False, message=problem)


def _changed_tools(before: Snapshot, after: Snapshot) -> list[str]:
    """Return the tools that were added, changed or removed."""
    old, new = before.tools, after.tools
    return sorted(tool for tool in {*old, *new} if old.get(tool) != new.get(tool))


def _names(changes: SourceChanges) -> str:
    names = sorted({_shown(path) for path in changes.sources})
    if changes.listings:
        names.append("the listings of other systems")
    if not names:
        return "the settings" if changes.settings else "files saved during startup"
    return ", ".join(names) if len(names) <= MAX_NAMES else f"{len(names)} files"


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _noun(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"

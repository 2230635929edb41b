"""A child process that builds the registry, so that a build neither blocks nor changes the host.

The process is warm: it has imported the builder and the plugins. Each build runs in a fork of it, so a build
imports nothing into the host and leaves no module behind. Requests and results are lines of JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jackfield.distributions import EntryPoint
    from jackfield.settings import Settings
    from jackfield_builder.pipeline import BuildResult

LINE_LIMIT = 64 * 1024 * 1024
"""The maximum length of a result: the findings of hundreds of tools."""


class WorkerResult(NamedTuple):
    """The outcome of a build."""

    version: str | None
    """The version of the registry that was written; None if there are errors."""
    findings: Sequence[Mapping[str, Any]] = ()
    """The findings as JSON, each with the path of its file as `location`."""
    problem: str = ""
    """Why there was no build: a fault in the settings, or a registry that cannot be written."""
    folders: Sequence[str] = ()
    """The folders and files that the registry was built from, without those of installed wheels."""
    tool_folders: Sequence[str] = ()
    """The tool packages among them; a change to these needs no restart."""
    replaced: bool = False
    """True if the registry that was written replaced another version."""

    @property
    def errors(self) -> list[Mapping[str, Any]]:
        """The findings that prevented the registry from being written."""
        return [each for each in self.findings if each["severity"] == "error"]


class BuildWorker:
    """Starts the process and sends it requests, one at a time."""

    def __init__(
        self,
        config: str | None,
        flags: Mapping[str, Any],
        *,
        report: bool = True,
        keep_previous: bool = False,
    ) -> None:
        """`config` and `flags` select the settings; with `report`, errors are printed to the terminal.

        `keep_previous` is True if the registry from the start of development is already kept as the previous
        one.
        """
        self.keep_previous = keep_previous
        self._settings = {"config": config, "flags": dict(flags)}
        self._report = report
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    async def build(self, *, report: bool = True, keep_listed: bool = True) -> WorkerResult:
        """Build and write the registry; without `report`, print no errors this time.

        Without `keep_listed`, the build accepts what other systems, such as MCP servers, list now.
        """
        async with self._lock:
            options = {
                "report": report and self._report,
                "keep_previous": self.keep_previous,
                "keep_listed": keep_listed,
            }
            request = json.dumps({**self._settings, **options})
            process = self._process or await self._start()
            assert process.stdin is not None  # noqa: S101 - both are pipes
            assert process.stdout is not None  # noqa: S101
            try:
                process.stdin.write(request.encode() + b"\n")
                await process.stdin.drain()
                line = await process.stdout.readline()
            except ConnectionError:
                line = b""
            if not line:
                await self._stop()
                problem = "the build process ended unexpectedly; see the output of `jackfield dev`"
                return WorkerResult(None, problem=problem)
            result = WorkerResult(**json.loads(line))
            # Only the first change makes a backup: later builds are compared with the registry before that.
            self.keep_previous = self.keep_previous or result.replaced
            return result

    async def restart(self) -> None:
        """Discard the process, because code that it has imported changed."""
        async with self._lock:
            await self._stop()

    close = restart

    async def _start(self) -> asyncio.subprocess.Process:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            # Without the current folder in `sys.path`, as in the command that started the host.
            "-P",
            "-m",
            "jackfield_host.development.build_worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            # Ctrl-C is for the host, which then closes the pipe.
            start_new_session=True,
        )
        return self._process

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        await process.wait()


def _main() -> None:
    """Handle requests until the host closes the pipe."""
    output = os.dup(1)
    # Whatever a plugin prints must not mix with the results.
    os.dup2(2, 1)
    warm = False
    for line in sys.stdin:
        request = json.loads(line)
        if not warm:
            _import_plugins(request)
            warm = True
        child = os.fork()
        if child == 0:
            _answer(request, output)
        os.waitpid(child, 0)


def _import_plugins(request: Mapping[str, Any]) -> None:
    """Import the plugins once, so that the forks inherit them. The build reports their faults."""
    from jackfield import plugins
    from jackfield_builder.discovery import Selection, discover

    from jackfield_host.commands.deployment import load_deployment

    settings = load_deployment(request["config"], **request["flags"]).settings
    plugins.load(discover(Selection(settings.allow, settings.deny)).plugins)


def _answer(request: Mapping[str, Any], output: int) -> None:
    """Build in a fork, write the result, and end the fork."""
    try:
        result = _build(request)
    except Exception as error:  # noqa: BLE001 - an unexpected fault must not end the development loop
        import traceback

        traceback.print_exc()
        problem = f"the build failed: {type(error).__name__}: {error}"
        result = WorkerResult(None, problem=problem, folders=_declared_folders(request))
    # The host may have stopped during the build; then nobody reads the result.
    with suppress(BrokenPipeError), os.fdopen(output, "wb") as pipe:
        pipe.write(json.dumps(result._asdict()).encode() + b"\n")
    os._exit(0)


def _declared_folders(request: Mapping[str, Any]) -> list[str]:
    """Return the folders to watch after a build failed, so that the repair is noticed."""
    from jackfield_host.commands.deployment import load_deployment

    with suppress(Exception):
        settings = load_deployment(request["config"], **request["flags"]).settings
        return sorted(SourceFolders.of(declared_sources(settings)).folders)
    return []


def _build(request: Mapping[str, Any]) -> WorkerResult:
    import click
    from jackfield_builder.pipeline import build
    from jackfield_builder.snapshot import write_snapshot
    from jackfield_cli.commands.build import check_regular_file, check_replaceable
    from jackfield_cli.terminal import print_findings

    from jackfield_host.commands.deployment import load_deployment

    deployment = load_deployment(request["config"], **request["flags"])
    if deployment.faults:
        return WorkerResult(None, problem=str(deployment.faults))
    registry = deployment.settings.registry
    replaced = None
    try:
        check_regular_file(registry)
        built = build(deployment.settings, keep_listed=request["keep_listed"])
        if built.snapshot is not None:
            check_replaceable(registry)
            replaced = write_snapshot(built.snapshot, registry, keep_previous=request["keep_previous"])
    except click.ClickException as error:
        return WorkerResult(None, problem=error.message, folders=_declared_folders(request))
    except OSError as error:
        problem = f"{registry}: {error.strerror}"
        return WorkerResult(None, problem=problem, folders=_declared_folders(request))
    if built.snapshot is None and request["report"]:
        print_findings(built.findings)
    sources = SourceFolders.of(declared_sources(deployment.settings), built)
    return WorkerResult(
        built.snapshot.version if built.snapshot else None,
        [{**finding.to_wire(), "location": sources.locate(finding)} for finding in built.findings],
        folders=sorted(sources.folders),
        tool_folders=sorted(set(sources.tools.values())),
        replaced=replaced is not None,
    )


def declared_sources(settings: Settings) -> list[EntryPoint]:
    """Return the entry points whose packages a build reads, whether or not their files can be read.

    The tools of an unreadable family are unknown, so every family that is not denied counts.
    """
    from jackfield.distributions import FAMILIES
    from jackfield_builder.entry_points import Selection, read_entry_points

    entries, _ = read_entry_points()
    selection, families = Selection(settings.allow, settings.deny), Selection(deny=settings.deny)
    return [
        entry for entry in entries if (families if entry.group == FAMILIES else selection).includes(entry)
    ]


class SourceFolders(NamedTuple):
    """Where the sources of a build are."""

    folders: set[str]
    tools: dict[str, str]
    """The folder of each tool's package."""
    owners: dict[str, str]
    """The folder of one package of each distribution."""

    @classmethod
    def of(cls, declared: Iterable[EntryPoint], built: BuildResult | None = None) -> SourceFolders:
        """Return the sources of the declared entry points and of what was built, without installed wheels."""
        from jackfield.distributions import TOOLS, folder_of, path_of

        tools: dict[str, str] = {}
        owners: dict[str, str] = {}
        parts: set[str] = set()
        for entry in (*declared, *(built.discovery.tools if built else ())):
            package = entry.value.partition(":")[0]
            folder = folder_of(package) or path_of(package) or folder_of(package.partition(".")[0])
            if folder is None:
                continue
            parts.add(folder)
            owners.setdefault(entry.distribution.name, folder)
            if entry.group == TOOLS:
                tools[entry.name] = folder
        if built is not None and built.snapshot is not None:
            for tool_id, tool in built.snapshot.tools.items():
                tools[tool_id] = folder_of(tool.package) or tools.get(tool_id, "")
            modules = (name for each in built.snapshot.distributions for name in each.get("modules", ()))
            parts |= {path for name in modules if (path := path_of(name)) is not None}
        parts |= {folder for folder in tools.values() if folder}
        return cls({part for part in parts if not _is_installed(part)}, tools, owners)

    def locate(self, finding: Any) -> str | None:
        """Return the path of the file that a finding is about."""
        owner = finding.distribution.name if finding.distribution else ""
        folder = self.tools.get(finding.subject) or self.owners.get(owner)
        if not folder or not finding.file:
            return None
        path = Path(folder, finding.file)
        return str(path) if path.exists() else None


def _is_installed(path: str) -> bool:
    return "site-packages" in Path(path).parts or "dist-packages" in Path(path).parts


if __name__ == "__main__":
    _main()

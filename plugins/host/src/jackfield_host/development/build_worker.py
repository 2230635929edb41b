"""A child process that builds the registry, so that a build neither blocks nor changes the host.

The process is warm: it has imported the builder and the plugins. Each build runs in a fork of it, which
imports nothing of the host and leaves no module behind. Requests and results are lines of JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

LINE_LIMIT = 64 * 1024 * 1024
"""The maximum length of a result: the findings of hundreds of tools."""


class WorkerResult(NamedTuple):
    """What a build found."""

    version: str | None
    """The version of the registry that was written; None if there are errors."""
    findings: Sequence[Mapping[str, Any]] = ()
    """The findings as JSON, each with the path of its file as `location`."""
    problem: str = ""
    """Why there was no build: a fault in the settings, or a registry that cannot be written."""
    folders: Sequence[str] = ()
    """The folders and files that the registry was built from, without those of an installed wheel."""
    tool_folders: Sequence[str] = ()
    """Those of them that are packages of tools, so that a change needs no restart."""

    @property
    def errors(self) -> list[Mapping[str, Any]]:
        """The findings that prevent a registry."""
        return [each for each in self.findings if each["severity"] == "error"]


class BuildWorker:
    """Starts the process and sends it requests, one at a time."""

    def __init__(self, config: str | None, flags: Mapping[str, Any], *, report: bool = True) -> None:
        """`config` and `flags` select the settings; with `report`, errors are printed to the terminal."""
        self._settings = {"config": config, "flags": dict(flags)}
        self._report = report
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    async def build(self, *, report: bool = True) -> WorkerResult:
        """Build and write the registry; without `report`, print no errors this time."""
        request = json.dumps({**self._settings, "report": report and self._report})
        async with self._lock:
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
                return WorkerResult(None, problem="the build process ended unexpectedly; its output is above")
            return WorkerResult(**json.loads(line))

    async def restart(self) -> None:
        """Discard the process, because code that it has imported changed."""
        async with self._lock:
            await self._stop()

    close = restart

    async def _start(self) -> asyncio.subprocess.Process:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            # Without the current folder, as in the command that started the host.
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
    """Import the plugins once; the forks inherit them. Their faults are found by the build."""
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
        result = WorkerResult(None, problem=f"the build failed: {type(error).__name__}: {error}")
    with os.fdopen(output, "wb") as pipe:
        pipe.write(json.dumps(result._asdict()).encode() + b"\n")
    os._exit(0)


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
    try:
        check_regular_file(registry)
        built = build(deployment.settings)
        if built.snapshot is not None:
            check_replaceable(registry)
            write_snapshot(built.snapshot, registry)
    except click.ClickException as error:
        return WorkerResult(None, problem=error.message)
    except OSError as error:
        return WorkerResult(None, problem=f"{registry}: {error.strerror}")
    if built.snapshot is None and request["report"]:
        print_findings(built.findings)
    sources = SourceFolders.of(built)
    return WorkerResult(
        built.snapshot.version if built.snapshot else None,
        [{**finding.to_wire(), "location": sources.locate(finding)} for finding in built.findings],
        folders=sorted(sources.folders),
        tool_folders=sorted(set(sources.tools.values())),
    )


class SourceFolders(NamedTuple):
    """Where the sources of a build are."""

    folders: set[str]
    tools: dict[str, str]
    """The package of each tool."""
    owners: dict[str, str]
    """A package of each distribution."""

    @classmethod
    def of(cls, built: Any) -> SourceFolders:
        """Return the sources of everything that was discovered, without installed wheels."""
        from jackfield.distributions import folder_of, path_of

        tools: dict[str, str] = {}
        owners: dict[str, str] = {}
        parts: set[str] = set()
        for entry in (*built.discovery.tools, *built.discovery.plugins):
            package = entry.value.partition(":")[0]
            folder = folder_of(package) or path_of(package) or folder_of(package.partition(".")[0])
            if folder is None:
                continue
            parts.add(folder)
            owners.setdefault(entry.distribution.name, folder)
            if entry in built.discovery.tools:
                tools[entry.name] = folder
        for family in built.discovery.families:
            parts.add(str(family.folder))
            owners.setdefault(family.distribution.name, str(family.folder))
        if built.snapshot is not None:
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

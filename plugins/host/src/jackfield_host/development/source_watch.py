"""Watches the sources of tools, the prompts, the settings file and the installed distributions."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from watchfiles import Change, DefaultFilter, awatch

SETTLE_MS = 50
"""Changes within this time count as one: an editor writes several files at once."""

INSTALL_SECONDS = 1.0
"""An installation is complete after this long without changes: installers remove the old version first."""

METADATA = (".dist-info", ".egg-info", ".pth", ".egg-link")

TEMPORARY = ("~", ".part", ".tmp")
"""The suffixes of backups and unfinished files."""

PROJECT = "pyproject.toml"


@dataclass(slots=True)
class SourceChanges:
    """The changes since the last check."""

    sources: set[Path] = field(default_factory=set)
    settings: bool = False
    prompts: bool = False
    projects: set[Path] = field(default_factory=set)
    """The `pyproject.toml` files that changed."""
    installed: bool = False
    """True if a distribution was installed or removed."""
    listings: bool = False
    """True if an operator has accepted what other systems, such as MCP servers, now list."""

    def __bool__(self) -> bool:
        return bool(self.sources or self.settings or self.prompts or self.projects or self.is_external)

    @property
    def is_external(self) -> bool:
        """True if something other than a file of this deployment changed."""
        return self.installed or self.listings

    def add(self, other: SourceChanges) -> None:
        """Add later changes."""
        self.sources |= other.sources
        self.projects |= other.projects
        self.settings |= other.settings
        self.prompts |= other.prompts
        self.installed |= other.installed
        self.listings |= other.listings


class SourceWatch:
    """Collects changes until they are taken."""

    def __init__(self, folders: Iterable[str], settings_file: Path, prompts: Path | None) -> None:
        paths = [Path(folder) for folder in folders]
        self._folders = [path for path in paths if path.is_dir()]
        self._modules = {path for path in paths if not path.is_dir()}
        self._settings_file = settings_file.absolute()
        self._prompts = prompts.absolute() if prompts is not None else None
        self._site = {Path(place) for place in sys.path if place and _has_metadata(place)}
        self._projects = {project for path in paths if (project := _project_of(path))}
        self._changes = SourceChanges()
        self._changed = asyncio.Event()

    async def next(self, watching: asyncio.Task[None]) -> SourceChanges:
        """Wait for changes; if `watching`, the task that runs `run`, ends first, raise its error."""
        taking = asyncio.ensure_future(self._take())
        await asyncio.wait({taking, watching}, return_when=asyncio.FIRST_COMPLETED)
        if taking.done():
            return taking.result()
        taking.cancel()
        watching.result()
        raise RuntimeError("nothing is watched")

    async def _take(self) -> SourceChanges:
        """Wait for changes and take them, but those of an installation only once it is complete."""
        while True:
            await self._changed.wait()
            while self._changes.installed:
                self._changed.clear()
                try:
                    async with asyncio.timeout(INSTALL_SECONDS):
                        await self._changed.wait()
                except TimeoutError:
                    break
            changes, self._changes = self._changes, SourceChanges()
            self._changed.clear()
            if changes:
                return changes

    def accept_listings(self) -> None:
        """Report that an operator has accepted the tools that other systems now list."""
        self._add(SourceChanges(listings=True))

    async def run(self) -> None:
        """Watch until cancelled."""
        await asyncio.gather(self._watch_sources(), self._watch_files())

    async def _watch_sources(self) -> None:
        async for paths in _changes(self._folders, recursive=True):
            self._add(SourceChanges(sources={path for path in paths if self._is_source(path)}))

    def _is_source(self, path: Path) -> bool:
        return any(
            path.is_relative_to(folder) and not is_temporary(path.relative_to(folder))
            for folder in self._folders
        )

    async def _watch_files(self) -> None:
        """Watch single files through their folders: editors replace a file instead of modifying it."""
        files = {self._settings_file, *self._modules, *self._projects}
        folders = {path.parent for path in files} | self._site
        if self._prompts is not None:
            folders.add(self._prompts)
        existing = [folder for folder in folders if folder.is_dir()]
        async for paths in _changes(existing, recursive=False):
            self._add(
                SourceChanges(
                    sources=paths & self._modules,
                    settings=self._settings_file in paths,
                    prompts=any(
                        path.parent == self._prompts and not is_temporary(Path(path.name)) for path in paths
                    ),
                    projects=paths & self._projects,
                    installed=any(
                        path.parent in self._site and path.name.endswith(METADATA) for path in paths
                    ),
                )
            )

    def _add(self, changes: SourceChanges) -> None:
        for path in changes.sources:
            _forget_bytecode(path)
        if changes:
            self._changes.add(changes)
            self._changed.set()


async def _changes(folders: list[Path], *, recursive: bool) -> AsyncIterator[set[Path]]:
    if not folders:
        return
    ignored = DefaultFilter()
    watch = awatch(*folders, watch_filter=None, step=SETTLE_MS, recursive=recursive)
    async for changes in watch:
        # An installer's metadata is in folders, which the filter would drop.
        yield {Path(path) for change, path in changes if not recursive or ignored(Change(change), path)}


def is_temporary(path: Path) -> bool:
    """Return whether a path below a watched folder is hidden, a backup or an unfinished file."""
    return path.name.endswith(TEMPORARY) or any(part.startswith(".") for part in path.parts)


def _has_metadata(place: str) -> bool:
    """Return whether distributions are installed in a folder of `sys.path`."""
    folder = Path(place)
    return folder.is_dir() and any(path.name.endswith(METADATA) for path in folder.iterdir())


def _project_of(folder: Path) -> Path | None:
    """Return the `pyproject.toml` of the project that a package belongs to."""
    return next((path for above in folder.parents[:3] if (path := above / PROJECT).exists()), None)


def _forget_bytecode(path: Path) -> None:
    """Delete the compiled form of a changed module.

    Python detects stale bytecode by the size of the source and its modification time in seconds, and both
    may be the same after two quick edits.
    """
    if path.suffix == ".py":
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)

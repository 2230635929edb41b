"""The capability `workspace`: the files of one directory, as each session uses them."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TypeVar

from jackfield import SessionView
from jackfield.store import Store
from jackfield_capability_types.workspace import Excerpt, FileChange, Listing, Matches, Search

from jackfield_workspace.files import tool_errors
from jackfield_workspace.files.edits import FileEditor, WrittenFile
from jackfield_workspace.files.encoding import NotTextError, read_text
from jackfield_workspace.files.exclusions import HiddenPatterns
from jackfield_workspace.files.paths import Glob, Parts, for_names, parts_of
from jackfield_workspace.files.search import DirectoryWalk, LineSearch, SearchBudget, find_files
from jackfield_workspace.files.tree import DirectoryTree, read_file
from jackfield_workspace.settings import WorkspaceSettings, resolved_root

_KEPT_SECONDS = 24 * 3600.0


def content_hash(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


class SeenVersions:
    """The content hashes of the files that one session has read or written.

    They are kept in the store, because another host may run the next call of the session. An edit is rejected
    if the file has been changed elsewhere since.
    """

    def __init__(self, store: Store, root: Path, session: str) -> None:
        self._store = store
        self._root = root
        self._session = session

    async def state(self, path: str) -> str | None:
        """Return the hash that a file had when the session last read or wrote it; None if it never did."""
        kept = await self._store.get(self._key(path))
        return kept.decode() if kept else None

    async def note(self, path: str, state: str) -> None:
        """Remember the hash of a file that the session has read or written."""
        await self._store.put(self._key(path), state.encode(), ttl=_KEPT_SECONDS)

    def _key(self, path: str) -> str:
        place = hashlib.sha256(f"{self._root}\0{path}".encode()).hexdigest()[:32]
        return f"workspace/{self._session}/{place}"


_R = TypeVar("_R")


class FolderWorkspace:
    """The files of one directory; any number of processes may use it."""

    def __init__(self, settings: WorkspaceSettings, store: Store) -> None:
        self.settings = settings
        self.root = resolved_root(settings)
        self.tree = DirectoryTree(self.root)
        self.hidden = HiddenPatterns(settings.hidden)
        self._store = store

    def for_session(self, session: SessionView) -> SessionWorkspace:
        """Return the view that handlers of this session use."""
        return SessionWorkspace(self, SeenVersions(self._store, self.root, session.id))


class SessionWorkspace:
    """The workspace of one session; threads do the disk access."""

    def __init__(self, workspace: FolderWorkspace, seen: SeenVersions) -> None:
        self._settings = workspace.settings
        self._tree = workspace.tree
        self._hidden = workspace.hidden
        self._changes = FileEditor(workspace.tree, workspace.settings.max_file_bytes)
        self._seen = seen

    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Excerpt:
        """Read lines of a text file, and remember the version for later edits."""
        parts = self._parts(path)
        data = await _in_thread(lambda _: self._content(parts))
        passage = _excerpt("/".join(parts), data, first, min(limit, self._settings.max_lines))
        await self._seen.note(passage.path, content_hash(data))
        return passage

    async def glob(
        self, pattern: str, *, folder: str = "", limit: int = 50, include_ignored: bool = False
    ) -> Listing:
        """List the files whose path matches, most recently changed first."""
        parts, glob = self._parts(folder), Glob(pattern)

        def look(stop: Event) -> Listing:
            effort = self._effort(stop)
            walk = self._walk(glob, effort, include_ignored=include_ignored)
            return find_files(walk, self._tree, parts, effort, min(limit, self._settings.max_files))

        return await _in_thread(look)

    async def grep(self, search: Search) -> Matches:
        """Search for lines that match; RE2 takes linear time for every pattern."""
        parts, glob = self._parts(search.folder), for_names(search.glob)
        limit = min(search.limit, self._settings.max_matches)

        def look(stop: Event) -> Matches:
            effort = self._effort(stop)
            lines = LineSearch(search, limit=limit, max_bytes=self._settings.max_file_bytes, effort=effort)
            if parts and self._tree.is_file(parts):
                with self._tree.folder(parts[:-1]) as here:
                    return lines.within(here, parts[-1], "/".join(parts))
            walk = self._walk(glob, effort, include_ignored=search.include_ignored)
            return lines.below(walk, self._tree, parts)

        return await _in_thread(look)

    async def write(self, path: str, content: str, *, overwrite: bool = False) -> FileChange:
        """Write a whole file."""
        parts = self._parts(path)
        known = await self._known(parts)
        return await self._noted(
            lambda _: self._changes.write(parts, content, overwrite=overwrite, known=known)
        )

    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> FileChange:
        """Replace a text that occurs exactly once, or all its occurrences."""
        parts = self._parts(path)
        known = await self._known(parts)
        return await self._noted(
            lambda _: self._changes.edit(parts, old, new, everywhere=replace_all, known=known)
        )

    def _parts(self, path: str) -> Parts:
        parts = parts_of(path)
        if self._hidden.hides(parts):
            raise tool_errors.hidden(path)
        return parts

    def _content(self, parts: Parts) -> bytes:
        path = "/".join(parts)
        if not parts:
            raise tool_errors.folder(path)
        try:
            with self._tree.folder(parts[:-1]) as here:
                return read_file(here, parts[-1], path, self._settings.max_file_bytes)[0]
        except OSError as error:
            raise tool_errors.trouble(path, error) from None

    def _effort(self, stop: Event) -> SearchBudget:
        until = time.monotonic() + self._settings.search_seconds
        return SearchBudget(self._settings.max_entries, until, stop)

    def _walk(self, glob: Glob, effort: SearchBudget, *, include_ignored: bool) -> DirectoryWalk:
        gitignore = self._settings.gitignore and not include_ignored
        return DirectoryWalk(self._hidden, glob, effort, gitignore=gitignore)

    async def _known(self, parts: Parts) -> Callable[[bytes], bool]:
        state = await self._seen.state("/".join(parts))
        return lambda content: state is None or state == content_hash(content)

    async def _noted(self, work: Callable[[Event], WrittenFile]) -> FileChange:
        changed = await _in_thread(work)
        await self._seen.note(changed.change.path, content_hash(changed.content))
        return changed.change


def _excerpt(path: str, data: bytes, first: int, limit: int) -> Excerpt:
    try:
        text = read_text(data)
    except NotTextError:
        raise tool_errors.binary(path, len(data)) from None
    lines = text.lines
    if first > max(len(lines), 1):
        raise tool_errors.behind_the_end(path, first, len(lines))
    return Excerpt(path, tuple(lines[first - 1 : first - 1 + limit]), first, len(lines), text.encoding)


async def _in_thread(work: Callable[[Event], _R]) -> _R:
    """Run work in a thread; its event is set when the caller stops waiting."""
    stop = Event()
    try:
        return await asyncio.to_thread(work, stop)
    finally:
        stop.set()

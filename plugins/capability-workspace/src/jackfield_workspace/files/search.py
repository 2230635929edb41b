"""Search for files by name and for lines by regular expression, within limits of entries and time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped]
from jackfield import ToolError
from jackfield_capability_types.workspace import FoundFile, Listing, Match, Matches, Search

from jackfield_workspace.files import tool_errors, tree
from jackfield_workspace.files.encoding import NotTextError, read_text
from jackfield_workspace.files.exclusions import FILE, GitIgnore, HiddenPatterns
from jackfield_workspace.files.paths import MOST_PARTS, Glob, Parts, States


class DirectoryEntry(NamedTuple):
    """A file in an open directory; the directory is open until the next entry is requested."""

    here: int
    name: str
    path: str
    found: os.DirEntry[str]


@dataclass(slots=True)
class SearchBudget:
    """The limits of one search, and notices about skipped parts."""

    most_entries: int
    until: float
    """By the clock of `time.monotonic`."""

    stop: Event = field(default_factory=Event)
    seen: int = 0
    ignored: int = 0
    notices: dict[str, None] = field(default_factory=dict)

    def over(self) -> bool:
        """Return whether a limit is reached, and add a notice that says so."""
        if self.stop.is_set():
            return True
        if self.seen >= self.most_entries:
            self.notices[f"Only the first {self.most_entries} directory entries were examined."] = None
            return True
        if time.monotonic() > self.until:
            self.notices["The search took too long and was stopped; narrow it down."] = None
            return True
        return False


class _Place(NamedTuple):
    """An open directory, the state of the glob there and its ignore rules."""

    here: int
    path: str
    states: States
    ignored: GitIgnore
    depth: int


class DirectoryWalk:
    """Walks a directory tree for the files that match a glob."""

    def __init__(self, hidden: HiddenPatterns, glob: Glob, effort: SearchBudget, *, gitignore: bool) -> None:
        self._hidden = hidden
        self._glob = glob
        self._effort = effort
        self._gitignore = gitignore

    def files(self, root: tree.DirectoryTree, parts: Parts) -> Iterator[DirectoryEntry]:
        """Yield the matching files below a directory, sorted by name."""
        ignored = GitIgnore()
        if self._gitignore:
            for depth in range(len(parts)):
                with root.folder(parts[:depth]) as above:
                    ignored = ignored.within(above, "/".join(parts[:depth]))
        with root.folder(parts) as here:
            yield from self._below(_Place(here, "/".join(parts), self._glob.start, ignored, len(parts)))

    def _below(self, place: _Place) -> Iterator[DirectoryEntry]:
        with os.scandir(place.here) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        if self._gitignore and any(entry.name == FILE for entry in entries):
            place = place._replace(ignored=place.ignored.within(place.here, place.path))
        for entry in entries:
            if self._effort.over():
                return
            self._effort.seen += 1
            states = self._glob.step(place.states, entry.name)
            if states:
                yield from self._entry(place, entry, states)

    def _entry(self, place: _Place, entry: os.DirEntry[str], states: States) -> Iterator[DirectoryEntry]:
        folder = entry.is_dir(follow_symlinks=False)
        if not folder and not (self._glob.accepts(states) and entry.is_file(follow_symlinks=False)):
            return
        path = f"{place.path}/{entry.name}" if place.path else entry.name
        if not entry.name.isprintable() or self._hidden.entry(path, folder=folder):
            return
        if place.ignored.leaves_out(path, folder=folder):
            self._effort.ignored += 1
        elif not folder:
            yield DirectoryEntry(place.here, entry.name, path, entry)
        elif place.depth < MOST_PARTS:
            yield from self._enter(place, entry.name, path, states)

    def _enter(self, place: _Place, name: str, path: str, states: States) -> Iterator[DirectoryEntry]:
        try:
            here = tree.open_folder(place.here, name)
        except OSError:
            # Deleted, not accessible, or replaced by a link.
            self._effort.notices["Some folders could not be opened."] = None
            return
        try:
            yield from self._below(_Place(here, path, states, place.ignored, place.depth + 1))
        finally:
            os.close(here)


_MOST_MEMORY = 8 * 1024 * 1024
"""Memory limit of a compiled pattern; RE2 rejects a pattern that needs more."""

_LONGEST_LINE = 500


def find_files(
    walk: DirectoryWalk, root: tree.DirectoryTree, parts: Parts, effort: SearchBudget, limit: int
) -> Listing:
    """List the files of a walk, most recently changed first."""
    found = []
    for entry in walk.files(root, parts):
        try:
            facts = entry.found.stat(follow_symlinks=False)
        except OSError:
            # Deleted since it was listed.
            continue
        found.append((-facts.st_mtime_ns, entry.path, facts.st_size))
    found.sort()
    files = (
        FoundFile(path, size, datetime.fromtimestamp(-changed / 1e9, UTC))
        for changed, path, size in found[:limit]
    )
    return Listing(tuple(files), len(found), _notices(effort, anything=bool(found)))


class LineSearch:
    """Searches files for lines that match one pattern."""

    def __init__(self, search: Search, *, limit: int, max_bytes: int, effort: SearchBudget) -> None:
        self._search = search
        self._pattern = _compiled(search)
        self._limit = limit
        self._max_bytes = max_bytes
        self._effort = effort
        self._left_out = {"too large": 0, "not text": 0, "unreadable": 0}

    def below(self, walk: DirectoryWalk, root: tree.DirectoryTree, parts: Parts) -> Matches:
        """Search the files of a walk."""
        return self._over(walk.files(root, parts))

    def within(self, here: int, name: str, path: str) -> Matches:
        """Search one file; raise if it is not a text file."""
        data, _ = tree.read_file(here, name, path, self._max_bytes)
        try:
            found = list(self._lines(path, data))
        except NotTextError:
            raise tool_errors.binary(path, len(data)) from None
        return Matches(tuple(found[: self._limit]), 1 if found else 0, len(found) > self._limit)

    def _over(self, entries: Iterator[DirectoryEntry]) -> Matches:
        found: list[Match] = []
        files: set[str] = set()
        for entry in entries:
            for match in self._in_entry(entry):
                if len(found) == self._limit:
                    return Matches(tuple(found), len(files), more=True, notices=self._said())
                found.append(match)
                files.add(match.path)
        return Matches(tuple(found), len(files), notices=self._said(anything=bool(found)))

    def _in_entry(self, entry: DirectoryEntry) -> list[Match]:
        try:
            if entry.found.stat(follow_symlinks=False).st_size > self._max_bytes:
                self._left_out["too large"] += 1
                return []
            data, _ = tree.read_file(entry.here, entry.name, entry.path, self._max_bytes)
            return list(self._lines(entry.path, data))
        except NotTextError:
            self._left_out["not text"] += 1
        except (OSError, ToolError):
            self._left_out["unreadable"] += 1
        return []

    def _lines(self, path: str, data: bytes) -> Iterator[Match]:
        """Yield the matching lines, at most one more than the limit, which shows that there are more."""
        text = read_text(data)
        content = data if text.encoding == "utf-8" and not text.bom and text.newline == "\n" else None
        content = text.content.encode() if content is None else content
        lines: list[str] | None = None
        number, counted, start = 1, 0, 0
        for _ in range(self._limit + 1):
            found = self._pattern.search(content, start)
            # After the last line end there is no line, although a pattern may match the empty string there.
            if found is None or (found.start() == len(content) and content.endswith(b"\n")) or not content:
                return
            number += content.count(b"\n", counted, found.start())
            counted = found.start()
            lines = text.lines if lines is None else lines
            yield self._match(path, lines, number)
            start = content.find(b"\n", found.start()) + 1
            if not start:
                return

    def _match(self, path: str, lines: list[str], number: int) -> Match:
        around, here = self._search.context, number - 1
        return Match(
            path,
            number,
            _short(lines[here]),
            tuple(_short(line) for line in lines[max(here - around, 0) : here]),
            tuple(_short(line) for line in lines[here + 1 : here + 1 + around]),
        )

    def _said(self, *, anything: bool = True) -> tuple[str, ...]:
        for why, files in self._left_out.items():
            # Binary files are mentioned only if nothing was found.
            if files and (why != "not text" or not anything):
                self._effort.notices[f"{files} file(s) were left out: {why}."] = None
        return _notices(self._effort, anything=anything)


def _compiled(search: Search) -> Any:
    options = re2.Options()
    options.never_nl = True
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    options.case_sensitive = not search.ignore_case
    pattern = re2.escape(search.pattern) if search.literal else search.pattern
    try:
        return re2.compile(f"(?m){pattern}".encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0] if error.args else "it is not understood"
        said = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise tool_errors.bad_pattern("regular expression", f"{said}; the syntax is RE2") from None


def _notices(effort: SearchBudget, *, anything: bool) -> tuple[str, ...]:
    if effort.ignored and not anything:
        effort.notices["Entries that .gitignore excludes were skipped."] = None
    return tuple(effort.notices)


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."

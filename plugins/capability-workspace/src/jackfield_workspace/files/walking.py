"""Going through folders: by name, through no link, past what is hidden or ignored, and not for ever."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import NamedTuple

from jackfield_workspace.files import tree
from jackfield_workspace.files.globs import Glob, States
from jackfield_workspace.files.hiding import Hidden
from jackfield_workspace.files.ignoring import FILE, Ignored
from jackfield_workspace.files.paths import MOST_PARTS, Parts


class Entry(NamedTuple):
    """A file, found in a folder that is open as long as nobody asks for the next."""

    here: int
    name: str
    path: str
    found: os.DirEntry[str]


@dataclass(slots=True)
class Effort:
    """How much a walk may cost, and what it left out."""

    most_entries: int
    until: float
    """By the clock of `time.monotonic`."""

    stop: Event = field(default_factory=Event)
    seen: int = 0
    ignored: int = 0
    notices: dict[str, None] = field(default_factory=dict)

    def over(self) -> bool:
        """Whether it has cost enough; says so."""
        if self.stop.is_set():
            return True
        if self.seen >= self.most_entries:
            self.notices[f"Only the first {self.most_entries} entries of folders were looked at."] = None
            return True
        if time.monotonic() > self.until:
            self.notices["The search took too long and was stopped; narrow it down."] = None
            return True
        return False


class _Place(NamedTuple):
    """A folder on the way: open, how far the pattern is fulfilled there, and what is ignored in it."""

    here: int
    path: str
    states: States
    ignored: Ignored
    depth: int


class Walk:
    """One way through the folders, for the files that fit a pattern."""

    def __init__(self, hidden: Hidden, glob: Glob, effort: Effort, *, gitignore: bool) -> None:
        self._hidden = hidden
        self._glob = glob
        self._effort = effort
        self._gitignore = gitignore

    def files(self, root: tree.Tree, parts: Parts) -> Iterator[Entry]:
        """The files below a folder, by name."""
        ignored = Ignored()
        if self._gitignore:
            for depth in range(len(parts)):
                with root.folder(parts[:depth]) as above:
                    ignored = ignored.within(above, "/".join(parts[:depth]))
        with root.folder(parts) as here:
            yield from self._below(_Place(here, "/".join(parts), self._glob.start, ignored, len(parts)))

    def _below(self, place: _Place) -> Iterator[Entry]:
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

    def _entry(self, place: _Place, entry: os.DirEntry[str], states: States) -> Iterator[Entry]:
        folder = entry.is_dir(follow_symlinks=False)
        if not folder and not (self._glob.accepts(states) and entry.is_file(follow_symlinks=False)):
            return
        path = f"{place.path}/{entry.name}" if place.path else entry.name
        if not entry.name.isprintable() or self._hidden.entry(path, folder=folder):
            return
        if place.ignored.leaves_out(path, folder=folder):
            self._effort.ignored += 1
        elif not folder:
            yield Entry(place.here, entry.name, path, entry)
        elif place.depth < MOST_PARTS:
            yield from self._enter(place, entry.name, path, states)

    def _enter(self, place: _Place, name: str, path: str, states: States) -> Iterator[Entry]:
        try:
            here = tree.open_folder(place.here, name)
        except OSError:
            # Gone, closed to us, or a link by now.
            self._effort.notices["Some folders could not be opened."] = None
            return
        try:
            yield from self._below(_Place(here, path, states, place.ignored, place.depth + 1))
        finally:
            os.close(here)

"""Finds files below the given paths."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jackfield_kb.loader.documents import Problem
from jackfield_kb.loader.formats import SUFFIXES, FileFormat, format_of
from jackfield_kb.loader.slugs import legible


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A file with a supported format."""

    path: Path
    """The absolute path with links resolved."""

    shown: str
    """The path for messages, which begins as the user wrote it."""

    named: Path
    """The path that the user named: the file itself or a parent folder."""

    format: FileFormat

    @property
    def uri(self) -> str:
        """The URI of the file's source."""
        return self.path.as_uri()

    @property
    def relative(self) -> Path:
        """The path below the named folder."""
        return self.path.relative_to(self.path.parent if self.named == self.path else self.named)


@dataclass(slots=True)
class FileScan:
    """The files below some paths."""

    avoid: Path
    """The folder of the library itself."""

    roots: list[Path] = field(default_factory=list)
    """The named files and folders."""

    files: list[ScannedFile] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    """The number of files of each unsupported suffix."""

    hidden: int = 0
    links: int = 0
    problems: list[Problem] = field(default_factory=list)
    closed: list[Path] = field(default_factory=list)
    """Folders that could not be opened; their files may still exist."""

    def lost(self, known: Iterable[Path]) -> Iterator[tuple[Path, list[Path]]]:
        """Yield the loaded files that no longer exist, by named path."""
        there = {file.path for file in self.files}
        missing = {path for path in known if path not in there and not _is_below(path, self.closed)}
        for root in self.roots:
            gone = sorted(path for path in missing if _is_below(path, (root,)))
            missing.difference_update(gone)
            if gone:
                yield root, gone

    def is_bare(self, root: Path) -> bool:
        """Return whether no file was found below a named path."""
        return not any(_is_below(file.path, (root,)) for file in self.files)


def walk(paths: Sequence[Path], avoid: Path) -> FileScan:
    """Find the files below the paths, sorted by name, each once; `avoid` is skipped."""
    found = FileScan(avoid=avoid.resolve())
    seen: set[Path] = set()
    for named in paths:
        path = named.resolve()
        found.roots.append(path)
        files = _below(path, named, found) if path.is_dir() else [(path, legible(named))]
        for file, shown in files:
            if file in seen:
                continue
            seen.add(file)
            kind = format_of(file)
            if kind is None and file == path:
                what = (
                    f"files with the suffix {file.suffix!r} are not supported"
                    if file.suffix
                    else "its name has no suffix"
                )
                found.problems.append(Problem(shown, what, f"supported suffixes are {', '.join(SUFFIXES)}"))
            elif kind is None:
                found.unknown[file.suffix.lower() or file.name] += 1
            else:
                found.files.append(ScannedFile(file, shown, path, kind))
    return found


def _below(folder: Path, shown: Path, found: FileScan) -> Iterator[tuple[Path, str]]:
    folders = [(folder, shown)]
    while folders:
        current, name = folders.pop()
        try:
            entries = sorted(os.scandir(current), key=lambda entry: entry.name)
        except OSError as error:
            found.closed.append(current)
            found.problems.append(
                Problem(
                    legible(name),
                    f"the folder cannot be opened ({error.strerror})",
                    "allow it, or leave it out",
                )
            )
            continue
        deeper = []
        for entry in entries:
            if entry.name.startswith("."):
                found.hidden += 1
            elif entry.is_symlink():
                found.links += 1  # A link may lead out of the folder; targets inside are found anyway.
            elif entry.is_dir(follow_symlinks=False):
                if current / entry.name != found.avoid:
                    deeper.append((current / entry.name, name / entry.name))
            elif entry.is_file(follow_symlinks=False):
                yield current / entry.name, legible(name / entry.name)
        folders.extend(reversed(deeper))


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)

"""Writes and edits of single files; a file that changed since the session read it is never overwritten."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import unified_diff
from typing import NamedTuple

from jackfield_capability_types.workspace import FileChange

from jackfield_workspace.files import tool_errors, tree
from jackfield_workspace.files.encoding import FileText, NotTextError, read_text
from jackfield_workspace.files.paths import Parts
from jackfield_workspace.files.tree import DirectoryTree, read_file

_AROUND = 3
_MOST_COMPARED = 1000
"""Above this many lines the diff shows only the line counts, because comparing takes too long."""


def replaced(text: FileText, old: str, new: str, path: str, *, everywhere: bool) -> tuple[FileText, int]:
    """Return the text after the replacement, and the number of replacements."""
    if text.newline == "\r\n" or "\r\n" not in text.content:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if old == new:
        raise tool_errors.nothing_to_do(path)
    times = text.content.count(old)
    if times == 0:
        raise tool_errors.not_found(path)
    if not everywhere and (times > 1 or _overlaps(text.content, old)):
        raise tool_errors.ambiguous(path, max(times, 2))
    return replace(text, content=text.content.replace(old, new)), times


def _overlaps(content: str, old: str) -> bool:
    """Return whether a second occurrence overlaps the first: `aa` occurs twice in `aaa`."""
    return content.find(old, content.find(old) + 1) >= 0


def difference(path: str, before: FileText, after: FileText) -> str:
    """Return a unified diff; only the lines between the first and the last change are compared."""
    old, new = before.lines, after.lines
    head = _alike(old, new)
    tail = min(_alike(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    start = max(head - _AROUND, 0)
    was = old[start : len(old) - max(tail - _AROUND, 0)]
    now = new[start : len(new) - max(tail - _AROUND, 0)]
    if len(was) + len(now) > _MOST_COMPARED:
        return f"--- {path}\n+++ {path}\n@@ {len(was)} lines became {len(now)}, from line {start + 1} on @@\n"
    lines = unified_diff(was, now, path, path, lineterm="", n=_AROUND)
    return "\n".join(_moved(line, start) for line in lines)


def _alike(old: list[str], new: list[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((number for number, (was, now) in pairs if was != now), min(len(old), len(new)))


def _moved(line: str, by: int) -> str:
    """Shift the line numbers of a diff header from the compared part to the whole file."""
    if not line.startswith("@@"):
        return line
    return re.sub(r"([-+])(\d+)", lambda found: f"{found[1]}{int(found[2]) + by}", line)


class WrittenFile(NamedTuple):
    """The change to a file, and its new content."""

    change: FileChange
    content: bytes


class FileEditor:
    """Writes and edits files; `known` returns whether the session has seen the current content."""

    def __init__(self, tree: DirectoryTree, max_bytes: int) -> None:
        self._tree = tree
        self._max_bytes = max_bytes

    def write(
        self, parts: Parts, content: str, *, overwrite: bool, known: Callable[[bytes], bool]
    ) -> WrittenFile:
        """Write a whole file."""
        path = "/".join(parts)
        try:
            data = content.encode()
        except UnicodeEncodeError:
            raise tool_errors.not_encodable(path, "utf-8") from None
        self._measure(path, data)
        with self._writing(parts, make=True) as (here, name):
            try:
                was, before = read_file(here, name, path, self._max_bytes)
            except FileNotFoundError:
                return self._created(here, name, path, data)
            if was == data:
                return WrittenFile(FileChange(path, "unchanged", _lines(data)), data)
            if not overwrite:
                raise tool_errors.exists(path)
            if not known(was):
                raise tool_errors.stale(path)
            tree.replace(here, name, path, data, before)
        return WrittenFile(
            FileChange(path, "replaced", _lines(data), _diff(path, was, FileText(content))), data
        )

    def edit(
        self, parts: Parts, old: str, new: str, *, everywhere: bool, known: Callable[[bytes], bool]
    ) -> WrittenFile:
        """Replace part of a file's text."""
        path = "/".join(parts)
        with self._writing(parts) as (here, name):
            try:
                was, before = read_file(here, name, path, self._max_bytes)
            except FileNotFoundError:
                raise tool_errors.missing(path) from None
            if not known(was):
                raise tool_errors.stale(path)
            text, data, times = self._edited(path, was, old, new, everywhere=everywhere)
            tree.replace(here, name, path, data, before)
        change = FileChange(path, "edited", len(text.lines), _diff(path, was, text), times)
        return WrittenFile(change, data)

    def _edited(
        self, path: str, was: bytes, old: str, new: str, *, everywhere: bool
    ) -> tuple[FileText, bytes, int]:
        try:
            before = read_text(was)
        except NotTextError:
            raise tool_errors.binary(path, len(was)) from None
        text, times = replaced(before, old, new, path, everywhere=everywhere)
        try:
            data = text.to_bytes()
        except UnicodeEncodeError:
            raise tool_errors.not_encodable(path, text.encoding) from None
        self._measure(path, data)
        return text, data, times

    def _created(self, here: int, name: str, path: str, data: bytes) -> WrittenFile:
        try:
            tree.create(here, name, data)
        except FileExistsError:
            raise tool_errors.exists(path) from None
        return WrittenFile(FileChange(path, "created", _lines(data)), data)

    def _measure(self, path: str, data: bytes) -> None:
        if len(data) > self._max_bytes:
            raise tool_errors.too_large(path, len(data), self._max_bytes)

    @contextmanager
    def _writing(self, parts: Parts, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the directory of a file and hold the write lock."""
        if not parts:
            raise tool_errors.folder("")
        try:
            with tree.one_writer(self._tree), self._tree.folder(parts[:-1], make=make) as here:
                yield here, parts[-1]
        except OSError as error:
            raise tool_errors.trouble("/".join(parts), error) from None


def _lines(data: bytes) -> int:
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


def _diff(path: str, was: bytes, now: FileText) -> str:
    try:
        return difference(path, read_text(was), now)
    except NotTextError:
        return ""

"""Files written and edited, one at a time, and never over somebody else's change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from jackfield_capability_types.workspace import Change

from jackfield_workspace.files import refusals, writing
from jackfield_workspace.files.editing import difference, replaced
from jackfield_workspace.files.paths import Parts
from jackfield_workspace.files.texts import NotTextError, Text, read_text
from jackfield_workspace.files.tree import Tree, read_file


class Changed(NamedTuple):
    """What became of a file, and its content now."""

    change: Change
    content: bytes


class Changes:
    """Changes to the files of a tree; `known` says whether a content is the one the session has seen."""

    def __init__(self, tree: Tree, max_bytes: int) -> None:
        self._tree = tree
        self._max_bytes = max_bytes

    def write(
        self, parts: Parts, content: str, *, overwrite: bool, known: Callable[[bytes], bool]
    ) -> Changed:
        """Write a whole file."""
        path = "/".join(parts)
        try:
            data = content.encode()
        except UnicodeEncodeError:
            raise refusals.not_encodable(path, "utf-8") from None
        self._measure(path, data)
        with self._writing(parts, make=True) as (here, name):
            try:
                was, before = read_file(here, name, path, self._max_bytes)
            except FileNotFoundError:
                return self._created(here, name, path, data)
            if was == data:
                return Changed(Change(path, "unchanged", _lines(data)), data)
            if not overwrite:
                raise refusals.exists(path)
            if not known(was):
                raise refusals.stale(path)
            writing.replace(here, name, path, data, before)
        return Changed(Change(path, "replaced", _lines(data), _diff(path, was, Text(content))), data)

    def edit(
        self, parts: Parts, old: str, new: str, *, everywhere: bool, known: Callable[[bytes], bool]
    ) -> Changed:
        """Replace some of a file's text."""
        path = "/".join(parts)
        with self._writing(parts) as (here, name):
            try:
                was, before = read_file(here, name, path, self._max_bytes)
            except FileNotFoundError:
                raise refusals.missing(path) from None
            if not known(was):
                raise refusals.stale(path)
            text, data, times = self._edited(path, was, old, new, everywhere=everywhere)
            writing.replace(here, name, path, data, before)
        change = Change(path, "edited", len(text.lines), _diff(path, was, text), times)
        return Changed(change, data)

    def _edited(
        self, path: str, was: bytes, old: str, new: str, *, everywhere: bool
    ) -> tuple[Text, bytes, int]:
        try:
            before = read_text(was)
        except NotTextError:
            raise refusals.binary(path, len(was)) from None
        text, times = replaced(before, old, new, path, everywhere=everywhere)
        try:
            data = text.to_bytes()
        except UnicodeEncodeError:
            raise refusals.not_encodable(path, text.encoding) from None
        self._measure(path, data)
        return text, data, times

    def _created(self, here: int, name: str, path: str, data: bytes) -> Changed:
        try:
            writing.create(here, name, data)
        except FileExistsError:
            raise refusals.exists(path) from None
        return Changed(Change(path, "created", _lines(data)), data)

    def _measure(self, path: str, data: bytes) -> None:
        if len(data) > self._max_bytes:
            raise refusals.too_large(path, len(data), self._max_bytes)

    @contextmanager
    def _writing(self, parts: Parts, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The folder of a file, open, while nobody else writes."""
        if not parts:
            raise refusals.folder("")
        try:
            with writing.one_writer(self._tree), self._tree.folder(parts[:-1], make=make) as here:
                yield here, parts[-1]
        except OSError as error:
            raise refusals.trouble("/".join(parts), error) from None


def _lines(data: bytes) -> int:
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


def _diff(path: str, was: bytes, now: Text) -> str:
    try:
        return difference(path, read_text(was), now)
    except NotTextError:
        return ""

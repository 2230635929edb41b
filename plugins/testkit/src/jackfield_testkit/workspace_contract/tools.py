"""For the tests of tools that work with files: a real workspace in a new folder, and one that is told."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import pytest
from jackfield import Mode, ToolContext
from jackfield_capability_types.workspace import Change, Listing, Matches, Passage, Search

from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.offered import capability
from jackfield_testkit.tool_contract import ToolContractTests

CHANGED_AT = 1_700_000_000
"""When every file was changed that a test lays out, in seconds since 1970."""

_Answer = TypeVar("_Answer", Passage, Listing, Matches, Change)


class WorkspaceToolTests(ToolContractTests, abstract=True):
    """The standard tests of a tool that requires `workspace`; every run finds `files` in a folder of its own.

    The workspace is that of the installed plugin which offers it.
    """

    files: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """What is in the folder, by path."""

    _place: Path

    @pytest.fixture(autouse=True)
    def _remember_the_place(self, tmp_path: Path) -> None:
        self._place = tmp_path

    def context(self, mode: Mode) -> ToolContext:
        """What the handler is given."""
        root = Path(mkdtemp(dir=self._place))
        for name, text in self.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, "utf-8")
            os.utime(root / name, (CHANGED_AT, CHANGED_AT))
        return ToolTestContext(mode, workspace=capability("workspace", {"root": str(root)}))


class ToldWorkspace:
    """A workspace without files: it answers what it was told to, and remembers what it was asked.

    `ToldWorkspace(write=Change("a.txt", "created", 1))`
    """

    def __init__(
        self,
        *,
        read: Passage | None = None,
        glob: Listing | None = None,
        grep: Matches | None = None,
        write: Change | None = None,
        edit: Change | None = None,
    ) -> None:
        self.asked: list[tuple[Any, ...]] = []
        """The names of methods with what they were given, in order."""
        self._read, self._glob, self._grep, self._write, self._edit = read, glob, grep, write, edit

    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Passage:
        """The passage that was told."""
        return self._answer(self._read, "read", path, first, limit)

    async def glob(
        self, pattern: str, *, folder: str = "", limit: int = 50, include_ignored: bool = False
    ) -> Listing:
        """The listing that was told, cut to the limit."""
        told = self._answer(self._glob, "glob", pattern, folder, limit, include_ignored)
        return replace(told, files=told.files[:limit])

    async def grep(self, search: Search) -> Matches:
        """The matches that were told."""
        return self._answer(self._grep, "grep", search)

    async def write(self, path: str, content: str, *, overwrite: bool = False) -> Change:
        """The change that was told."""
        return self._answer(self._write, "write", path, content, overwrite)

    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Change:
        """The change that was told."""
        return self._answer(self._edit, "edit", path, old, new, replace_all)

    def _answer(self, told: _Answer | None, name: str, *asked: Any) -> _Answer:
        self.asked.append((name, *asked))
        if told is None:
            raise LookupError(f"this workspace was not told what to answer; pass ToldWorkspace({name}=...)")
        return told

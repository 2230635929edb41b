"""Tests of tools that require `workspace`: a base class over a real workspace, and a stub."""

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
from jackfield_capability_types.workspace import Excerpt, FileChange, Listing, Matches, Search

from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.runtime import capability
from jackfield_testkit.tool import ToolContractTests

MODIFIED_AT = 1_700_000_000
"""The modification time of every file, in seconds since the epoch."""

_Result = TypeVar("_Result", Excerpt, Listing, Matches, FileChange)


class WorkspaceToolTests(ToolContractTests, abstract=True):
    """The contract tests of a tool that requires `workspace`; every run has `files` in a new folder.

    An installed plugin provides the workspace.
    """

    files: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The text of each file, by path."""

    _folder: Path

    @pytest.fixture(autouse=True)
    def _keep_folder(self, tmp_path: Path) -> None:
        self._folder = tmp_path

    def context(self, mode: Mode) -> ToolContext:
        """Return a context with a new workspace."""
        root = Path(mkdtemp(dir=self._folder))
        for name, text in self.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, "utf-8")
            os.utime(root / name, (MODIFIED_AT, MODIFIED_AT))
        return ToolTestContext(mode, workspace=capability("workspace", {"root": str(root)}))


class StubWorkspace:
    """A workspace without files: it returns the given results and records its calls.

    `StubWorkspace(write=FileChange("a.txt", "created", 1))`
    """

    def __init__(
        self,
        *,
        read: Excerpt | None = None,
        glob: Listing | None = None,
        grep: Matches | None = None,
        write: FileChange | None = None,
        edit: FileChange | None = None,
    ) -> None:
        self.calls: list[tuple[Any, ...]] = []
        """The name and the arguments of each call."""
        self._read, self._glob, self._grep, self._write, self._edit = read, glob, grep, write, edit

    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Excerpt:
        """Return the given excerpt."""
        return self._result(self._read, "read", path, first, limit)

    async def glob(
        self, pattern: str, *, folder: str = "", limit: int = 50, include_ignored: bool = False
    ) -> Listing:
        """Return the given listing, cut to the limit."""
        listing = self._result(self._glob, "glob", pattern, folder, limit, include_ignored)
        return replace(listing, files=listing.files[:limit])

    async def grep(self, search: Search) -> Matches:
        """Return the given matches."""
        return self._result(self._grep, "grep", search)

    async def write(self, path: str, content: str, *, overwrite: bool = False) -> FileChange:
        """Return the given change."""
        return self._result(self._write, "write", path, content, overwrite)

    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> FileChange:
        """Return the given change."""
        return self._result(self._edit, "edit", path, old, new, replace_all)

    def _result(self, result: _Result | None, name: str, *arguments: Any) -> _Result:
        self.calls.append((name, *arguments))
        if result is None:
            raise LookupError(f"StubWorkspace: no result for {name}; pass StubWorkspace({name}=...)")
        return result

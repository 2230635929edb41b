"""`ctx.workspace` and `ctx.shell`: the files of one folder, and commands that run in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from jackfield.contract.context import SessionView


@dataclass(frozen=True, slots=True)
class Passage:
    """Some lines of a text file; paths are relative to the workspace, with `/`."""

    path: str
    lines: tuple[str, ...]
    first: int
    """The number of the first line, counted from 1."""

    total: int
    """How many lines the whole file has."""

    encoding: str = "utf-8"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that fits a pattern."""

    path: str
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class Match:
    """A line that fits a regular expression, with its neighbours."""

    path: str
    line: int
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Files, the latest change first."""

    files: tuple[FoundFile, ...]
    count: int
    """How many there are; more than `files` when a limit cut them."""

    notices: tuple[str, ...] = ()
    """What was not looked at, in sentences."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Lines that fit, by path and line."""

    matches: tuple[Match, ...]
    files: int
    """In how many files they are."""

    more: bool = False
    """Whether the search stopped at its limit."""

    notices: tuple[str, ...] = ()
    """What was not looked at, in sentences."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a file."""

    path: str
    status: str
    """`created`, `replaced`, `edited`, or `unchanged` when it was like that already."""

    lines: int
    """How many it has now."""

    diff: str = ""
    """What changed, as a unified diff; empty for a new file."""

    replacements: int = 0


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for in the files."""

    pattern: str
    folder: str = ""
    """The folder or file to look in; empty for the whole workspace."""

    glob: str = ""
    """Only files that fit: by name, or by path where it has a `/`."""

    literal: bool = False
    ignore_case: bool = False
    context: int = 0
    """How many lines before and after."""

    limit: int = 50
    include_ignored: bool = False


class WorkspaceView(Protocol):
    """The workspace as one session uses it. What cannot be done is a `ToolError` worded for the model."""

    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Passage:
        """Read lines of a text file, and remember the version for later edits."""

    async def glob(
        self, pattern: str, *, folder: str = "", limit: int = 50, include_ignored: bool = False
    ) -> Listing:
        """List the files whose path matches, most recently changed first."""

    async def grep(self, search: Search) -> Matches:
        """Search for lines that match; RE2 takes linear time for every pattern."""

    async def write(self, path: str, content: str, *, overwrite: bool = False) -> Change:
        """Write a whole file; `CONFLICT` when it exists with other content and may not be overwritten."""

    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Change:
        """Replace a text that stands in the file exactly once, or everywhere.

        `CONFLICT` for a file that changed since this session saw it, here and for one that is overwritten.
        """


class Workspace(Protocol):
    """What a plugin provides under the name `workspace`."""

    def for_session(self, session: SessionView) -> WorkspaceView:
        """Return the view that handlers of this session use."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that came to its end, or was stopped."""

    output: str
    """What it wrote to both of its outputs, in order; the middle is left out where that is too much."""

    exit_code: int | None
    """None when it was stopped."""

    seconds: float
    stopped: str = ""
    """Why it was stopped, as a clause."""

    left_out: int = 0
    """Bytes of the output that are not in `output`."""

    isolated: bool = False
    """Whether it ran in a sandbox."""


class Shell(Protocol):
    """What a plugin provides under the name `shell`."""

    async def run(
        self, command: str, *, seconds: float, progress: Callable[[int], Awaitable[None]] | None = None
    ) -> Finished:
        """Run a command; nothing that it started is left when this returns, or is cancelled.

        `progress` is told now and then how many lines it has written.
        """

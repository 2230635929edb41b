"""`ctx.workspace` and `ctx.shell`: the files of one directory, and commands that run in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from jackfield.contract.context import SessionView


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a text file; paths are relative to the workspace, with `/`."""

    path: str
    lines: tuple[str, ...]
    first: int
    """The number of the first line, from 1."""

    total: int
    """The number of lines in the file."""

    encoding: str = "utf-8"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that matches a pattern."""

    path: str
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class Match:
    """A line that matches a regular expression, with context lines."""

    path: str
    line: int
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Files, most recently changed first."""

    files: tuple[FoundFile, ...]
    count: int
    """The number of matching files; larger than `files` if a limit was reached."""

    notices: tuple[str, ...] = ()
    """What was not searched, in sentences."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Matching lines, sorted by path and line."""

    matches: tuple[Match, ...]
    files: int
    """The number of files with matches."""

    more: bool = False
    """True if the search stopped at its limit."""

    notices: tuple[str, ...] = ()
    """What was not searched, in sentences."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """The result of a write or edit."""

    path: str
    status: str
    """`created`, `replaced`, `edited`, or `unchanged` if the content was the same."""

    lines: int
    """The number of lines in the file after the change."""

    diff: str = ""
    """A unified diff; empty for a new file."""

    replacements: int = 0


@dataclass(frozen=True, slots=True)
class Search:
    """A search for lines in files."""

    pattern: str
    folder: str = ""
    """The directory or file to search; empty for the whole workspace."""

    glob: str = ""
    """Search only matching files: by name, or by path if the pattern contains a `/`."""

    literal: bool = False
    ignore_case: bool = False
    context: int = 0
    """The number of context lines before and after."""

    limit: int = 50
    include_ignored: bool = False


class WorkspaceView(Protocol):
    """The workspace of one session. Failures are raised as `ToolError` with a message for the model."""

    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Excerpt:
        """Read lines of a text file, and remember the version for later edits."""

    async def glob(
        self, pattern: str, *, folder: str = "", limit: int = 50, include_ignored: bool = False
    ) -> Listing:
        """List the files whose path matches, most recently changed first."""

    async def grep(self, search: Search) -> Matches:
        """Search for lines that match; RE2 takes linear time for every pattern."""

    async def write(self, path: str, content: str, *, overwrite: bool = False) -> FileChange:
        """Write a file; raises `CONFLICT` if it exists with other content and `overwrite` is false."""

    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> FileChange:
        """Replace a text that occurs exactly once, or all its occurrences.

        Edits and overwrites raise `CONFLICT` if the file changed since this session read it.
        """


class Workspace(Protocol):
    """The capability `workspace`."""

    def for_session(self, session: SessionView) -> WorkspaceView:
        """Return the view that handlers of this session use."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of a command that ended or was stopped."""

    output: str
    """Standard output and standard error in order; the middle of a long output is omitted."""

    exit_code: int | None
    """None if it was stopped."""

    seconds: float
    stopped: str = ""
    """Why it was stopped, as a clause."""

    left_out: int = 0
    """The number of bytes omitted from `output`."""

    isolated: bool = False
    """True if it ran in a sandbox."""


class Shell(Protocol):
    """The capability `shell`."""

    async def run(
        self,
        command: str,
        *,
        seconds: float,
        progress: Callable[[int], Awaitable[None]] | None = None,
        output: Callable[[str], None] | None = None,
    ) -> Finished:
        """Run a command; all its processes have ended when this returns or is cancelled.

        `progress` periodically receives the number of lines written, and `output` receives the command's
        output as it is written.
        """

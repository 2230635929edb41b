"""The settings of the capabilities `workspace` and `shell` and of the policy `file_consent`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from jackfield.settings import Format, Gt, Help, Le, NonEmpty, Phrases, SettingsError, Unit

from jackfield_workspace import vocabulary

BASH = "/bin/bash"


def _absolute(value: str) -> str:
    if not Path(value).is_absolute():
        raise ValueError
    return value


@dataclass(frozen=True, slots=True)
class WorkspaceSettings:
    """`[capabilities.workspace]`"""

    root: Annotated[
        Path | None,
        Help("The directory with the files.", default="none: the tools are withheld"),
    ] = None
    hidden: Annotated[
        tuple[NonEmpty, ...],
        Help(
            "Additional patterns for hidden files, as in a `.gitignore` file; `!` before a "
            "pattern removes it: "
            '`["secrets/", "!.env.ci"]`.'
        ),
    ] = ()
    gitignore: Annotated[bool, Help("Let `glob` and `grep` skip files that `.gitignore` excludes.")] = True
    max_file_bytes: Annotated[
        int,
        Gt(0),
        Le(64 * 1024 * 1024),
        Unit("bytes"),
        Help("The largest file that is read, searched or written."),
    ] = 2 * 1024 * 1024
    max_lines: Annotated[
        int,
        Gt(0),
        Le(10_000),
        Unit("lines"),
        Help(
            "Maximum lines that one call reads; a result for a model has fewer, and says where to continue."
        ),
    ] = 1000
    max_files: Annotated[
        int, Gt(0), Le(5000), Unit("files"), Help("Maximum files that `glob` lists; the count includes all.")
    ] = 200
    max_matches: Annotated[
        int, Gt(0), Le(5000), Unit("matches"), Help("Maximum matches that one `grep` returns.")
    ] = 200
    max_entries: Annotated[
        int,
        Gt(0),
        Le(5_000_000),
        Unit("directory entries"),
        Help("Maximum directory entries that one search examines."),
    ] = 100_000
    search_seconds: Annotated[
        float,
        Gt(0),
        Le(60),
        Unit("seconds"),
        Help("Time limit for a search; after that, the search returns what it has found and says so."),
    ] = 5.0

    def unavailable(self) -> str | None:
        """Return why this deployment has no files, as a clause; None if it has some."""
        if self.root is None:
            return _no_root("workspace", "files")
        if os.open not in os.supports_dir_fd or os.scandir not in os.supports_fd:
            return f"on {sys.platform} files cannot be opened without following links"
        return _missing("workspace", self.root)


@dataclass(frozen=True, slots=True)
class ShellSettings:
    """`[capabilities.shell]`"""

    root: Annotated[
        Path | None, Help("The directory in which commands run.", default="none: the tool is withheld")
    ] = None
    max_seconds: Annotated[
        float,
        Gt(0),
        Le(60),
        Unit("seconds"),
        Help("Time limit for a command, whatever timeout the call requests."),
    ] = 60.0
    output_bytes: Annotated[
        int,
        Gt(0),
        Le(1_000_000),
        Unit("bytes"),
        Help("How much of the output is kept: one third from the beginning, two thirds from the end."),
    ] = 20_000
    environment: Annotated[
        tuple[NonEmpty, ...], Help("Names of the host's environment variables that commands see.")
    ] = ("LANG", "LC_ALL", "LC_CTYPE", "PATH", "TZ")
    sandbox: Annotated[
        Literal["none", "bubblewrap"],
        Help(
            "With `bubblewrap`, the program `bwrap` has to be on PATH, or the shell is withheld.",
        ),
    ] = "none"
    network: Annotated[
        bool | None, Help("Let commands in the sandbox use the network.", default="`false`")
    ] = None
    readable: Annotated[
        tuple[Annotated[str, Format("an absolute path", _absolute)], ...] | None,
        Help(
            'Additional paths that commands in the sandbox can read, such as `["/opt/toolchain"]`.',
            default="none",
        ),
    ] = None

    def __post_init__(self) -> None:
        if faults := [*self._unused()]:
            raise ValueError("\n".join(faults))

    def _unused(self) -> Iterator[str]:
        # Without a sandbox everything is reachable, so the setting would have no effect.
        for name in ("network", "readable"):
            if self.sandbox == "none" and getattr(self, name) is not None:
                yield (
                    f'{name}: only used in a sandbox, and sandbox is "none"; set sandbox = "bubblewrap", or '
                    "leave it out"
                )

    def unavailable(self) -> str | None:
        """Return why this deployment has no shell, as a clause; None if it has one."""
        if self.root is None:
            return _no_root("shell", "commands")
        if os.name != "posix" or not Path(BASH).exists():
            return f"there is no {BASH} on this machine"
        if self.sandbox == "bubblewrap" and shutil.which("bwrap") is None:
            return (
                'sandbox = "bubblewrap" in [capabilities.shell] needs the program bwrap, which is not on PATH'
            )
        return _missing("shell", self.root)


@dataclass(frozen=True, slots=True)
class FileConsentSettings:
    """`[policies.file_consent]`"""

    trusted: Annotated[
        tuple[NonEmpty, ...],
        Help(
            "Glob patterns for paths that may be changed without confirmation, unless a whole file is "
            'replaced: `["notes/**", "*.md"]`.'
        ),
    ] = ()
    verbs: Annotated[
        Phrases,
        Help("Words that ask for a change; the file has to be named in the same part of the sentence."),
    ] = vocabulary.VERBS
    negations: Annotated[Phrases, Help("A sentence with one of these words is not a request.")] = (
        vocabulary.NEGATIONS
    )


def resolved_root(settings: WorkspaceSettings | ShellSettings) -> Path:
    """Return the directory of a capability, without links; raises `SettingsError` if none is set."""
    if settings.root is None:
        name = "workspace" if isinstance(settings, WorkspaceSettings) else "shell"
        raise SettingsError(f"[capabilities.{name}] root: missing; expected a path")
    return settings.root.resolve()


def _no_root(table: str, what: str) -> str:
    return f'no folder is set up for {what}: add root = "..." to [capabilities.{table}]'


def _missing(table: str, root: Path) -> str | None:
    if root.is_dir():
        return None
    return f"the folder that [capabilities.{table}] names as root, {root}, does not exist"

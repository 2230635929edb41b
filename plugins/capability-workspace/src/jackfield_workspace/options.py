"""What a deployment may say about its workspace and its shell, and whether it has said enough."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jackfield.settings import SettingsError

from jackfield_workspace.tables import Setting, choice, number, read, switch, text, texts

BASH = "/bin/bash"

_FOLDER = "the path of a folder"

WORKSPACE: Mapping[str, Setting] = {
    "root": text("", _FOLDER),
    "hidden": texts((), '["secrets/", "!.env.ci"]'),
    "gitignore": switch(True),
    "max_file_bytes": number(2 * 1024 * 1024, "bytes", most=64 * 1024 * 1024),
    "max_lines": number(1000, "lines", most=10_000),
    "max_files": number(200, "files", most=5000),
    "max_matches": number(200, "matches", most=5000),
    "max_entries": number(100_000, "entries of folders", most=5_000_000),
    "search_seconds": number(5.0, "seconds", most=60),
}
"""The settings of `[capabilities.workspace]`."""

SHELL: Mapping[str, Setting] = {
    "root": text("", _FOLDER),
    "max_seconds": number(60.0, "seconds", most=60),
    "output_bytes": number(20_000, "bytes", most=1_000_000),
    "environment": texts(("LANG", "LC_ALL", "LC_CTYPE", "PATH", "TZ"), '["PATH", "LANG", "JAVA_HOME"]'),
    "sandbox": choice("none", "bubblewrap"),
    "network": switch(False),
    "readable": texts((), '["/opt/toolchain"]'),
}
"""The settings of `[capabilities.shell]`."""


@dataclass(frozen=True, slots=True)
class WorkspaceOptions:
    """The settings of `[capabilities.workspace]`, checked."""

    root: Path
    hidden: tuple[str, ...]
    gitignore: bool
    max_file_bytes: int
    max_lines: int
    max_files: int
    max_matches: int
    max_entries: int
    search_seconds: float

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> WorkspaceOptions:
        """The settings with their defaults, or a sentence about the one that cannot be used."""
        said = read("capabilities.workspace", settings, WORKSPACE)
        return cls(**{**said, "root": _root("workspace", said["root"]), "hidden": tuple(said["hidden"])})

    @staticmethod
    def unavailable(settings: Mapping[str, Any]) -> str | None:
        """Why there are no files in this deployment, as a clause; a mistake is raised instead."""
        said = read("capabilities.workspace", settings, WORKSPACE)
        if not said["root"]:
            return _no_root("workspace", "files")
        if os.open not in os.supports_dir_fd or os.scandir not in os.supports_fd:
            return f"on {sys.platform} files cannot be opened without following links"
        return _missing("workspace", said["root"])


@dataclass(frozen=True, slots=True)
class ShellOptions:
    """The settings of `[capabilities.shell]`, checked."""

    root: Path
    max_seconds: float
    output_bytes: int
    environment: tuple[str, ...]
    sandbox: str
    network: bool
    readable: tuple[str, ...]

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> ShellOptions:
        """The settings with their defaults, or a sentence about the one that cannot be used."""
        said = _shell(settings)
        lists = {name: tuple(said[name]) for name in ("environment", "readable")}
        return cls(**{**said, **lists, "root": _root("shell", said["root"])})

    @staticmethod
    def unavailable(settings: Mapping[str, Any]) -> str | None:
        """Why there is no shell in this deployment, as a clause; a mistake is raised instead."""
        said = _shell(settings)
        if not said["root"]:
            return _no_root("shell", "commands")
        if os.name != "posix" or not Path(BASH).exists():
            return f"there is no {BASH} on this machine"
        if said["sandbox"] == "bubblewrap" and shutil.which("bwrap") is None:
            return (
                'sandbox = "bubblewrap" in [capabilities.shell] needs the program bwrap, which is not on PATH'
            )
        return _missing("shell", said["root"])


def _shell(settings: Mapping[str, Any]) -> dict[str, Any]:
    said = read("capabilities.shell", settings, SHELL)
    for name in ("network", "readable"):
        if name in settings and said["sandbox"] == "none":
            # Without a sandbox everything is reachable, and the setting would promise what nobody keeps.
            raise SettingsError(
                f'capabilities.shell.{name} says something about the sandbox, and sandbox is "none"; '
                'set sandbox = "bubblewrap", or leave it out'
            )
    for path in said["readable"]:
        if not Path(path).is_absolute():
            raise SettingsError(f"capabilities.shell.readable: {path!r} is not an absolute path")
    return said


def _root(table: str, said: str) -> Path:
    if not said:
        raise SettingsError(f"[capabilities.{table}]: `root` is missing; it names a folder")
    return Path(said).expanduser().resolve()


def _no_root(table: str, what: str) -> str:
    return f'no folder is set up for {what}: add root = "..." to [capabilities.{table}]'


def _missing(table: str, said: str) -> str | None:
    if Path(said).expanduser().is_dir():
        return None
    return f"the folder that [capabilities.{table}] names as root, {said}, is not there"

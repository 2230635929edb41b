"""Resolves relative paths in a settings file, which are relative to the file's folder."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from jackfield.settings.declaration import MAPPINGS, PathText, declared_fields, is_union, unwrap


class FileTable(dict[str, Any]):
    """A table of a settings file that is not in the working directory."""

    def __init__(self, values: Mapping[str, Any], folder: Path) -> None:
        super().__init__(values)
        self.folder = folder
        """The absolute path of the file's folder."""

    def copy_with(self, values: Mapping[str, Any]) -> FileTable:
        """Return a table of the same file with these values."""
        return FileTable(values, self.folder)

    def resolved(self, declaration: type) -> dict[str, Any]:
        """Return the settings with absolute paths in place of the relative ones."""
        return _resolved_table(declaration, self, self.folder)


def resolve_paths(table: Mapping[str, Any], declaration: type | None) -> Mapping[str, Any]:
    """Return the settings with absolute paths if they come from a file that is not in the working directory.

    Without a declaration, nothing says which of them are paths.
    """
    return table.resolved(declaration) if declaration and isinstance(table, FileTable) else table


def folder_of(config: Path) -> Path | None:
    """Return the folder of a settings file as an absolute path; None if it is the working directory."""
    # Links are not followed: an orchestrator may mount the file as a link into a folder of its own.
    return None if config.parent == Path() else Path.cwd() / config.parent


def _resolved_table(declaration: type, table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    known = declared_fields(declaration)
    return {
        name: _resolved(known[name][1], value, folder) if name in known else value
        for name, value in table.items()
    }


def _resolved(hint: Any, value: Any, folder: Path) -> Any:
    base, extras = unwrap(hint)
    if isinstance(value, str):
        text = next((extra for extra in extras if isinstance(extra, PathText)), None)
        is_path = base is Path or (text is not None and not (text.unless and value.startswith(text.unless)))
        # The reader expands `~`, and reports a path that is empty.
        return str(folder / value) if is_path and value.strip() and not value.startswith("~") else value
    origin, arguments = typing.get_origin(base), typing.get_args(base)
    if is_union(base):
        for each in arguments:
            value = _resolved(each, value, folder)
    elif isinstance(value, list) and origin is tuple:
        return [_resolved(arguments[0], each, folder) for each in value]
    elif isinstance(value, Mapping) and origin in MAPPINGS:
        return {name: _resolved(arguments[1], each, folder) for name, each in value.items()}
    elif isinstance(value, Mapping) and is_dataclass(base):
        return _resolved_table(typing.cast("type", base), value, folder)
    return value

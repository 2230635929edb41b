"""The installed plugins, read from the metadata folders alone.

`jackfield_builder.entry_points` reads every kind of installation. The parser that it needs for that takes
longer to import than all plugins together, and `jackfield --help` needs only the plugins' names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from jackfield.distributions import PLUGINS, Distribution, EntryPoint, installed

if TYPE_CHECKING:
    from jackfield_builder.entry_points import Selection


def installed_plugins(selection: Selection) -> tuple[EntryPoint, ...]:
    """Return the selected plugins in the same order as a full discovery."""
    if _has_other_installations():
        from jackfield_builder import entry_points

        return entry_points.installed_plugins(selection)
    return tuple(sorted(entry for entry in _entries() if selection.includes(entry)))


def _has_other_installations() -> bool:
    """Return whether distributions may be installed other than in folders, for example in zip files."""
    others = (finder for finder in sys.meta_path if finder is not PathFinder)
    return any(hasattr(finder, "find_distributions") for finder in others) or any(
        os.path.isfile(place)  # noqa: PTH113 - runs at every start
        for place in sys.path
    )


def _entries() -> Iterator[EntryPoint]:
    for name, metadata in installed().items():
        try:
            with open(f"{metadata.folder}/entry_points.txt", encoding="utf-8") as file:  # noqa: PTH123
                text = file.read()
        except (OSError, ValueError):
            # Most distributions have no entry points; `jackfield plugins` reports unreadable ones.
            continue
        if PLUGINS not in text:
            continue
        owner = Distribution(name, metadata.version, os.path.dirname(metadata.folder))  # noqa: PTH120
        for entry, value in _section(text, PLUGINS):
            yield EntryPoint(PLUGINS, entry, value, owner)


def _section(text: str, wanted: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of one section; the file has the format of an INI file."""
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
        elif section == wanted and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()

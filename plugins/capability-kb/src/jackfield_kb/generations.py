"""An index in a folder: `current.json` names the generation in use, so that a rebuild disturbs no reader."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jackfield_kb.errors import DamagedIndexError
from jackfield_kb.files import read_json, write_json

FORMAT = 1


class Generations:
    """The folders `g0`, `g1` and so on, of which one is in use and another may be in the making."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._current = folder / "current.json"

    def mark(self) -> tuple[int, int] | None:
        """What changes with every change of the index; None when there is no index."""
        try:
            found = self._current.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def discard(self) -> None:
        """Forget the index; the next refresh makes it anew."""
        self._current.unlink(missing_ok=True)

    def _said(self) -> dict[str, Any] | None:
        """What `current.json` says; None when there is none."""
        try:
            said = read_json(self._current)
        except FileNotFoundError:
            return None
        if not isinstance(said, dict) or said.pop("format", None) != FORMAT:
            raise DamagedIndexError("it was made by another version")
        return said

    def _say(self, fields: Mapping[str, Any]) -> None:
        write_json(self._current, {"format": FORMAT, **fields})

    def _new_generation(self) -> str:
        """An empty folder for a rebuild; it is not in use before something is recorded."""
        names = {path.name for path in self.folder.glob("g*")}
        name = next(name for number in range(len(names) + 1) if (name := f"g{number}") not in names)
        (self.folder / name).mkdir(0o700, parents=True)
        return name

    def _keep_only(self, name: str) -> None:
        """Remove the folders that are no longer in use."""
        for path in self.folder.glob("g*"):
            if path.name != name:
                shutil.rmtree(path, ignore_errors=True)


def incomplete(error: Exception) -> DamagedIndexError:
    """The error for a `current.json` that lacks something."""
    return DamagedIndexError(f"current.json lacks what it should say ({error})")

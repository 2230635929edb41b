"""Whose an id is already: the source that each record in the library comes from, and its owner."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from jackfield_kb.truth.database import Database

NOWHERE = "a record without a file"


class Holder(NamedTuple):
    """Who has an id."""

    uri: str
    owner: str | None
    """The user whose personal record it is."""


class Holders:
    """Looks ids up beside the library, all of a batch at once."""

    def __init__(self, folder: Path) -> None:
        self._database = Database(folder / "knowledge.db")

    def of(self, ids: Iterable[str]) -> dict[str, Holder]:
        """Those of the records that are there."""
        found = {}
        with self._database.reading() as db:
            for id_ in ids:
                for uri, owner in db.execute("SELECT source, owner FROM records WHERE id = ?", (id_,)):
                    found[id_] = Holder(uri or NOWHERE, owner)
        return found

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

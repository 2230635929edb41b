"""What a database of records offers: to the loader, to the indexes that follow it, and to searches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from jackfield_capability_types.knowledge import Record

from jackfield_kb.access import Access

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    PassageVectors = NDArray[np.float32]

NOWHERE = "a record without a file"


class Source(NamedTuple):
    """A file that contains records."""

    uri: str
    digest: str
    """SHA-256 of the content, which shows a later load whether the file changed."""

    collection: str
    """The path that was named when the file was loaded: the file or a folder."""


SourceRecords = tuple[Source | None, Sequence[Record]]


class SourceAndOwner(NamedTuple):
    """The source and owner of a record."""

    uri: str
    owner: str | None
    """The owner of a personal record."""

    is_local: bool = True
    """True if this machine loaded the source, so that a missing file is a deleted file."""


class Position(NamedTuple):
    """A position in the records: the highest record number and the last removal step."""

    number: int = 0
    step: int = 0


class Numbered(NamedTuple):
    """A record and its number, which stays the same until the record changes."""

    number: int
    record: Record


class Changes(NamedTuple):
    """The current position, and the records that were removed since an earlier one."""

    target: Position
    removed: list[int]


class RecordLog(Protocol):
    """Records in the order of their numbers, which an index follows.

    A record that changes gets a new number, and numbers are never used again: what an index knows under a
    number stays true, and "everything above the highest number it knows" is what it lacks.
    """

    def position(self) -> Position:
        """The current position."""

    def changes(self, since: Position) -> Changes:
        """The current position, and what was removed since an earlier one."""

    def after(self, number: int, most: int) -> list[Numbered]:
        """The next records above a number; fewer if they are long."""

    def count_after(self, number: int) -> int:
        """The number of records above a number."""

    def vectors(self, model: str, items: Sequence[Numbered]) -> Mapping[int, PassageVectors] | None:
        """The stored vectors of records by number, a row for each passage; None if the index has to embed.

        A record that is missing in the result has no vectors yet; they are stored in the order of numbers.
        """

    def by_numbers(self, numbers: Sequence[int], access: Access) -> dict[int, Record]:
        """Existing records by number, as far as the user may see them."""

    def by_ids(self, ids: Sequence[str], access: Access) -> list[Record]:
        """Records by id in the given order, each once, without unknown ids and those the user may not see."""

    def bytes(self) -> int:
        """The size on disk."""

    def close(self) -> None:
        """Close files and connections."""


class Records(RecordLog, Protocol):
    """A database of records, which is the source of truth of a library."""

    @property
    def place(self) -> str:
        """Where the records are, without secrets."""

    def write(self, put: Sequence[SourceRecords], drop: Iterable[str]) -> None:
        """Drop sources and replace the records of others, in one transaction."""

    def delete(self, ids: Iterable[str]) -> None:
        """Remove records by id."""

    def sources(self, collection: str | None) -> list[Source]:
        """The sources of a collection, or all, by URI."""

    def holders(self, ids: Iterable[str]) -> dict[str, SourceAndOwner]:
        """The source and owner of each existing record."""

    def page(self, after_id: str, most: int) -> list[Record]:
        """The next records by id."""

    def counts(self) -> dict[tuple[str, str], int]:
        """The number of records by namespace and type."""

    def loading(self, uris: Sequence[str]) -> AbstractContextManager[None]:
        """Keep other loaders away from these files and folders; raises `LibraryError` if one is at work."""

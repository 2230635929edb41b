"""The interface of a record database for the loader, for the indexes that follow it, and for searches."""

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

    A record that changes gets a new number, and numbers are never reused. What an index stores under a number
    therefore stays true, and the records that it lacks are those above its highest number.
    """

    def position(self) -> Position:
        """Return the current position."""

    def changes(self, since: Position) -> Changes:
        """Return the current position, and the records that were removed since an earlier one."""

    def after(self, number: int, most: int) -> list[Numbered]:
        """Return the next records above a number; fewer than `most` if they are long."""

    def count_after(self, number: int) -> int:
        """Return the number of records above a number."""

    def vectors(self, model: str, items: Sequence[Numbered]) -> Mapping[int, PassageVectors] | None:
        """Return the stored vectors by record number, one row per passage; None if the index has to embed.

        A record missing from the result has no vectors yet; vectors are stored in the order of numbers.
        """

    def by_numbers(self, numbers: Sequence[int], access: Access) -> dict[int, Record]:
        """Return the existing records that the user may see, by number."""

    def by_ids(self, ids: Sequence[str], access: Access) -> list[Record]:
        """Return the records that the user may see, by id, in the given order, each once."""

    def bytes(self) -> int:
        """Return the size on disk."""

    def close(self) -> None:
        """Close files and connections."""


class Records(RecordLog, Protocol):
    """A database of records, which is the source of truth of a library."""

    @property
    def place(self) -> str:
        """The location of the records, without secrets."""

    def write(self, put: Sequence[SourceRecords], drop: Iterable[str]) -> None:
        """Drop sources and replace the records of others, in one transaction."""

    def delete(self, ids: Iterable[str]) -> None:
        """Remove records by id."""

    def sources(self, collection: str | None) -> list[Source]:
        """Return the sources of a collection, or all sources, ordered by URI."""

    def holders(self, ids: Iterable[str]) -> dict[str, SourceAndOwner]:
        """Return the source and owner of each existing record."""

    def page(self, after_id: str, most: int) -> list[Record]:
        """Return the next records, ordered by id."""

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of records by namespace and type."""

    def loading(self, uris: Sequence[str]) -> AbstractContextManager[None]:
        """Lock these files and folders for one loader; raises `LibraryError` if another is loading them."""

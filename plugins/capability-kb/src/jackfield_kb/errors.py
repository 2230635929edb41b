"""What can go wrong with a library, in sentences for the person who has to mend it."""

from __future__ import annotations


class LibraryError(Exception):
    """A library that cannot be read or written as asked."""


class RecordError(LibraryError):
    """A record that cannot be kept as it is; nothing was written."""


class ClaimedTwiceError(RecordError):
    """Two sources have a record of the same id; nothing was written."""

    def __init__(self, record_id: str, first: str, second: str) -> None:
        super().__init__(
            f"the record {record_id} comes from two sources: {first} and {second}; "
            "give one of them another id, or remove one source"
        )
        self.record_id = record_id
        self.sources = (first, second)


class IndexUnavailableError(LibraryError):
    """There is nothing to search with at this moment; trying again soon helps."""


class EmbeddingFailedError(LibraryError):
    """A text could not be turned into a vector."""


class DamagedIndexError(LibraryError):
    """Files of an index that cannot be used; they are made anew from the records."""

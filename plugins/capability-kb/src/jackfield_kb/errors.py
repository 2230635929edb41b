"""Errors of a library, with messages for the operator."""

from __future__ import annotations


class LibraryError(Exception):
    """The library cannot be read or written."""


class RecordError(LibraryError):
    """A record is invalid; nothing was written."""


class ClaimedTwiceError(RecordError):
    """Two sources contain a record with the same id; nothing was written."""

    def __init__(self, record_id: str, first: str, second: str) -> None:
        super().__init__(
            f"the record {record_id} comes from two sources: {first} and {second}; "
            "give one of them a different id, or remove one source"
        )
        self.record_id = record_id
        self.sources = (first, second)


class IndexUnavailableError(LibraryError):
    """No index is available at the moment; a later retry may succeed."""


class DatabaseUnavailableError(LibraryError):
    """The records' database is unavailable at the moment; a later retry may succeed."""


class EmbeddingFailedError(LibraryError):
    """A text could not be embedded."""


class DamagedIndexError(LibraryError):
    """Index files are damaged; they are rebuilt from the records."""

"""Translates SQLite and OS errors into `StoreUnavailableError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
from jackfield.store import StoreUnavailableError

OUTAGES = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.IOError,
    apsw.LockedError,
    apsw.NotADBError,
    StoreUnavailableError,
)
"""Errors that affect the whole file, so the next operation would fail too."""


def unavailable_error(path: Path, error: Exception) -> StoreUnavailableError:
    """Return the error to raise for an error from SQLite or the operating system."""
    match error:
        case StoreUnavailableError():
            return error
        case apsw.BusyError() | apsw.LockedError():
            why = "is locked by another process, and did not become free in time"
        case apsw.FullError():
            why = "cannot be written: its disk is full"
        case apsw.CorruptError():
            why = f"is damaged ({error}); stop all processes that use it, keep the file, and restore a backup"
        case apsw.NotADBError():
            why = "is not a SQLite database; move the file away, or give the store a different path"
        case apsw.CantOpenError():
            why = f"cannot be opened ({error}); check that its folder exists, is writable and has free space"
        case apsw.IOError():
            why = f"cannot be read or written ({error}); its disk may be full or failing"
        case apsw.ReadOnlyError():
            why = f"cannot be written ({error}); check the permissions of the file and of its folder"
        case _:
            why = f"cannot be reached ({error})"
    return StoreUnavailableError(f"the store {path} {why}")


def closed_error(path: Path) -> StoreUnavailableError:
    """Return the error to raise for an operation on a closed store."""
    return StoreUnavailableError(f"the store {path} is closed")


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise file errors as `StoreUnavailableError`."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise unavailable_error(path, error) from error

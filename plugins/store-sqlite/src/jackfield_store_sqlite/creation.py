"""Creates a store file and inspects one without changing it."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import apsw
from jackfield.store import StoreUnavailableError

from jackfield_store_sqlite import schema
from jackfield_store_sqlite.errors import translate_errors, unavailable_error

_PATIENCE = 1.0
"""Seconds to wait for a locked file during an inspection; opening the store uses its own setting."""


def initialise(path: Path, pinned: str | None = None) -> schema.StoreIdentity:
    """Create the store and return its identity; raise if it exists or if the settings pin an id."""
    if pinned or orphaned_journal(path):
        raise StoreUnavailableError(f"nothing was created: {_describe_path(path, pinned)}")
    try:
        with translate_errors(path):
            return create(path, _create_schema)
    except StoreUnavailableError as error:
        if isinstance(error.__cause__, FileExistsError):
            raise StoreUnavailableError(f"nothing was created: {_describe_path(path)}") from None
        raise


def missing(path: Path, pinned: str | None) -> str | None:
    """Return why the store cannot be opened and what to do; None if it can or only opening it can tell."""
    if journal := orphaned_journal(path):
        return (
            f"the store {path} does not exist, but {journal.name}, a part of it, does; put the file back, "
            f"or, if you want to start with an empty store, remove {journal} too"
        )
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            return f"{path} is a folder; the store needs the path of a file"
        with _open_existing(path) as db:
            return schema.rejection_reason(db, path, pinned)
    except (FileNotFoundError, NotADirectoryError):
        return _absent_reason(path, pinned)
    except apsw.NotADBError as error:
        return str(unavailable_error(path, error))
    except (apsw.Error, OSError):
        # The file is locked, damaged or unreadable: opening it reports that.
        return None


def describe(path: Path) -> dict[str, Any]:
    """Return what `jackfield store show` prints; expired rows count until they are pruned."""
    with translate_errors(path), _open_existing(path) as db:
        found = schema.known_identity(db)
        counts = {
            name: db.execute(f"SELECT count(*) FROM {table}").get  # noqa: S608 - names from this module
            for name, table in (("claims", "claims"), ("values", "kept"), ("streams", "streams"))
        }
        return {
            "id": found.id if found else None,
            "path": str(path),
            "schema": db.pragma("user_version"),
            "created": _moment(found.created) if found and found.created else None,
            "bytes": sum(each.stat().st_size for each in _parts(path)),
            **counts,
        }


def backup(path: Path, copy: Path, pinned: str | None = None) -> None:
    """Copy a store, which may be in use, to a new file that only its owner can read."""
    if why := missing(path, pinned):
        raise StoreUnavailableError(why)
    if journal := orphaned_journal(copy):
        raise StoreUnavailableError(
            f"nothing was copied: SQLite would read {journal} into the copy; remove it"
        )
    try:
        create(copy, lambda draft: _copy(path, draft))
    except FileExistsError:
        raise StoreUnavailableError(f"nothing was copied: {copy} exists; choose a new file") from None
    except (apsw.Error, OSError) as error:
        raise StoreUnavailableError(f"the store {path} was not copied to {copy}: {error}") from error


def _copy(path: Path, draft: Path) -> None:
    with (
        _open_existing(path) as source,
        _open_existing(draft) as copy,
        copy.backup("main", source, "main") as job,
    ):
        # In one step: if another process wrote between two steps, SQLite would start the copy again.
        job.step(-1)


def _create_schema(draft: Path) -> schema.StoreIdentity:
    with _open_existing(draft) as db:
        schema.migrate(db, draft, _PATIENCE, nullcontext())
        return schema.identity(db)


@contextmanager
def _open_existing(path: Path) -> Iterator[apsw.Connection]:
    # Without SQLITE_OPEN_CREATE: an inspection must never create a store.
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.set_busy_timeout(int(_PATIENCE * 1000))
        yield db
    finally:
        db.close()


def _absent_reason(path: Path, pinned: str | None) -> str:
    if path.is_symlink():
        return (
            f"the store {path} is a link to {path.readlink()}, which does not exist; put the file back or "
            "check the mount"
        )
    if pinned:
        return (
            f"the store {path} does not exist, and [stores.sqlite] requires the one with the id {pinned}; "
            "put the file back or check the mount; for a new store, remove the `id` setting first"
        )
    return (
        f"the store {path} does not exist; if this is a new deployment, run `jackfield store create`; "
        "otherwise put the file back or check the mount"
    )


def _describe_path(path: Path, pinned: str | None = None) -> str:
    if why := missing(path, pinned):
        return why
    try:
        with _open_existing(path) as db:
            found = schema.known_identity(db)
    except apsw.Error as error:
        return str(unavailable_error(path, error))
    return f"{path} is already a store, with the id {found.id}" if found else f"{path} is already a store"


def _parts(path: Path) -> list[Path]:
    return [each for each in (path, path.with_name(f"{path.name}-wal")) if each.exists()]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


Result = TypeVar("Result")

LINKS_UNSUPPORTED = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""Errors of file systems without hard links."""


def create(path: Path, fill: Callable[[Path], Result]) -> Result:
    """Create a file that only its owner can read, with its folders; return the result of `fill`.

    `fill` writes a draft in the same folder, which then gets the file's name. The file is therefore never
    empty or half written, even after a power cut. Raises `FileExistsError` if the path exists.
    """
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(0o700, exist_ok=True)
        _sync_folder(folder.parent)
    draft = path.with_name(f".jackfield-{secrets.token_hex(4)}.part")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        filled = fill(draft)
        _move_into_place(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(path.parent)
    return filled


def _move_into_place(draft: Path, path: Path) -> None:
    # Unlike a rename, a hard link never replaces a file that another process created in the meantime.
    try:
        path.hardlink_to(draft)
    except OSError as error:
        if error.errno not in LINKS_UNSUPPORTED:
            raise
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        draft.replace(path)


def orphaned_journal(path: Path) -> Path | None:
    """Return the journal of a missing database; SQLite would replay it into a new file of that name."""
    for kind in ("-wal", "-journal"):
        journal = path.with_name(path.name + kind)
        # The journal is checked first, because a store that is being created gets its file before its
        # journal.
        if os.path.lexists(journal) and not os.path.lexists(path):
            return journal
    return None


def _sync_folder(folder: Path) -> None:
    """Flush a folder, so that new entries in it survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

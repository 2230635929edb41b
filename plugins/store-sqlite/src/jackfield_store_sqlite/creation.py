"""Creating a store, and saying what is at its path without changing it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
from jackfield.store import StoreUnavailableError

from jackfield_store_sqlite import files, schema
from jackfield_store_sqlite.faults import reported, unavailable

_PATIENCE = 1.0
"""Seconds to wait for a locked file when looking at it; whoever opens it afterwards waits as it is set up."""


def initialise(path: Path, pinned: str | None = None) -> schema.Identity:
    """Create the store, which must not exist; its identity. A new store is never the one that is pinned."""
    if pinned or files.leftover(path):
        raise StoreUnavailableError(f"nothing was created: {_what_is_there(path, pinned)}")
    try:
        with reported(path):
            return files.create(path, _fill)
    except StoreUnavailableError as error:
        if isinstance(error.__cause__, FileExistsError):
            raise StoreUnavailableError(f"nothing was created: {_what_is_there(path)}") from None
        raise


def missing(path: Path, pinned: str | None) -> str | None:
    """Why the store cannot be opened as it is, and what to do; None when it can, or nobody can tell."""
    if beside := files.leftover(path):
        return (
            f"the store {path} does not exist, but {beside.name}, a part of it, does; put the file back, or, "
            f"if you want to start with an empty store, remove {beside} too"
        )
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            return f"{path} is a folder; the store needs the path of a file"
        with _opened(path) as db:
            return schema.why_not(db, path, pinned)
    except (FileNotFoundError, NotADirectoryError):
        return _absent(path, pinned)
    except apsw.NotADBError as error:
        return str(unavailable(path, error))
    except (apsw.Error, OSError):
        # A file that is locked, damaged or not ours to read: whoever opens it is told so.
        return None


def describe(path: Path) -> dict[str, Any]:
    """What `jackfield store show` prints; what has expired is counted until it is pruned."""
    with reported(path), _opened(path) as db:
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


def _fill(draft: Path) -> schema.Identity:
    with _opened(draft) as db:
        schema.bring_up_to_date(db, draft, _PATIENCE, nullcontext())
        return schema.identity(db)


@contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection]:
    # Without SQLITE_OPEN_CREATE: looking at a store must never make one.
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.set_busy_timeout(int(_PATIENCE * 1000))
        yield db
    finally:
        db.close()


def _absent(path: Path, pinned: str | None) -> str:
    if path.is_symlink():
        return (
            f"the store {path} is a link to {path.readlink()}, which does not exist; put the file back or "
            "check the mount"
        )
    if pinned:
        return (
            f"the store {path} does not exist, and [stores.sqlite] asks for the one with the id {pinned}; "
            "put the file back or check the mount; for a new store, remove the setting `id` first"
        )
    return (
        f"the store {path} does not exist; if this is a new deployment, run `jackfield store create`; "
        "otherwise put the file back or check the mount"
    )


def _what_is_there(path: Path, pinned: str | None = None) -> str:
    if why := missing(path, pinned):
        return why
    try:
        with _opened(path) as db:
            found = schema.known_identity(db)
    except apsw.Error as error:
        return str(unavailable(path, error))
    return f"{path} is a store already, with the id {found.id}" if found else f"{path} is a store already"


def _parts(path: Path) -> list[Path]:
    return [each for each in (path, path.with_name(f"{path.name}-wal")) if each.exists()]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")

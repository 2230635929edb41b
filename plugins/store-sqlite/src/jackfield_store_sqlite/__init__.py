"""The SQLite store: one file for any number of processes on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import StoreOffer

if TYPE_CHECKING:
    from pathlib import Path

    from jackfield.store import Store

    from jackfield_store_sqlite.settings import SqliteSettings
    from jackfield_store_sqlite.store import SqliteStore

__all__ = ["SqliteStore", "jackfield_stores"]


@hookimpl
def jackfield_stores() -> list[StoreOffer]:
    """Offer the store under the name `sqlite`."""
    from jackfield_store_sqlite.settings import SqliteSettings

    return [StoreOffer("sqlite", _create, _missing, _initialise, _describe, SqliteSettings, _backup)]


def _create(settings: SqliteSettings) -> Store:
    from jackfield_store_sqlite.store import SqliteStore

    return SqliteStore(
        settings.path,
        lease=settings.lease,
        patience=settings.patience,
        durable_appends=settings.durable_appends,
        create=False,
        store_id=settings.id,
    )


def _missing(settings: SqliteSettings) -> str | None:
    from jackfield_store_sqlite.creation import missing

    return missing(settings.path.absolute(), settings.id)


def _initialise(settings: SqliteSettings) -> str:
    from jackfield_store_sqlite.creation import initialise

    path = settings.path.absolute()
    return f"created a new store at {path}, with the id {initialise(path, settings.id).id}"


def _describe(settings: SqliteSettings) -> Mapping[str, Any]:
    from jackfield_store_sqlite.creation import describe

    return describe(settings.path.absolute())


def _backup(settings: SqliteSettings, file: Path) -> str:
    from jackfield_store_sqlite.creation import backup

    path, copy = settings.path.absolute(), file.absolute()
    backup(path, copy, settings.id)
    return f"copied the store {path} to {copy}"


def __getattr__(name: str) -> Any:
    # Loaded on demand: every build imports this module, and loading SQLite would make it slower.
    if name == "SqliteStore":
        from jackfield_store_sqlite.store import SqliteStore

        return SqliteStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

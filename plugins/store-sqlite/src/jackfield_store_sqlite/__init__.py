"""The store on SQLite: one file, any number of processes of one machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import PluginSettings, StoreOffer

if TYPE_CHECKING:
    from jackfield.store import Store

    from jackfield_store_sqlite.store import SqliteStore

__all__ = ["SqliteStore", "jackfield_stores"]


@hookimpl
def jackfield_stores() -> list[StoreOffer]:
    """Offer the store under the name `sqlite`."""
    return [StoreOffer("sqlite", _create, _missing, _initialise, _describe)]


def _create(settings: PluginSettings) -> Store:
    from jackfield_store_sqlite.options import options
    from jackfield_store_sqlite.store import SqliteStore

    return SqliteStore(**options(settings), create=False)


def _missing(settings: PluginSettings) -> str | None:
    from jackfield_store_sqlite.creation import missing

    return missing(*_place(settings))


def _initialise(settings: PluginSettings) -> str:
    from jackfield_store_sqlite.creation import initialise

    path, pinned = _place(settings)
    return f"created a new store at {path}, with the id {initialise(path, pinned).id}"


def _describe(settings: PluginSettings) -> Mapping[str, Any]:
    from jackfield_store_sqlite.creation import describe

    return describe(_place(settings)[0])


def _place(settings: PluginSettings) -> tuple[Path, str | None]:
    """The path of the store, and the id it has to have if the settings pin one."""
    from jackfield_store_sqlite.options import options

    said = options(settings)
    return Path(said["path"]).absolute(), said["store_id"]


def __getattr__(name: str) -> Any:
    # The build asks every plugin what it offers; loading SQLite for that would make each build slower.
    if name == "SqliteStore":
        from jackfield_store_sqlite.store import SqliteStore

        return SqliteStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

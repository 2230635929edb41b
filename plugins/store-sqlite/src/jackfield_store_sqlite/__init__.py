"""The store on SQLite: one file, any number of processes of one machine."""

from __future__ import annotations

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
    return [StoreOffer("sqlite", _create)]


def _create(settings: PluginSettings) -> Store:
    from jackfield_store_sqlite.options import options
    from jackfield_store_sqlite.store import SqliteStore

    return SqliteStore(**options(settings))


def __getattr__(name: str) -> Any:
    # The build asks every plugin what it offers; loading SQLite for that would make each build slower.
    if name == "SqliteStore":
        from jackfield_store_sqlite.store import SqliteStore

        return SqliteStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

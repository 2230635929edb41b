"""The PostgreSQL store: one database, or several, for hosts on any number of machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import StoreOffer

if TYPE_CHECKING:
    from jackfield.store import Store

    from jackfield_store_postgres.settings import PostgresSettings
    from jackfield_store_postgres.sharded_store import ShardedStore
    from jackfield_store_postgres.store import PostgresStore

__all__ = ["PostgresStore", "ShardedStore", "jackfield_stores"]


@hookimpl
def jackfield_stores() -> list[StoreOffer]:
    """Offer the store under the name `postgres`."""
    from jackfield_store_postgres.settings import PostgresSettings

    return [
        StoreOffer(
            "postgres", _create, _missing, _initialise, _describe, PostgresSettings, warnings=_warnings
        )
    ]


def _create(settings: PostgresSettings) -> Store:
    from jackfield_store_postgres.creation import open_configured

    return open_configured(settings)


def _missing(settings: PostgresSettings) -> str | None:
    from jackfield_store_postgres.creation import missing

    return missing(settings)


def _initialise(settings: PostgresSettings) -> str:
    from jackfield_store_postgres.creation import initialise

    return initialise(settings)


def _describe(settings: PostgresSettings) -> Mapping[str, Any]:
    from jackfield_store_postgres.creation import describe

    return describe(settings)


def _warnings(settings: PostgresSettings) -> Sequence[str]:
    from jackfield_store_postgres.creation import warnings

    return warnings(settings)


def __getattr__(name: str) -> Any:
    # Loaded on demand: every build imports this module, and loading asyncpg would make it slower.
    if name == "PostgresStore":
        from jackfield_store_postgres.store import PostgresStore

        return PostgresStore
    if name == "ShardedStore":
        from jackfield_store_postgres.sharded_store import ShardedStore

        return ShardedStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

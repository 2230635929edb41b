"""How the tests open stores, in their own process and in others.

A place is `url#schema`, with several URLs, separated by spaces, for a store that is spread over them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from jackfield_store_postgres import PostgresStore, ShardedStore

AnyStore: TypeAlias = PostgresStore | ShardedStore

LEASE = 2.0
"""Shorter than the default, so that the tests wait less for the end of a lease."""


def split(place: str) -> tuple[str, str]:
    """Return the URL and the schema of a place."""
    url, _, schema = place.partition("#")
    return url, schema


async def open_store(place: str, **options: Any) -> PostgresStore:
    """Open the store at a place, and create it if needed."""
    url, schema = split(place)
    return await PostgresStore.open(url, **{"schema": schema, "lease": LEASE, **options})


async def open_sharded_store(place: str, **options: Any) -> ShardedStore:
    """Open the store that is spread over the databases of a place, and create it if needed."""
    urls, schema = split(place)
    return await ShardedStore.open(urls.split(), **{"schema": schema, "lease": LEASE, **options})


async def open_unregistered(place: str) -> AnyStore:
    """Open a store that makes no claims yet, with the usual lease, so that its time can still be replaced."""
    urls, schema = split(place)
    if " " in urls:
        return await ShardedStore.open(urls.split(), schema=schema)
    store = PostgresStore(urls, schema=schema)
    await store.get("")
    return store

"""Creates a store, and inspects one without changing it.

Callers of these functions have no event loop, or block the one they have, so each call runs a loop of its own
on a thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from jackfield.store import StoreUnavailableError
from jackfield_postgres.errors import UNREACHABLE

from jackfield_store_postgres.connection import ConnectionOptions
from jackfield_store_postgres.errors import RefusedError, unavailable_error
from jackfield_store_postgres.server_check import durability_warnings
from jackfield_store_postgres.settings import PostgresSettings
from jackfield_store_postgres.shard_set import ShardSession, ShardSet
from jackfield_store_postgres.sharded_store import ShardedStore
from jackfield_store_postgres.store import PostgresStore

Result = TypeVar("Result")
Inspection = Callable[[ShardSet], Coroutine[Any, Any, Result]]

_DESCRIPTION = """
    SELECT
        (SELECT count(*) FROM claims) AS claims,
        (SELECT count(*) FROM kept) AS "values",
        (SELECT count(*) FROM streams) AS streams,
        (SELECT count(*) FROM owners WHERE renewed + lease > store_time()) AS hosts,
        (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
         WHERE c.relkind = 'r' AND c.relnamespace = to_regnamespace(quote_ident($1))) AS bytes
"""


def open_configured(settings: PostgresSettings) -> PostgresStore | ShardedStore:
    """Return the configured store, which is opened at first use and never created."""
    first, *others = _options(settings)
    options = {
        "lease": settings.lease,
        "patience": settings.patience,
        "pool_size": settings.pool_size,
        "durable_appends": settings.durable_appends,
        "store_id": settings.id,
        **{name: getattr(first, name) for name in ConnectionOptions.__slots__ if name != "url"},
    }
    if others:
        return ShardedStore([first.url, *(each.url for each in others)], **options)
    return PostgresStore(first.url, create=False, **options)


def missing(settings: PostgresSettings) -> str | None:
    """Return why the store cannot be opened and what to do; None if it can."""

    async def inspect(shards: ShardSet) -> str | None:
        return await shards.unusable_reason(settings.id)

    try:
        return _inspect(settings, inspect)
    except RefusedError as error:
        return str(error)


def initialise(settings: PostgresSettings) -> str:
    """Create the store and return a sentence with its place and id; raise if it exists or an id is set."""

    async def create(shards: ShardSet) -> str:
        store_id, is_new = await shards.create(settings.id)
        if not is_new:
            raise RefusedError(
                f"nothing was created: {shards.place} is already a store, with the id {store_id}"
            )
        return f"created a new store in {shards.place}, with the id {store_id}"

    return _inspect(settings, create)


def describe(settings: PostgresSettings) -> dict[str, Any]:
    """Return what `jackfield store show` prints; expired rows count until they are pruned."""

    async def inspect(shards: ShardSet) -> dict[str, Any]:
        facts = [await _facts(session) for session in shards.sessions]
        return facts[0] if len(facts) == 1 else _combined(facts)

    return _inspect(settings, inspect)


def warnings(settings: PostgresSettings) -> list[str]:
    """Return warnings for the operator about the durability of each database."""

    async def inspect(shards: ShardSet) -> list[str]:
        found = [durability_warnings(each.facts, each.options.place) for each in shards.sessions]
        return [warning for each in found for warning in each]

    return _inspect(settings, inspect)


async def _facts(session: ShardSession) -> dict[str, Any]:
    """Return what `describe` shows about one database."""
    found = await session.identity()
    with session.errors_named():
        counts = await session.connection.fetchrow(_DESCRIPTION, session.options.schema)
    lacking = durability_warnings(session.facts, session.options.place)
    return {
        "id": found.id,
        "place": session.options.place,
        "server": session.facts.full_version,
        "schema": found.version,
        "created": found.created,
        **dict(counts or {}),
        "standby": session.facts.standby_names or "none that is synchronous",
        **({"warning": "; ".join(lacking)} if lacking else {}),
    }


def _combined(facts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what `describe` shows about several databases: the store's id, sums, and facts about each."""
    combined = {"id": facts[0]["id"], "shards": len(facts)}
    combined |= {name: sum(each[name] for each in facts) for name in ("claims", "values", "streams", "bytes")}
    # Every database counts the hosts that have made claims in it.
    combined["hosts"] = max(each["hosts"] for each in facts)
    for number, each in enumerate(facts, 1):
        combined |= {f"shard {number} {name}": value for name, value in each.items() if name != "id"}
    return combined


def _options(settings: PostgresSettings) -> list[ConnectionOptions]:
    """Return each database's options, in the order of the shards."""
    try:
        urls = settings.addresses()
    except ValueError as error:
        raise RefusedError(f"the postgres store: {error}") from None
    if not urls:
        raise RefusedError(
            f"the postgres store has no URL; set the environment variable {settings.url_env}, or `url` in "
            f"[stores.postgres]; for several databases, {settings.shards_env} or `shards`"
        )
    return [
        ConnectionOptions(
            url,
            settings.schema,
            settings.connect_timeout,
            settings.statement_timeout,
            settings.lock_timeout,
            settings.application_name,
        )
        for url in urls
    ]


def _inspect(settings: PostgresSettings, inspection: Inspection[Result]) -> Result:
    """Run an inspection on new sessions, on a thread of its own."""
    options = _options(settings)
    outcome: list[Result] = []
    problems: list[Exception] = []

    async def inspect() -> None:
        try:
            async with (
                asyncio.timeout(settings.connect_timeout + settings.patience),
                ShardSet.connect(options) as shards,
            ):
                outcome.append(await inspection(shards))
        except (StoreUnavailableError, *UNREACHABLE) as error:
            problems.append(unavailable_error(" and ".join(each.place for each in options), error))

    thread = threading.Thread(target=lambda: asyncio.run(inspect()), name="jackfield-store-inspection")
    thread.start()
    thread.join()
    if problems:
        raise problems[0]
    return outcome[0]

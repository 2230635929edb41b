"""A store's tables, migrations and identity, in a schema of their own.

The first host of a new version applies a migration while hosts of the previous version are still running.
Each migration therefore records the oldest version that can use the new tables. A host accepts newer tables
if its own version is not older than that.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

from jackfield_postgres.session import Connection

from jackfield_store_postgres.errors import RefusedError


class Migration(NamedTuple):
    """A change to the tables, and the oldest `VERSION` of this plugin that can use the result."""

    minimum: int
    statements: str


# Existing migrations never change; a change is appended as a new one.
#
# Names have no schema: every session has the store's schema as its search path. Keys sort by code point
# (COLLATE "C"), so that a prefix is a range of the primary key's index.
MIGRATIONS = (
    Migration(
        1,
        """
        CREATE TABLE identity (
            single boolean PRIMARY KEY DEFAULT true CHECK (single),
            id text NOT NULL,
            created timestamptz NOT NULL
        );

        -- The only source of time. The planner replaces these functions by their bodies.
        CREATE FUNCTION store_time() RETURNS timestamptz LANGUAGE sql VOLATILE
            AS 'SELECT clock_timestamp()';
        CREATE FUNCTION expiry(seconds float8) RETURNS timestamptz LANGUAGE sql VOLATILE AS
            'SELECT CASE WHEN seconds IS NULL THEN ''infinity''::timestamptz '
            'ELSE store_time() + make_interval(secs => seconds) END';

        -- Never reused, also not after a claim was released and made again.
        CREATE SEQUENCE fences;

        -- One row per open store that makes claims. A row is updated about once a second and never grows.
        CREATE TABLE owners (
            id text COLLATE "C" PRIMARY KEY,
            renewed timestamptz NOT NULL,
            lease interval NOT NULL,
            grace interval NOT NULL,
            session bigint NOT NULL,
            host text NOT NULL
        ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

        -- Room on each page for the result, so that completing a claim does not touch the indexes.
        CREATE TABLE claims (
            key text COLLATE "C" PRIMARY KEY,
            fence bigint NOT NULL,
            attempt bigint NOT NULL,
            expires timestamptz NOT NULL,
            owner text COLLATE "C" NOT NULL,
            fingerprint bytea NOT NULL,
            note bytea,
            result bytea
        ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
                autovacuum_vacuum_insert_scale_factor = 0.05);
        CREATE INDEX claims_expiry ON claims (expires) WHERE expires < 'infinity';
        CREATE INDEX claims_noted ON claims (key) WHERE note IS NOT NULL;

        CREATE TABLE kept (
            key text COLLATE "C" PRIMARY KEY,
            expires timestamptz NOT NULL,
            value bytea NOT NULL
        ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
        CREATE INDEX kept_expiry ON kept (expires) WHERE expires < 'infinity';

        CREATE TABLE counters (
            key text COLLATE "C" PRIMARY KEY,
            since timestamptz NOT NULL,
            expires timestamptz NOT NULL,
            count bigint NOT NULL
        ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
        CREATE INDEX counters_expiry ON counters (expires) WHERE expires < 'infinity';

        -- A stream keeps its row, and so its last id, forever: no id is used twice.
        CREATE TABLE streams (
            name text COLLATE "C" PRIMARY KEY,
            number bigint NOT NULL UNIQUE GENERATED ALWAYS AS IDENTITY,
            last bigint NOT NULL
        ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
        CREATE TABLE entries (
            stream bigint NOT NULL,
            id bigint NOT NULL,
            expires timestamptz NOT NULL,
            value bytea NOT NULL,
            PRIMARY KEY (stream, id)
        ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
        CREATE INDEX entries_expiry ON entries (expires) WHERE expires < 'infinity';
        """,
    ),
    # A store may be spread over several databases. A store in one database has one shard.
    Migration(
        1,
        """
        ALTER TABLE identity
            ADD COLUMN shard integer NOT NULL DEFAULT 1,
            ADD COLUMN shards integer NOT NULL DEFAULT 1,
            ADD COLUMN complete boolean NOT NULL DEFAULT true;
        """,
    ),
)

VERSION = len(MIGRATIONS)

_MIGRATION_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('jackfield migration of ' || $1, 0))"
_VERSIONS_TABLE = """
    CREATE TABLE versions (
        version integer PRIMARY KEY,
        minimum integer NOT NULL,
        applied timestamptz NOT NULL DEFAULT clock_timestamp()
    )
"""
_STATE = """
    SELECT
        to_regnamespace(quote_ident($1)) IS NOT NULL AS has_schema,
        count(*) FILTER (WHERE relname IN ('versions', 'identity') AND relkind = 'r') = 2 AS is_store,
        count(*) > 0 AS has_tables
    FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident($1))
"""
_RIGHTS = """
    SELECT 'the schema' WHERE NOT has_schema_privilege(to_regnamespace(quote_ident($1)), 'USAGE')
    UNION ALL
    SELECT relname::text FROM pg_class
    WHERE relnamespace = to_regnamespace(quote_ident($1)) AND (
        relkind = 'r' AND NOT has_table_privilege(oid, 'SELECT')
        OR relkind = 'r' AND relname NOT IN ('identity', 'versions')
            AND NOT (has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE')
                AND has_table_privilege(oid, 'DELETE'))
        OR relname = 'fences' AND NOT has_sequence_privilege(oid, 'USAGE')
    )
    ORDER BY 1
"""


class SchemaState(NamedTuple):
    """The contents of a schema."""

    has_schema: bool
    is_store: bool
    has_tables: bool


class Shard(NamedTuple):
    """A database's number within its store, counted from 1, and the number of databases."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"shard {self.number} of {self.total}"


SINGLE = Shard(1, 1)


class SchemaIdentity(NamedTuple):
    """The random id of a store and the versions of its tables; a replica or backup has the same id.

    All shards of a store have the same id. `complete` is False until all of them have been created.
    """

    id: str
    created: str
    version: int
    minimum: int
    number: int = 1
    total: int = 1
    complete: bool = True

    @property
    def shard(self) -> Shard:
        """This database's shard."""
        return Shard(self.number, self.total)


async def state(connection: Connection, schema: str) -> SchemaState:
    """Return what the schema contains."""
    row = await connection.fetchrow(_STATE, schema)
    return SchemaState(*row) if row else SchemaState(False, False, False)


async def identity(connection: Connection) -> SchemaIdentity:
    """Return the identity of the store in the session's schema."""
    row = await connection.fetchrow(
        "SELECT i.id, to_char(i.created AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"+00:00\"'), "
        # Read through JSON, because a store that has not been migrated yet lacks these columns.
        "v.version, v.minimum, coalesce((to_jsonb(i)->>'shard')::integer, 1), "
        "coalesce((to_jsonb(i)->>'shards')::integer, 1), coalesce((to_jsonb(i)->>'complete')::boolean, true) "
        "FROM identity i, versions v ORDER BY v.version DESC LIMIT 1"
    )
    if row is None:
        raise RefusedError("the store has no identity: its tables were emptied; restore a backup")
    return SchemaIdentity(*row)


def rejection_reason(
    found: SchemaIdentity, place: str, pinned: str | None, shard: Shard = SINGLE
) -> str | None:
    """Return why a store is not the configured one, or has an incompatible version; None if it fits."""
    if pinned is not None and found.id != pinned and shard != SINGLE:
        return (
            f"{place}, which [stores.postgres] lists as {shard}, has the id {found.id}, but the `id` setting "
            f"or another shard has {pinned}: it is not the same store; correct the URLs, the schema or the "
            "`id` setting"
        )
    if pinned is not None and found.id != pinned:
        return (
            f"the store {place} has the id {found.id}, but [stores.postgres] requires the id {pinned}: it is "
            "not the same store; correct the URL or the schema, or, if you want to use this one, change the "
            "`id` setting"
        )
    if found.minimum > VERSION:
        return (
            f"the store {place} was migrated by a newer version (its tables have the version {found.version} "
            f"and need at least {found.minimum}; this one knows {VERSION}); upgrade jackfield-store-postgres"
        )
    if found.shard != shard:
        return _shard_reason(found.shard, place, shard)
    if not found.complete:
        return (
            f"{place} is {shard} of a store that was not created completely; run `jackfield store create` "
            "again"
        )
    return None


def _shard_reason(found: Shard, place: str, expected: Shard) -> str:
    """Return why a database is not the expected shard."""
    if found.total == expected.total:
        return (
            f"{place} is {found}, but [stores.postgres] lists it as {expected}; list the shards in the order "
            "in which they were created, each database once"
        )
    is_one = "the only database of its store" if found == SINGLE else str(found)
    listed = "names it as the only one" if expected == SINGLE else f"lists it as {expected}"
    return (
        f"{place} is {is_one}, but [stores.postgres] {listed}; the number of shards of a store cannot be "
        "changed: list the databases with which it was created, or create a new store in empty databases"
    )


async def missing_rights(connection: Connection, schema: str) -> list[str]:
    """Return the schema, tables and sequences on which the session's user lacks a right."""
    return [str(row[0]) for row in await connection.fetch(_RIGHTS, schema)]


async def create(
    connection: Connection, schema: str, *, store_id: str | None = None, shard: Shard = SINGLE
) -> str:
    """Create the schema if needed, and the store in it; return the store's id.

    If there are several shards, the store is incomplete until `mark_complete`.

    Everything happens in one transaction, so a store is complete or absent. Raises `FileExistsError` if the
    schema contains tables.
    """
    store_id = store_id or secrets.token_hex(16)
    async with connection.transaction():
        await connection.execute(_MIGRATION_LOCK, schema)
        found = await state(connection, schema)
        if found.has_tables:
            raise FileExistsError(schema)
        if not found.has_schema:
            await connection.execute(f'CREATE SCHEMA "{schema}"')
        await connection.execute(_VERSIONS_TABLE)
        for number in range(len(MIGRATIONS)):
            await _apply(connection, number)
        await connection.execute(
            "INSERT INTO identity (id, created, shard, shards, complete) "
            "VALUES ($1, clock_timestamp(), $2, $3, $4)",
            store_id,
            *shard,
            shard == SINGLE,
        )
    return store_id


async def mark_complete(connection: Connection) -> None:
    """Record that all shards of the store exist: from now on, a missing one was lost."""
    await connection.execute("UPDATE identity SET complete = true WHERE NOT complete")


async def migrate(connection: Connection, schema: str) -> None:
    """Apply the migrations that an existing store lacks, each in its own transaction."""
    # Usually there is nothing to do, and then a host must not need the right to change tables.
    while await _version(connection) < VERSION:
        async with connection.transaction():
            await connection.execute(_MIGRATION_LOCK, schema)
            # Read again: another host may have migrated while this one waited for the lock.
            number = await _version(connection)
            if number < VERSION:
                await _apply(connection, number)


async def _version(connection: Connection) -> int:
    return int(await connection.fetchval("SELECT coalesce(max(version), 0) FROM versions"))


async def _apply(connection: Connection, number: int) -> None:
    migration = MIGRATIONS[number]
    await connection.execute(migration.statements)
    await connection.execute(
        "INSERT INTO versions (version, minimum) VALUES ($1, $2)", number + 1, migration.minimum
    )

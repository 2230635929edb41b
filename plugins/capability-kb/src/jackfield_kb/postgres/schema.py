"""Tables, row-level security and migrations, in the PostgreSQL schema `jackfield_kb`.

The first host of a new version migrates the tables under a lock, while hosts of the previous version are
still running. A host refuses tables of a later version.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import asyncpg
from jackfield_postgres.session import KEEPALIVE

from jackfield_kb.errors import LibraryError

Connection: TypeAlias = "asyncpg.Connection[Any] | asyncpg.pool.PoolConnectionProxy[Any]"

SCHEMA = "jackfield_kb"
READER = "jackfield_kb_reader"
"""The role that searches use if the session's user bypasses row-level security."""

ALL = "*"
"""Stands for all scopes in `jackfield_kb.scopes`; no record has this scope."""

_PGVECTOR = (0, 8)
_MIGRATIONS = (
    """
    CREATE TABLE head (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        library text NOT NULL DEFAULT gen_random_uuid()::text,
        number bigint NOT NULL DEFAULT 0,
        step bigint NOT NULL DEFAULT 0
    );
    COMMENT ON TABLE head IS 'The last record number and removal step. Each writer locks the row, so that '
        'numbers become visible in their order and nobody who follows them misses one.';
    INSERT INTO head DEFAULT VALUES;

    CREATE TABLE sources (
        uri text COLLATE "C" PRIMARY KEY,
        digest text NOT NULL,
        collection text NOT NULL,
        host text NOT NULL
    );

    CREATE TABLE records (
        number bigint PRIMARY KEY,
        id text COLLATE "C" NOT NULL UNIQUE,
        source text COLLATE "C" REFERENCES sources,
        digest bytea NOT NULL,
        type text NOT NULL,
        namespace text NOT NULL,
        owner text,
        title text NOT NULL,
        text text NOT NULL,
        tags text NOT NULL,
        url text,
        source_type text NOT NULL,
        last_updated text,
        metadata text NOT NULL,
        scope text NOT NULL,
        facets text[] NOT NULL,
        updated bigint,
        characters integer NOT NULL
    );
    CREATE INDEX records_by_source ON records (source);
    CREATE INDEX records_by_kind ON records (namespace, type);

    ALTER TABLE records ENABLE ROW LEVEL SECURITY;
    ALTER TABLE records FORCE ROW LEVEL SECURITY;
    CREATE POLICY visible ON records USING (
        scope = ANY ((SELECT nullif(current_setting('jackfield_kb.scopes', true), ''))::text[])
        OR '*' = ANY ((SELECT nullif(current_setting('jackfield_kb.scopes', true), ''))::text[])
    );

    CREATE TABLE removed (
        step bigint PRIMARY KEY,
        number bigint NOT NULL
    );

    CREATE TABLE leases (
        name text COLLATE "C" PRIMARY KEY,
        token text NOT NULL,
        holder text NOT NULL,
        until timestamptz NOT NULL
    );

    CREATE TABLE models (
        model text PRIMARY KEY,
        dimensions integer NOT NULL,
        number bigint NOT NULL
    );
    COMMENT ON TABLE models IS 'All records up to a number have vectors of the model.';
    CREATE TABLE vectors (
        model text NOT NULL,
        number bigint NOT NULL REFERENCES records ON DELETE CASCADE,
        ordinal integer NOT NULL,
        facets text[] NOT NULL,
        updated bigint,
        vector halfvec NOT NULL,
        PRIMARY KEY (number, model, ordinal)
    );
    ALTER TABLE vectors ALTER vector SET STORAGE PLAIN;
    CREATE INDEX vectors_by_facet ON vectors USING gin (facets);

    CREATE TABLE totals (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        number bigint NOT NULL DEFAULT 0,
        passages bigint NOT NULL DEFAULT 0,
        words bigint NOT NULL DEFAULT 0,
        titles bigint NOT NULL DEFAULT 0,
        complete boolean NOT NULL DEFAULT false
    );
    COMMENT ON TABLE totals IS 'The number up to which records have passages, and totals of the passages.';
    INSERT INTO totals DEFAULT VALUES;
    CREATE TABLE terms (
        term integer PRIMARY KEY,
        passages integer NOT NULL
    ) WITH (fillfactor = 70);
    CREATE TABLE passages (
        number bigint NOT NULL REFERENCES records ON DELETE CASCADE,
        ordinal integer NOT NULL,
        facets text[] NOT NULL,
        updated bigint,
        words integer NOT NULL,
        titles integer NOT NULL,
        terms integer[] NOT NULL,
        impacts sparsevec NOT NULL,
        PRIMARY KEY (number, ordinal)
    );
    CREATE INDEX passages_by_term ON passages USING gin (terms);
    CREATE INDEX passages_by_facet ON passages USING gin (facets);
    """,
)
VERSION = len(_MIGRATIONS)

_ROLE = f"""
    DO $$ BEGIN
        CREATE ROLE {READER} NOLOGIN NOSUPERUSER NOBYPASSRLS NOINHERIT;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END $$;
    GRANT USAGE ON SCHEMA {SCHEMA} TO {READER};
    GRANT SELECT ON {SCHEMA}.records TO {READER};
"""


async def bring_up_to_date(connection: Connection, place: str) -> bool:
    """Create or migrate the tables; return whether the user bypasses row-level security."""
    bypasses: bool = await connection.fetchval(
        "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    )
    if await _version(connection, place) == VERSION:
        return bypasses
    await connection.execute("SELECT pg_advisory_lock(hashtextextended('jackfield_kb:migrate', 0))")
    try:
        async with connection.transaction():
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            await _require_pgvector(connection, place)
            await connection.execute(
                f"SET LOCAL search_path TO {SCHEMA}, {await _place_of_pgvector(connection)}"
            )
            await connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)")
            version = await _version(connection, place)
            for statements in _MIGRATIONS[version:]:
                await connection.execute(statements)
            await connection.execute("DELETE FROM schema_version")
            await connection.execute("INSERT INTO schema_version VALUES ($1)", VERSION)
            if bypasses:
                await connection.execute(_ROLE)
    finally:
        await connection.execute("SELECT pg_advisory_unlock(hashtextextended('jackfield_kb:migrate', 0))")
    return bypasses


async def _version(connection: Connection, place: str) -> int:
    if await connection.fetchval(f"SELECT to_regclass('{SCHEMA}.schema_version')") is None:
        return 0
    found = await connection.fetchval(f"SELECT max(version) FROM {SCHEMA}.schema_version")  # noqa: S608
    if (found or 0) > VERSION:
        raise LibraryError(
            f"the records in {place} were created by a later version of jackfield-capability-kb; "
            "install that version"
        )
    return int(found or 0)


async def _require_pgvector(connection: Connection, place: str) -> None:
    how = f"install pgvector {'.'.join(map(str, _PGVECTOR))} or later on the server of {place}"
    try:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except asyncpg.InsufficientPrivilegeError:
        raise LibraryError(
            f"the vector extension is missing in {place}; "
            "a superuser has to run CREATE EXTENSION vector in that database"
        ) from None
    except (asyncpg.FeatureNotSupportedError, asyncpg.UndefinedFileError):
        raise LibraryError(f"the vector extension is missing; {how}") from None
    version = await connection.fetchval("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    if tuple(map(int, version.split(".")[:2])) < _PGVECTOR:
        raise LibraryError(
            f"the vector extension has version {version}; {how}, and run ALTER EXTENSION vector UPDATE"
        )


async def _place_of_pgvector(connection: Connection) -> str:
    found: str = await connection.fetchval(
        "SELECT quote_ident(nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        "WHERE extname = 'vector'"
    )
    return found


async def prepare_session(connection: Connection) -> None:
    """Configure a session of the pool; vectors are exchanged in binary format."""
    place = await _place_of_pgvector(connection)
    await connection.execute(
        f"""
        SET search_path TO {SCHEMA}, {place};
        SET plan_cache_mode = force_custom_plan;
        SET jit = off;
        SET idle_in_transaction_session_timeout = '60s';
        SET hnsw.iterative_scan = relaxed_order;
        SET hnsw.ef_search = 100;
        {KEEPALIVE}
        """
    )
    for name in ("halfvec", "sparsevec"):
        await connection.set_type_codec(
            name, schema=place.strip('"'), encoder=bytes, decoder=bytes, format="binary"
        )

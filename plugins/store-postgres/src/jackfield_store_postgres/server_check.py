"""Checks that a server can hold a store: version, encoding, a direct connection, durability."""

from __future__ import annotations

from typing import NamedTuple

from jackfield_postgres.session import Connection, close

from jackfield_store_postgres.connection import ConnectionOptions, connect
from jackfield_store_postgres.errors import POOLED, POOLER_REASON, RefusedError

MINIMUM_VERSION = 15

_FACTS = """
    SELECT current_setting('server_version_num')::integer / 10000 AS version,
        current_setting('server_version') AS full_version,
        current_setting('server_encoding') AS encoding,
        current_setting('fsync') = 'on' AS flushes,
        current_setting('synchronous_standby_names') AS standby_names,
        (SELECT count(*) FROM pg_stat_replication) AS standbys,
        pg_backend_pid() AS pid
"""


class ServerFacts(NamedTuple):
    """Facts that a server reports about itself."""

    version: int
    full_version: str
    encoding: str
    flushes: bool
    standby_names: str
    standbys: int
    pid: int


async def check_server(connection: Connection, options: ConnectionOptions) -> ServerFacts:
    """Return the facts about a server; raise `RefusedError` if it cannot hold a store."""
    try:
        row = await connection.fetchrow(_FACTS)
    except POOLED:
        raise RefusedError(f"the store {options.place} {POOLER_REASON}") from None
    if row is None:
        raise RefusedError(
            f"the store {options.place} does not answer a query; check which server the URL names"
        )
    facts = ServerFacts(*row)
    if facts.version < MINIMUM_VERSION:
        raise RefusedError(
            f"the store {options.place} is on PostgreSQL {facts.full_version}; upgrade the server to version "
            f"{MINIMUM_VERSION} or later"
        )
    if facts.encoding != "UTF8":
        raise RefusedError(
            f"the database of the store {options.place} has the encoding {facts.encoding}; create a database "
            "with the encoding UTF8"
        )
    # A pooler invents the process id that it reports at the start of a session.
    if facts.pid != connection.get_server_pid():
        await _check_pooler(connection, options)
    return facts


async def _check_pooler(connection: Connection, options: ConnectionOptions) -> None:
    """Refuse a pooler that gives two open sessions the same server process, or one session two of them."""
    other = await connect(options)
    try:
        pids = [
            int(await each.fetchval("SELECT pg_backend_pid()"))
            for each in (connection, other, connection, other)
        ]
    except POOLED:
        pids = [0, 0, 0, 0]
    finally:
        await close(other)
    if pids[0] == pids[1] or pids[:2] != pids[2:]:
        raise RefusedError(f"the store {options.place} {POOLER_REASON}")


def durability_warnings(facts: ServerFacts, place: str) -> list[str]:
    """Return warnings for the operator about writes that a server failure may lose."""
    warnings = []
    if not facts.flushes:
        warnings.append(
            f"the server of the store {place} has fsync = off: a power cut loses acknowledged calls; set it "
            "to on"
        )
    if not facts.standby_names:
        kind = "only asynchronous standbys" if facts.standbys else "no standby"
        warnings.append(
            f"the server of the store {place} has {kind}: a failover or the loss of its disk loses the most "
            "recent acknowledged calls; set synchronous_standby_names for a synchronous standby"
        )
    return warnings

"""Real hosts on a store in two PostgreSQL servers, one of which goes away and comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from cluster.cluster import ClusterDeployment
from faults import client
from faults.deployment import NOTE, Host, Store
from faults.effect_log import EffectLog
from faults.record import CallRecord
from jackfield_store_postgres.sharded_store import shard_of
from jackfield_testkit.postgres import PostgresServer

PATIENCE = 120.0


@contextmanager
def servers() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """Two servers, each with a database."""
    with PostgresServer.temporary() as first, PostgresServer.temporary() as second:
        yield first, second


def note(name: str, token: str) -> CallRecord:
    return CallRecord(name, f"sharded-{name}-call", NOTE, 0.0, 0.0, "none", token)


async def session_in(shard: int, host: Host) -> str:
    """Open a session whose state is in a certain database; return its token."""
    async with asyncio.timeout(PATIENCE):
        while True:
            token = await client.open_session(host)
            assert token
            if shard_of(f"session/{token.partition('.')[0]}", 2) == shard:
                return token


async def done(call: CallRecord, host: Host) -> bool:
    said = await client.execute(call, host)
    return said is not None and said.state == "done"


async def until_done(call: CallRecord, host: Host) -> None:
    end = time.monotonic() + PATIENCE
    while not await done(call, host):
        assert time.monotonic() < end, call.statements[-1]
        await asyncio.sleep(0.1)


def test_hosts_share_two_databases_and_go_on_with_one_of_them(tmp_path: Path) -> None:
    with servers() as (first, second):
        asyncio.run(use(first, second, tmp_path))


async def use(first: PostgresServer, second: PostgresServer, folder: Path) -> None:
    settings = {"shards": [first.uri(), second.uri()], "lease": 2.0, "patience": 1.0, "pool_size": 3}
    deployment = ClusterDeployment(folder, Store("postgres", settings))
    log = EffectLog(folder)
    async with AsyncExitStack() as closing:
        north, south = Host(deployment, 1), Host(deployment, 2)
        for host in (north, south):
            closing.push_async_callback(host.close)
        await north.start()
        await south.start()
        tokens = [await session_in(shard, north) for shard in (0, 1)]

        # Either host serves every session, and both list the same.
        before = [note(f"before-{shard}", token) for shard, token in enumerate(tokens)]
        for call in before:
            assert await done(call, north)
            assert await done(call, south)
        for host in (north, south):
            hosts = (await host.http.get("/hosts")).json()["hosts"]
            assert len(hosts) == 2

        # Without the other database, the sessions in that of their user go on.
        user_shard = shard_of("user/cluster", 2)
        away = (first, second)[1 - user_shard]
        await asyncio.to_thread(away.stop, "immediate")
        lost, kept = (note(f"during-{shard}", tokens[shard]) for shard in (1 - user_shard, user_shard))
        said = await client.execute(lost, north)
        assert said is not None
        assert said.state == "unavailable"
        await until_done(kept, north)

        # The database is back: everything works, without a restart of the hosts, and nothing ran twice.
        await asyncio.to_thread(away.start)
        for call in (lost, kept, *before):
            await until_done(call, south)
            await until_done(call, north)
        log.look()
        assert {name: len(found) for name, found in log.effects.items()} == {
            call.name: 1 for call in (*before, lost, kept)
        }
        assert (await south.http.get("/calls")).json()["calls"] == []

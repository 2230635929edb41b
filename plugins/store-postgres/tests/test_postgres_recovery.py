"""A database that cannot be reached and comes back: errors meanwhile, and recovery within 5 seconds."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from jackfield.store import Claim, ClaimState, StoreUnavailableError
from jackfield_store_postgres import PostgresStore, database, silent_sessions
from jackfield_store_postgres.settings import PostgresSettings
from jackfield_testkit.postgres import PostgresServer
from postgres_stores import open_store, split
from tcp_proxy import TcpProxy

RECOVERY = 5.0
"""The promise, in seconds."""

MARGIN = 15.0
"""What a busy machine may add."""

Operation = Callable[[], Awaitable[Any]]


def through(proxy: TcpProxy, place: str) -> str:
    """Return the same place, reached through a proxy."""
    url, schema = split(place)
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/{url.rpartition('/')[2]}#{schema}"


def operations(store: PostgresStore) -> Mapping[str, Operation]:
    """Return operations of every kind, which can be made any number of times."""
    return {
        "get": lambda: store.get("k"),
        "put": lambda: store.put("k", b"x"),
        "take": lambda: store.take("none"),
        "append": lambda: store.append("s", b"x"),
        "read": lambda: store.read("s"),
        "claim": lambda: store.claim("new", b"f", ttl=600),
        "holds": lambda: store.holds("held"),
        "add": lambda: store.add("c", 1, window=60),
        "streams": lambda: store.streams(""),
    }


async def failures(store: PostgresStore) -> set[str]:
    """Make every operation at the same time; return which of them found the store unavailable."""
    made = operations(store)
    results = await asyncio.gather(*(each() for each in made.values()), return_exceptions=True)
    unexpected = [
        each
        for each in results
        if isinstance(each, BaseException) and not isinstance(each, StoreUnavailableError)
    ]
    assert not unexpected
    return {name for name, each in zip(made, results, strict=True) if isinstance(each, StoreUnavailableError)}


async def recover(store: PostgresStore) -> None:
    """Wait until every operation works; fails after the promised time and the margin."""
    began = time.monotonic()
    while failing := await failures(store):
        assert time.monotonic() - began < RECOVERY + MARGIN, f"still unavailable: {failing}"
        await asyncio.sleep(0.05)
    assert time.monotonic() - began < RECOVERY + MARGIN


def test_the_waits_of_the_default_settings_add_up_to_less_than_the_promise() -> None:
    settings = PostgresSettings()
    # An attempt to connect that nobody answers began just before the database came back.
    assert settings.connect_timeout + database._MAX_PAUSE < RECOVERY
    # The same attempt was to ask about silent sessions, and is made again.
    question = silent_sessions._SILENCE_SECONDS + silent_sessions._ARRIVAL_SECONDS
    assert settings.connect_timeout + question < RECOVERY
    # All of that is over before an operation that began with the recovery gives up.
    assert settings.connect_timeout + question < settings.patience


def test_a_store_works_again_after_its_server_was_restarted() -> None:
    with PostgresServer.temporary() as server:

        async def use() -> None:
            store = await PostgresStore.open(server.uri(), patience=2.0)
            await store.claim("held", b"f", ttl=600, note=b"n")
            await asyncio.to_thread(server.stop, "immediate")
            assert await failures(store) == set(operations(store))
            await asyncio.to_thread(server.start)
            await recover(store)
            assert await store.complete("held", b"r")
            await store.close()

        asyncio.run(use())


def test_a_store_works_again_after_its_network_swallowed_everything(
    server: PostgresServer, place: str
) -> None:
    async def use() -> None:
        async with TcpProxy.to(server.port) as proxy:
            store = await open_store(through(proxy, place), lease=60.0, patience=2.0)
            await store.claim("held", b"f", ttl=600, note=b"n")
            proxy.lead_nowhere(True)
            assert await failures(store) == set(operations(store))
            proxy.lead_nowhere(False)
            await recover(store)
            assert await store.complete("held", b"r")
            await store.close()

    asyncio.run(use())


def test_operations_on_connections_that_vanished_unnoticed_are_repeated_on_new_ones(
    server: PostgresServer, place: str
) -> None:
    async def use() -> None:
        async with TcpProxy.to(server.port) as proxy:
            # Longer than a busy machine takes: the operations must not wait for the patience.
            store = await open_store(through(proxy, place), lease=60.0, patience=60.0)
            await store.claim("held", b"f", ttl=600)
            assert await failures(store) == set()
            proxy.lose_connections()
            async with asyncio.timeout(RECOVERY + MARGIN):
                assert await store.get("k") == b"x"
                assert await store.holds("held")
                assert await store.complete("held", b"r")
                assert (await store.claim("held", b"f", ttl=600)).result == b"r"
                assert await failures(store) == set()
            proxy.lose_connections()
            # It may have been done, as far as the store knows.
            async with asyncio.timeout(RECOVERY + MARGIN):
                with pytest.raises(StoreUnavailableError, match="may or may not have taken effect"):
                    await store.append("s", b"x")
                await store.append("s", b"x")
            await store.close()

    asyncio.run(use())


def test_a_statement_that_waits_in_the_server_is_left_alone(server: PostgresServer, place: str) -> None:
    url, schema = split(place)

    async def use() -> None:
        async with TcpProxy.to(server.port) as proxy:
            store = await open_store(through(proxy, place), patience=60.0, lock_timeout=60.0)
            await store.put("k", b"x")
            proxy.count_messages(b"IS DISTINCT FROM 'idle'")
            blocking: Any = await asyncpg.connect(url)
            async with blocking.transaction():
                await blocking.execute(f"SELECT FROM {schema}.kept FOR UPDATE")
                # It cannot be repeated, so it would fail if its session were dropped.
                taking = asyncio.create_task(store.take("k"))
                await proxy.counted(2)
            assert await taking == b"x"
            await blocking.close()
            await store.close()

    asyncio.run(use())


def test_a_store_works_again_after_its_synchronous_standby_stalled() -> None:
    with PostgresServer.temporary() as primary:
        folder = primary.folder.parent / "standby"
        with primary.standby(folder, "sb1") as standby:
            primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (sb1)'")
            primary.execute("SELECT pg_reload_conf()")
            url = f"postgresql://postgres@127.0.0.1:{standby.port},127.0.0.1:{primary.port}/postgres"
            asyncio.run(_stall(url, standby))


async def _stall(url: str, standby: PostgresServer) -> None:
    store = await PostgresStore.open(url, lease=60.0, patience=2.0)
    await store.claim("held", b"f", ttl=600, note=b"n")
    assert await failures(store) == set()
    processes = _processes(standby)
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        # The primary answers reads, but no durable commit succeeds; the claim was made before.
        assert await failures(store) >= {"put", "append"}
        with pytest.raises(StoreUnavailableError):
            await store.claim("during", b"f", ttl=600)
        assert await store.get("k") == b"x"
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)
    await recover(store)
    assert await store.complete("held", b"r")
    assert await store.claim("after", b"f", ttl=600) == Claim(ClaimState.RUN)
    await store.close()


def _processes(server: PostgresServer) -> list[int]:
    """Return the server's process and its children."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text("ascii")
    return [server.pid, *map(int, children.split())]

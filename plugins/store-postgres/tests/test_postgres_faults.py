"""Servers that crash, restart and fail over, and networks that break in the middle of a statement."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest
from jackfield.store import Claim, ClaimState, StoreUnavailableError
from jackfield_store_postgres import PostgresStore
from jackfield_store_postgres.errors import OutcomeUnknownError
from jackfield_testkit.postgres import PostgresServer
from postgres_stores import open_store, split
from tcp_proxy import TcpProxy

RUN = Claim(ClaimState.RUN)


def through(proxy: TcpProxy, place: str) -> str:
    """Return the same place, reached through a proxy."""
    url, schema = split(place)
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/{url.rpartition('/')[2]}#{schema}"


async def until(condition: Callable[[], Awaitable[object]], within: float = 30.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + within
    while not await condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        await asyncio.sleep(0.02)


async def row_count(server: PostgresServer, schema: str, condition: str) -> int:
    sql = f"SELECT count(*) FROM {schema}.claims WHERE {condition}"
    return int(await asyncio.to_thread(server.execute, sql))


# --- statements whose answer is lost ---------------------------------------------------------------------


def test_a_claim_whose_answer_was_lost_is_asked_again_and_held(server: PostgresServer, place: str) -> None:
    _, schema = split(place)

    async def use() -> None:
        async with TcpProxy.to(server.port) as proxy:
            store = await open_store(through(proxy, place))
            other = await open_store(place)
            proxy.hold_answers_to(b"lost")
            claiming = asyncio.create_task(store.claim("lost", b"f", ttl=600))
            await until(lambda: row_count(server, schema, "key = 'lost'"))
            proxy.cut()
            assert await claiming == RUN
            assert await store.holds("lost")
            assert (await other.claim("lost", b"f", ttl=600)).state is ClaimState.RUNNING
            assert await store.complete("lost", b"r")
            await store.close()
            await other.close()

    asyncio.run(use())


def test_a_completion_whose_answer_was_lost_counts_once(server: PostgresServer, place: str) -> None:
    _, schema = split(place)

    async def use() -> None:
        async with TcpProxy.to(server.port) as proxy:
            store = await open_store(through(proxy, place))
            await store.claim("lost", b"f", ttl=600)
            proxy.hold_answers_to(b"lost")
            completing = asyncio.create_task(store.complete("lost", b"r"))
            await until(lambda: row_count(server, schema, "key = 'lost' AND result IS NOT NULL"))
            proxy.cut()
            assert await completing
            assert not await store.complete("lost", b"r")
            assert (await store.claim("lost", b"f", ttl=600)).result == b"r"
            await store.close()

    asyncio.run(use())


def test_a_takeover_whose_answer_was_lost_is_recognised(server: PostgresServer, place: str) -> None:
    _, schema = split(place)

    async def use() -> None:
        async with TcpProxy.to(server.port) as proxy:
            store = await open_store(through(proxy, place))
            await store.claim("lost", b"f", ttl=600)
            await store.abandon("lost")
            proxy.hold_answers_to(b"lost")
            taking = asyncio.create_task(store.reclaim("lost"))
            await until(lambda: row_count(server, schema, "key = 'lost' AND owner <> ''"))
            proxy.cut()
            assert await taking
            assert await store.complete("lost", b"r")
            await store.close()

    asyncio.run(use())


def test_an_append_whose_answer_was_lost_is_not_repeated(server: PostgresServer, place: str) -> None:
    _, schema = split(place)

    async def use() -> None:
        async with TcpProxy.to(server.port) as proxy:
            store = await open_store(through(proxy, place))
            proxy.hold_answers_to(b"lost")
            appending = asyncio.ensure_future(store.append("lost", b"x"))
            sql = f"SELECT count(*) FROM {schema}.entries"
            await until(lambda: asyncio.to_thread(lambda: int(server.execute(sql))))
            proxy.cut()
            with pytest.raises(OutcomeUnknownError, match="may or may not have taken effect"):
                await appending
            assert [entry.id for entry in await store.read("lost")] == [1]
            assert await store.append("lost", b"y") == 2
            await store.close()

    asyncio.run(use())


def test_a_cancelled_claim_whose_answer_is_late_is_released(server: PostgresServer, place: str) -> None:
    _, schema = split(place)

    async def use() -> None:
        async with TcpProxy.to(server.port) as proxy:
            store = await open_store(through(proxy, place))
            proxy.hold_answers_to(b"lost")
            claiming = asyncio.create_task(store.claim("lost", b"f", ttl=600, note=b"n"))
            await until(lambda: row_count(server, schema, "key = 'lost'"))
            claiming.cancel()
            proxy.cut()

            async def released() -> bool:
                return await row_count(server, schema, "key = 'lost'") == 0

            await until(released)
            assert await store.claim("lost", b"g", ttl=600) == RUN
            await store.close()

    asyncio.run(use())


# --- a host that is cut off ------------------------------------------------------------------------------


def test_a_host_that_was_cut_off_does_not_act_on_a_claim_that_was_taken_over(
    server: PostgresServer, place: str
) -> None:
    async def use() -> None:
        async with TcpProxy.to(server.port) as proxy:
            cut_off = await open_store(through(proxy, place), lease=1.0, patience=0.5)
            other = await open_store(place)
            for key in ("taken", "left"):
                await cut_off.claim(key, b"f", ttl=600, note=b"n")
            proxy.refuse(True)
            proxy.cut()
            with pytest.raises(StoreUnavailableError):
                await cut_off.holds("taken")

            async def is_in_doubt() -> bool:
                return (await other.outcome("taken", within=0)).state is ClaimState.IN_DOUBT

            await until(is_in_doubt)
            assert await other.reclaim("taken")
            proxy.refuse(False)
            assert not await cut_off.holds("taken")
            assert not await cut_off.complete("taken", b"late")
            await cut_off.release("taken")
            assert await other.holds("taken")
            assert await cut_off.holds("left")
            assert not await other.reclaim("left")
            assert await other.complete("taken", b"r")
            assert await cut_off.complete("left", b"r")
            await cut_off.close()
            await other.close()

    asyncio.run(use())


def test_a_broken_connection_does_not_cost_a_living_host_its_claims(
    server: PostgresServer, place: str
) -> None:
    async def use() -> None:
        store = await open_store(place, lease=20.0)
        other = await open_store(place)
        await store.claim("k", b"f", ttl=600)
        sessions = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
        await asyncio.to_thread(server.execute, sessions)
        assert (await other.outcome("k", within=0)).state is ClaimState.RUNNING
        assert not await other.reclaim("k")
        assert await store.holds("k")
        await store.close()
        assert (await other.outcome("k", within=0)).state is ClaimState.IN_DOUBT
        await other.close()

    asyncio.run(use())


# --- servers that stop -----------------------------------------------------------------------------------


@pytest.mark.parametrize("crash", ["immediate", "kill"])
def test_a_store_recovers_by_itself_when_its_server_is_back(crash: str) -> None:
    with PostgresServer.temporary() as server:

        async def use() -> None:
            store = await PostgresStore.open(server.uri(), patience=0.3)
            await store.put("before", b"x")
            await store.claim("held", b"f", ttl=600, note=b"n")
            following = asyncio.ensure_future(anext(aiter(store.follow("s"))))
            await asyncio.to_thread(server.kill if crash == "kill" else lambda: server.stop("immediate"))
            began = time.monotonic()
            for operation in (
                lambda: store.get("before"),
                lambda: store.put("during", b"x"),
                lambda: store.append("s", b"x"),
                lambda: store.claim("new", b"f", ttl=600),
                lambda: store.holds("held"),
                lambda: store.complete("held", b"r"),
                lambda: store.reclaim("held"),
                lambda: store.add("c", 1, window=60),
                lambda: store.streams(""),
            ):
                with pytest.raises(StoreUnavailableError):
                    await operation()
            assert time.monotonic() - began < 20, "the operations did not fail promptly"
            with pytest.raises(StoreUnavailableError):
                await following
            await asyncio.to_thread(server.start)

            async def recovered() -> bool:
                try:
                    return await store.get("before") == b"x"
                except StoreUnavailableError:
                    return False

            await until(recovered)
            assert await store.holds("held")
            assert await store.complete("held", b"r")
            assert await store.append("s", b"x") == 1
            await store.close()

        asyncio.run(use())


def test_nothing_acknowledged_is_lost_when_a_synchronous_standby_is_promoted() -> None:
    with PostgresServer.temporary() as primary:
        folder = primary.folder.parent / "standby"
        with primary.standby(folder, "sb1") as standby:
            primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (sb1)'")
            primary.execute("SELECT pg_reload_conf()")
            url = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
            asyncio.run(_write_during_failover(url, primary, standby))


async def _write_during_failover(url: str, primary: PostgresServer, standby: PostgresServer) -> None:
    store = await PostgresStore.open(url, patience=10.0)
    acknowledged: dict[str, int] = {}
    ran: list[str] = []
    stop = asyncio.Event()

    async def call(worker: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            key = f"{worker}/{number}"
            try:
                found = await store.claim(key, b"f", ttl=600, note=b"n")
                assert found == RUN
                ran.append(key)
                assert await store.complete(key, key.encode())
                acknowledged[key] = await store.append("s", key.encode())
            except StoreUnavailableError:
                await asyncio.sleep(0.05)

    working = [asyncio.create_task(call(worker)) for worker in range(8)]
    await until(lambda: _truth(len(acknowledged) > 200))
    await asyncio.to_thread(primary.kill)
    before = len(acknowledged)
    await asyncio.to_thread(standby.promote)
    await until(lambda: _truth(len(acknowledged) > before + 200))
    stop.set()
    await asyncio.gather(*working)
    assert len(set(ran)) == len(ran)
    entries = {entry.id: entry.value.decode() for entry in await store.read("s", limit=1_000_000)}
    assert sorted(entries) == list(range(1, len(entries) + 1))
    for key, number in acknowledged.items():
        assert entries[number] == key
        assert await store.claim(key, b"f", ttl=600) == Claim(ClaimState.DONE, key.encode())
    await store.close()


async def _truth(value: bool) -> bool:
    return value


def test_a_server_that_was_made_read_only_counts_as_a_broken_connection() -> None:
    with PostgresServer.temporary() as server:

        async def use() -> None:
            store = await PostgresStore.open(server.uri(), patience=0.3)
            await store.put("k", b"x")
            server.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            server.execute("SELECT pg_reload_conf()")

            async def refused() -> bool:
                try:
                    await store.put("k", b"y")
                except StoreUnavailableError:
                    return True
                return False

            await until(refused)
            # A read-only server does not change its configuration by itself.
            os.truncate(server.folder / "postgresql.auto.conf", 0)
            server.execute("SELECT pg_reload_conf()")

            async def accepted() -> bool:
                return not await refused()

            await until(accepted)
            await store.close()

        asyncio.run(use())


def test_an_unfinished_statement_of_another_session_delays_and_then_fails(
    server: PostgresServer, place: str
) -> None:
    url, schema = split(place)

    async def use() -> None:
        store = await open_store(place, patience=0.5)
        await store.put("k", b"x")
        blocking: Any = await asyncpg.connect(url)
        async with blocking.transaction():
            await blocking.execute(f"SELECT FROM {schema}.kept FOR UPDATE")
            with pytest.raises(StoreUnavailableError):
                await store.take("k")
            assert await store.get("k") == b"x"
        await blocking.close()
        await store.close()

    asyncio.run(use())

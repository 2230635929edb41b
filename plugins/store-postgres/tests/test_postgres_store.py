"""What the contract leaves open: batches, indexes, durability, notifications, time, pruning and forks."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from jackfield.store import ClaimState
from jackfield_store_postgres import PostgresStore, statements
from jackfield_store_postgres.clock import ServerTime, StoreClock, uptime
from jackfield_store_postgres.statements import from_text, to_text
from jackfield_testkit.postgres import PostgresServer
from postgres_stores import open_store, split


@asynccontextmanager
async def session(place: str) -> AsyncIterator[Any]:
    """A session of the test's own, in the schema of the store."""
    url, schema = split(place)
    connection: Any = await asyncpg.connect(url, server_settings={"search_path": schema})
    try:
        yield connection
    finally:
        await connection.close()


# --- batches ---------------------------------------------------------------------------------------------


def test_appends_and_puts_of_one_iteration_share_a_statement_and_keep_their_order(place: str) -> None:
    async def use() -> None:
        store = await open_store(place)
        before = store._writer.batches
        begun = [store.append(f"s{number % 3}", b"%d" % number) for number in range(30)]
        puts = [store.put("k", b"%d" % number) for number in range(3)]
        assert all(asyncio.isfuture(each) for each in (*begun, *puts))
        assert await asyncio.gather(*begun) == [number // 3 + 1 for number in range(30)]
        await asyncio.gather(*puts)
        assert store._writer.batches == before + 1
        assert [entry.value for entry in await store.read("s1")] == [b"%d" % n for n in range(1, 30, 3)]
        assert await store.get("k") == b"2"
        await store.close()

    asyncio.run(use())


def test_claims_and_completions_of_one_batch_get_their_own_answers(place: str) -> None:
    async def use() -> None:
        store = await open_store(place)
        await store.claim("known", b"f", ttl=600, result=b"r")
        await store.claim("running", b"f", ttl=600)
        keys = ["known", "new", "running", "new", "known", "other"]
        fingerprints = [b"f", b"f", b"f", b"f", b"g", b"f"]
        found = await asyncio.gather(
            *(store.claim(key, each, ttl=600) for key, each in zip(keys, fingerprints, strict=True))
        )
        assert [each.state.name for each in found] == ["DONE", "RUN", "RUNNING", "RUNNING", "CONFLICT", "RUN"]
        done = await asyncio.gather(
            *(store.complete(key, key.encode()) for key in ("new", "absent", "other"))
        )
        assert done == [True, False, True]
        assert (await store.claim("other", b"f", ttl=600)).result == b"other"
        await store.close()

    asyncio.run(use())


def test_claims_of_the_same_keys_in_opposite_order_do_not_block_each_other(place: str) -> None:
    async def use() -> None:
        stores = [await open_store(place) for _ in range(2)]
        keys = [f"k{number}" for number in range(200)]
        found = await asyncio.gather(
            *(stores[0].claim(key, b"f", ttl=600) for key in keys),
            *(stores[1].claim(key, b"f", ttl=600) for key in reversed(keys)),
        )
        assert sum(each.state is ClaimState.RUN for each in found) == len(keys)
        for store in stores:
            await store.close()

    asyncio.run(use())


# --- indexes and durability ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "index"),
    [
        (statements.KEYS, "kept_pkey"),
        (statements.STREAMS, "streams_pkey"),
        (statements.IN_DOUBT.replace("$3", "''"), "claims_noted"),
    ],
)
def test_a_prefix_is_a_range_of_an_index(place: str, sql: str, index: str) -> None:
    async def use() -> None:
        store = await open_store(place)
        async with session(place) as connection:
            await connection.execute(
                "INSERT INTO kept SELECT 'session/' || n, 'infinity', '' FROM generate_series(1, 5000) n; "
                "INSERT INTO streams (name, last) SELECT 'stream/' || n, 1 FROM generate_series(1, 5000) n; "
                "INSERT INTO claims SELECT 'call/' || n, n, n, 'infinity', '', '', 'note' "
                "FROM generate_series(1, 5000) n; ANALYZE kept; ANALYZE streams; ANALYZE claims"
            )
            rows = await connection.fetch(f"EXPLAIN {sql}", "session/49", "session/4:")
            plan = "\n".join(row[0] for row in rows)
            assert index in plan
            assert "Index Cond" in plan
            assert "Seq Scan on kept" not in plan
        await store.close()

    asyncio.run(use())


@pytest.mark.parametrize(
    ("sql", "arguments"),
    [
        (statements.MAKE_CLAIMS, ("", ["a"], [1], [b""], [1.0], [None], [None], True)),
        (statements.COMPLETE, (["a"], [1], [b""], [0], [None], True)),
    ],
)
def test_a_plan_made_for_an_empty_table_uses_the_index(place: str, sql: str, arguments: Any) -> None:
    async def use() -> None:
        store = await open_store(place)
        plan = "\n".join(row[0] for row in await store._database.fetch(f"EXPLAIN {sql}", *arguments))
        assert "claims_pkey" in plan
        assert "Seq Scan on claims" not in plan
        await store.close()

    asyncio.run(use())


def test_only_what_need_not_be_durable_is_committed_without_a_flush(place: str) -> None:
    async def use() -> None:
        async with session(place) as connection:
            # A weaker default of the server must not weaken the store.
            await connection.execute("ALTER ROLE postgres SET synchronous_commit = off")
            try:
                store = await open_store(place, pool_size=1)
                seen = (
                    "SELECT key FROM kept WHERE value = $1 AND current_setting('synchronous_commit') = 'on'"
                )
                await store.put("k", b"v")
                assert await store._database.fetch(seen, b"v")
                await connection.execute(
                    "CREATE FUNCTION observe() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                    "NEW.fingerprint = convert_to(current_setting('synchronous_commit'), 'UTF8'); "
                    "RETURN NEW; END $$; "
                    "CREATE TRIGGER observe BEFORE INSERT ON claims FOR EACH ROW EXECUTE FUNCTION observe()"
                )
                for durable, expected in ((True, b"on"), (False, b"off"), (True, b"on")):
                    await store.claim(
                        f"{durable}{expected!r}{time.monotonic()}", b"", ttl=600, durable=durable
                    )
                    rows = await connection.fetch(
                        "SELECT fingerprint FROM claims ORDER BY fence DESC LIMIT 1"
                    )
                    assert rows[0][0] == expected
                await store.close()
            finally:
                await connection.execute("ALTER ROLE postgres RESET synchronous_commit")

    asyncio.run(use())


# --- waiting ---------------------------------------------------------------------------------------------


def test_followers_and_waiters_in_other_processes_are_notified(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a notification, they would look again only after the test has failed.
    monkeypatch.setattr("jackfield_store_postgres.store._STREAM_CHECK_SECONDS", 600.0)
    monkeypatch.setattr("jackfield_store_postgres.store._HOLDER_CHECK_SECONDS", 600.0)

    async def use() -> None:
        writing, waiting = await open_store(place), await open_store(place)
        await writing.claim("k", b"f", ttl=600)
        following = aiter(waiting.follow("s"))
        entry = asyncio.ensure_future(anext(following))
        outcome = asyncio.create_task(waiting.outcome("k", within=60))
        async with asyncio.timeout(30):
            # Until it listens, notifications pass it by; from then on each one arrives.
            await waiting._notifier.listening.wait()
            await writing.append("s", b"x")
            await writing.complete("k", b"r")
            assert (await entry).value == b"x"
            assert (await outcome).result == b"r"
        await writing.close()
        await waiting.close()

    asyncio.run(use())


def test_a_listener_that_lost_its_session_reads_what_it_missed(
    server: PostgresServer, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_store_postgres.store._STREAM_CHECK_SECONDS", 600.0)

    async def use() -> None:
        writing, waiting = await open_store(place), await open_store(place)
        following = aiter(waiting.follow("s"))
        entry = asyncio.ensure_future(anext(following))
        async with asyncio.timeout(30):
            await waiting._notifier.listening.wait()
            await asyncio.to_thread(
                server.execute,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'",
            )
            await writing.append("s", b"x")
            assert (await entry).value == b"x"
        await writing.close()
        await waiting.close()

    asyncio.run(use())


# --- time ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moved", [-600.0, 600.0])
def test_a_moved_wall_clock_of_a_host_moves_nothing(
    place: str, monkeypatch: pytest.MonkeyPatch, moved: float
) -> None:
    async def use() -> None:
        store = await open_store(place)
        before = store.now()
        await store.put("token", b"x", ttl=300)
        await store.claim("held", b"", ttl=300)
        wall = time.time
        monkeypatch.setattr(time, "time", lambda: wall() + moved)
        other = await open_store(place)
        for each in (store, other):
            assert before - 1 <= each.now() < before + 30
            assert await each.get("token") == b"x"
            assert (await each.claim("held", b"", ttl=300)).state is ClaimState.RUNNING
        assert await store.holds("held")
        await other.close()
        await store.close()

    asyncio.run(use())


def test_the_clock_prefers_precise_answers_and_never_goes_back() -> None:
    clock = StoreClock()
    moment = uptime()
    clock.offer(ServerTime(1000.0, moment, 0.5))
    clock.offer(ServerTime(1000.2, moment, 0.001))
    assert 1000.2 <= clock.now() < 1030
    # Less precise, and no contradiction.
    clock.offer(ServerTime(1000.4, moment, 0.5))
    assert clock.now() - 1000.2 < uptime() - moment + 0.1
    # The server's clock was set forward, then back.
    clock.offer(ServerTime(1600.0, moment, 0.01))
    ahead = clock.now()
    assert ahead >= 1600
    clock.offer(ServerTime(1000.0, moment, 0.01))
    assert clock.now() == ahead


# --- the rest --------------------------------------------------------------------------------------------


def test_prune_removes_many_rows_in_small_statements(place: str) -> None:
    async def use() -> None:
        store = await open_store(place)
        async with session(place) as connection:
            await connection.execute(
                "INSERT INTO kept SELECT 'old/' || n, now() - interval '1 s', '' "
                "FROM generate_series(1, 1300) n"
            )
            await store.put("new", b"x", ttl=600)
            async with connection.transaction():
                # A row that somebody else works on is left for the next time.
                await connection.execute("SELECT FROM kept WHERE key = 'old/1' FOR UPDATE")
                assert await store.prune() == 1299
            assert await store.prune() == 1
        assert await store.keys("") == ["new"]
        await store.close()

    asyncio.run(use())


@pytest.mark.parametrize("key", ["", "a", "\x00", "\x01", "\x00\x01\x02", "a\x01\x01\x02", "\x01\x00\x00b"])
def test_every_key_has_its_own_text(key: str) -> None:
    assert from_text(to_text(key)) == key
    assert "\x00" not in to_text(key)
    for longer in (f"{key}\x00", f"{key}\x01", f"{key}\x02", f"{key}a"):
        assert to_text(longer).startswith(to_text(key))
        assert (to_text(longer) > to_text(key)) == (longer > key)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_store_created_before_a_fork_is_refused_after_it(place: str) -> None:
    url, schema = split(place)
    store = PostgresStore(url, schema=schema)
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(store.get("k"))
        except RuntimeError as error:
            os._exit(7 if "created before a fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    asyncio.run(store.close())

"""The store in memory evicts only repeatable results when it is full."""

from __future__ import annotations

import asyncio

import pytest
from jackfield import store as store_module
from jackfield.store import Claim, ClaimState, MemoryStore, StoreUnavailableError

ROOM = 10_000


async def ran(store: MemoryStore, key: str, *, durable: bool, result: bytes = b"x" * 600) -> None:
    await store.claim(key, b"same", ttl=60, durable=durable)
    await store.complete(key, result, durable=durable)


async def known(store: MemoryStore, keys: list[str]) -> list[str]:
    """Return the keys whose result is still present."""
    return [key for key in keys if await store.outcome(key, within=0) == Claim(ClaimState.DONE, b"x" * 600)]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    monkeypatch.setattr(store_module, "MAX_RESULT_BYTES", ROOM)
    return MemoryStore()


def test_the_oldest_repeatable_results_are_evicted_first(store: MemoryStore) -> None:
    async def use() -> list[str]:
        keys = [f"read {number}" for number in range(30)]
        for key in keys:
            await ran(store, key, durable=False)
        return await known(store, keys)

    kept = asyncio.run(use())
    assert kept == [f"read {number}" for number in range(30 - len(kept), 30)]
    assert 8 <= len(kept) <= 10


def test_results_of_non_repeatable_calls_are_never_evicted(store: MemoryStore) -> None:
    async def use() -> tuple[list[str], ClaimState]:
        keys = [f"write {number}" for number in range(30)]
        for number, key in enumerate(keys):
            await ran(store, key, durable=True)
            await ran(store, f"read {number}", durable=False)
        await store.claim("running", b"same", ttl=60, durable=False)
        await ran(store, "large", durable=False, result=b"x" * 2 * ROOM)
        return await known(store, keys), (await store.claim("running", b"same", ttl=60)).state

    assert asyncio.run(use()) == ([f"write {number}" for number in range(30)], ClaimState.RUNNING)


def test_a_reused_key_is_distinct_from_its_evicted_predecessor() -> None:
    now = 0.0

    async def use(store: MemoryStore) -> list[str]:
        nonlocal now
        await ran(store, "again", durable=False)
        now = 100.0
        await store.prune()
        await ran(store, "again", durable=True)
        for number in range(30):
            await ran(store, f"read {number}", durable=False)
        return await known(store, ["again"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "MAX_RESULT_BYTES", ROOM)
        assert asyncio.run(use(MemoryStore(clock=lambda: now))) == ["again"]


def test_expired_data_is_removed_without_a_call_of_prune() -> None:
    now = 0.0

    async def fill(store: MemoryStore) -> None:
        nonlocal now
        for number in range(2000):
            now += 1.0
            await store.put(f"session/{number}", b"x" * 100, ttl=300)
            await store.put("renewed", b"x", ttl=300)
            await store.add(f"counter/{number}", 1, window=300)
            await store.append(f"events/{number}", b"x" * 100, ttl=300)
            await store.append("log", b"x" * 100, ttl=300)

    async def use() -> None:
        store = MemoryStore(clock=lambda: now)
        await fill(store)
        # What has expired within the last two minutes may still be there.
        assert len(store._values) <= 300 + 120 + 1
        assert len(store._counters) <= 300 + 120
        assert len(store._streams) <= 300 + 120 + 1
        assert len(await store.keys("session/")) == 300
        assert await store.get("renewed") == b"x"
        assert [entry.id for entry in await store.read("log")] == list(range(1701, 2001))
        assert await store.append("events/0", b"x", ttl=300) == 2
        # Pruning removes everything that has expired, and nothing else.
        await store.prune()
        assert (len(store._values), len(store._counters), len(store._streams)) == (301, 300, 302)

    asyncio.run(use())


def test_a_shorter_time_to_live_replaces_a_longer_one() -> None:
    now = 0.0

    async def use() -> None:
        nonlocal now
        store = MemoryStore(clock=lambda: now)
        await store.put("k", b"x", ttl=10_000)
        await store.put("k", b"y", ttl=10)
        await store.append("s", b"x", ttl=10_000)
        await store.append("s", b"y", ttl=10)
        now = 11.0
        assert await store.prune() == 2
        assert [entry.id for entry in await store.read("s")] == [1]
        assert await store.append("s", b"z") == 3
        now = 20_000.0
        assert await store.prune() == 1
        assert [tuple(entry) for entry in await store.read("s", after=2)] == [(3, b"z")]

    asyncio.run(use())


def test_streams_and_keys_are_listed_by_prefix_among_many() -> None:
    async def use() -> None:
        store = MemoryStore()
        for number in range(3000):
            await store.put(f"session/{number:04}", b"")
            await store.append(f"events/{number:04}", b"")
        assert await store.keys("session/120") == [f"session/{number}" for number in range(1200, 1210)]
        assert await store.streams("events/120") == [f"events/{number}" for number in range(1200, 1210)]
        assert await store.take("session/1203") == b""
        assert await store.clear("events/1203") == 1
        assert "session/1203" not in await store.keys("session/12")
        assert "events/1203" not in await store.streams("events/12")

    asyncio.run(use())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(store_module, "MAX_BYTES", 100_000)
    return 100_000


def test_a_full_store_rejects_new_data_and_recovers_when_some_expires(small: float) -> None:
    now = 0.0

    async def use() -> None:
        nonlocal now
        store = MemoryStore(clock=lambda: now)
        await store.claim("ran", b"f", ttl=600, note=b"n")
        await store.claim("gone", b"f", ttl=60)
        puts = [store.put(f"k{number}", bytes(1000), ttl=100) for number in range(100)]
        done = await asyncio.gather(*puts, return_exceptions=True)
        accepted = done.count(None)
        assert 50 <= accepted < 100
        assert "the memory store is full" in str(done[-1])
        for refused in (store.append("s", bytes(1000)), store.claim("c", b"f", ttl=60, note=bytes(1000))):
            with pytest.raises(StoreUnavailableError, match="use the sqlite store"):
                await refused
        # What has run is recorded, what is kept can be read, and reads still get claims.
        assert await store.complete("ran", bytes(1000))
        assert await store.get("k0") == bytes(1000)
        assert await store.claim("read", b"f", ttl=60, durable=False) == Claim(ClaimState.RUN)
        assert await store.complete("read", bytes(1000), durable=False)
        # Room that was made can be used again.
        for number in range(5):
            assert await store.delete(f"k{number}")
        await store.put("new", bytes(500))
        now = 101.0
        for number in range(accepted - 5):
            await store.append(f"s{number}", bytes(500), ttl=10)
        now = 120.0
        await store.prune()
        await store.clear("none")
        assert await store.keys("") == ["new"]

    asyncio.run(use())


def test_no_memory_is_counted_twice_or_forgotten(small: float) -> None:
    now = 0.0

    async def use() -> None:
        nonlocal now
        store = MemoryStore(clock=lambda: now)
        for number in range(5000):
            now += 1.0
            await store.put("replaced", bytes(number % 700), ttl=50)
            await store.put(f"expires/{number}", bytes(300), ttl=20)
            await store.put(f"taken/{number}", bytes(900))
            assert await store.take(f"taken/{number}") == bytes(900)
            await store.append(f"expires/{number}", bytes(300), ttl=20)
            await store.append("log", bytes(100), ttl=30)
            await store.append(f"cleared/{number}", bytes(900))
            assert await store.clear(f"cleared/{number}") == 1
            await store.claim(f"write/{number}", b"f", ttl=20)
            await store.complete(f"write/{number}", bytes(300))
        now += 1000.0
        await store.prune()
        assert (store._kept_bytes, store._claim_bytes) == (0, 0)

    asyncio.run(use())

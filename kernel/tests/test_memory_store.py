"""The store in memory evicts only repeatable results when it is full."""

from __future__ import annotations

import asyncio

import pytest
from jackfield import store as store_module
from jackfield.store import Claim, ClaimState, MemoryStore

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

"""Non-durable claims: written on the event loop if possible, with the same guarantees."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest
from jackfield.store import Claim, ClaimState
from jackfield_store_sqlite import SqliteStore

RUN, RUNNING = Claim(ClaimState.RUN), Claim(ClaimState.RUNNING)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackfield.db"


@asynccontextmanager
async def two_stores(path: Path) -> AsyncIterator[tuple[SqliteStore, SqliteStore]]:
    """Yield two open stores with leases."""
    stores = (await SqliteStore.open(path), await SqliteStore.open(path))
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


def test_non_durable_claims_bypass_the_writer_thread(path: Path) -> None:
    async def use() -> None:
        async with two_stores(path) as (one, other):
            before = one._writer.transactions
            assert await one.claim("k", b"f", ttl=600, durable=False) == RUN
            assert await other.claim("k", b"f", ttl=600, durable=False) == RUNNING
            assert (await other.claim("k", b"g", ttl=600, durable=False)).state is ClaimState.CONFLICT
            assert await other.complete("k", b"not mine", durable=False) is False
            assert await one.complete("k", b"r", durable=False) is True
            assert await one.complete("k", b"again", durable=False) is False
            for store in (one, other):
                assert await store.claim("k", b"f", ttl=600) == Claim(ClaimState.DONE, b"r")
            assert one._writer.transactions == before

    asyncio.run(use())


def test_a_process_without_a_lease_gets_one_before_its_first_claim(path: Path) -> None:
    async def use() -> None:
        async with two_stores(path) as (one, _):
            stranger = SqliteStore(path)
            assert await stranger.claim("k", b"f", ttl=600, durable=False) == RUN
            # Not in doubt, unlike the claim of a process without a lease.
            assert await one.claim("k", b"f", ttl=600) == RUNNING
            await stranger.close()

    asyncio.run(use())


def test_a_write_lock_of_another_process_does_not_block_the_loop(path: Path) -> None:
    async def use() -> None:
        async with two_stores(path) as (one, _):
            db = apsw.Connection(str(path))
            db.execute("BEGIN IMMEDIATE")
            claiming = asyncio.create_task(one.claim("k", b"f", ttl=600, durable=False))
            done, _pending = await asyncio.wait([claiming], timeout=0.1)
            assert not done
            db.execute("COMMIT")
            db.close()
            assert await claiming == RUN

    asyncio.run(use())


def test_a_waiter_gets_the_result_of_another_store(path: Path) -> None:
    async def use() -> None:
        async with two_stores(path) as (one, other):
            await one.claim("k", b"f", ttl=600, durable=False)
            waiting = [asyncio.create_task(store.outcome("k", within=30)) for store in (one, other)]
            await asyncio.sleep(0.05)
            await one.complete("k", b"r", durable=False)
            assert await asyncio.gather(*waiting) == [Claim(ClaimState.DONE, b"r")] * 2

    asyncio.run(use())

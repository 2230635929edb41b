"""Faults and load: a locked file, a full disk, a failing operation, many deliveries and followers."""

from __future__ import annotations

import asyncio
import fcntl
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import apsw
import pytest
from jackfield.store import Claim, ClaimState, StoreUnavailableError, StreamEntry
from jackfield_store_sqlite import SqliteStore, notifier
from jackfield_store_sqlite import store as module
from jackfield_store_sqlite.process_identity import ClaimOwner, Machine
from jackfield_testkit.store import worker
from jackfield_testkit.store.harness import StoreHarness
from jackfield_testkit.store.processes import check_deliveries

LOCK = """
import apsw, sys
db = apsw.Connection(sys.argv[1])
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
"""

REFUSED_BY_THE_SYSTEM = """
import asyncio, resource, sys
from jackfield.store import StoreUnavailableError
from jackfield_store_sqlite import SqliteStore

async def main():
    store = await SqliteStore.open(sys.argv[1])
    await store.put("k", b"v")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    for _ in range(3):
        try:
            await store.put("big", bytes(200_000))
        except StoreUnavailableError as error:
            print("refused:", error)
        print(await store.get("k"))
    await store.put("small", b"x")
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await store.put("big", bytes(200_000))
    print(len(await store.get("big")), await store.get("small"))
    await store.close()

asyncio.run(main())
"""

HOG = """
import asyncio, contextlib, sys, time
from jackfield_store_sqlite import SqliteStore, writer

write_transaction = writer.write_transaction

@contextlib.contextmanager
def slow(*args):
    with write_transaction(*args):
        yield
        time.sleep(0.3)

writer.write_transaction = slow

async def write(store, key):
    while True:
        await store.put(key, b"")

async def main():
    store = await SqliteStore.open(sys.argv[1])
    # More of them than fit into one transaction, so that there is always something left to write.
    writing = [asyncio.create_task(write(store, str(number))) for number in range(1000)]
    await asyncio.sleep(0.5)
    print("writing", flush=True)
    await asyncio.gather(*writing)

asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackfield.db"


@asynccontextmanager
async def beside(program: str, path: Path) -> AsyncIterator[subprocess.Popen[bytes]]:
    """Run another process on the file, from its first line on."""
    process = await asyncio.to_thread(
        subprocess.Popen,
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    await asyncio.to_thread(process.stdout.readline)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def locked(path: Path) -> AbstractAsyncContextManager[subprocess.Popen[bytes]]:
    """Let another process lock the file."""
    return beside(LOCK, path)


def test_ten_thousand_deliveries_over_four_processes_run_a_thousand_times(path: Path) -> None:
    harness = StoreHarness(str(path), "jackfield_store_sqlite:SqliteStore", lambda _place, _clock: None)
    try:
        deliveries = [(worker.deliver, "call/", 1000, times, f"p{times}") for times in (1, 2, 3, 4)]
        check_deliveries(harness.run_workers(deliveries), 1000, 10_000)
    finally:
        harness.close()


@pytest.mark.parametrize("ask", ["claim", "outcome", "in_doubt"])
def test_a_claim_is_not_in_doubt_if_its_owner_completes_it_and_ends_while_it_is_read(
    ask: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use() -> None:
        first, second = await SqliteStore.open(path), await SqliteStore.open(path)
        await first.claim("k", b"f", ttl=60, note=b"{}")
        is_expired = ClaimOwner.is_expired

        async def complete_and_end() -> None:
            await first.complete("k", b"result")
            await first.close()

        def end_first(owner: ClaimOwner, db: apsw.Connection, now: float, holder: str) -> bool:
            monkeypatch.undo()
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, complete_and_end()).result()
            return is_expired(owner, db, now, holder)

        monkeypatch.setattr(ClaimOwner, "is_expired", end_first)
        if ask == "in_doubt":
            assert await second.in_doubt("k") == []
        else:
            asked = second.claim("k", b"f", ttl=60) if ask == "claim" else second.outcome("k", within=0)
            assert await asked == Claim(ClaimState.DONE, b"result")
        await second.close()

    asyncio.run(use())


def test_a_locked_file_fails_closed_without_blocking_the_loop_and_recovers(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path, patience=0.4)
        await store.put("k", b"v")
        gaps = []

        async def tick() -> None:
            while True:
                before = time.monotonic()
                await asyncio.sleep(0.005)
                gaps.append(time.monotonic() - before)

        ticking = asyncio.create_task(tick())
        async with locked(path):
            gaps.clear()
            before = time.monotonic()
            refused = await asyncio.gather(
                *(store.put(str(number), b"") for number in range(50)),
                store.claim("c", b"", ttl=60),
                return_exceptions=True,
            )
            # All of them waited concurrently; one after the other they would have taken twenty seconds.
            assert time.monotonic() - before < 10
            assert {type(each) for each in refused} == {StoreUnavailableError}
            assert "is locked by another process" in str(refused[0])
            assert await store.get("k") == b"v"
        ticking.cancel()
        # A blocked loop would have stood still for the whole timeout, again and again.
        assert statistics.median(gaps) < 0.2
        await store.put("k", b"w")
        assert await store.claim("c", b"", ttl=60) == Claim(ClaimState.RUN)
        await store.close()

    asyncio.run(use())


def test_a_write_waits_for_a_lock_that_is_released_in_time(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path, patience=10)
        async with locked(path):
            waiting = asyncio.ensure_future(store.put("k", b"v"))
            await asyncio.sleep(0.2)
            assert not waiting.done()
        await waiting
        await store.close()

    asyncio.run(use())


def test_a_busy_writer_does_not_starve_other_processes(path: Path) -> None:
    """On a slow disk, it holds the file nearly always and locks it again within microseconds."""

    async def use() -> None:
        async with beside(HOG, path):
            for number in range(3):
                store = await SqliteStore.open(path, patience=2)
                for place in range(4):
                    await store.put(f"mine-{number}-{place}", b"v")
                await store.close()

    asyncio.run(use())


def test_a_stopped_holder_of_the_writer_lock_does_not_block_others(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path, patience=0.4)
        with path.with_name("jackfield.db-lock").open("r") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            await store.put("k", b"v")
        await store.close()

    asyncio.run(use())


def test_a_token_that_expires_while_the_file_is_locked_is_not_taken(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path, patience=10)
        await store.put("token", b"x", ttl=0.8)
        async with locked(path):
            taking = asyncio.create_task(store.take("token"))
            await asyncio.sleep(1)
        assert await taking is None
        await store.close()

    asyncio.run(use())


def test_a_full_disk_fails_closed_and_recovers(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path)
        await store.put("k", b"v")
        roomy = await store._write(lambda db, _: db.pragma("max_page_count"))
        pages = await store._write(lambda db, _: db.pragma("page_count"))
        await store._write(lambda db, _: db.pragma("max_page_count", pages))
        acts = [store.put("big", bytes(100_000)), store.append("s", bytes(100_000)), store.get("k")]
        *refused, read = await asyncio.gather(*acts, return_exceptions=True)
        assert [type(each) for each in refused] == [StoreUnavailableError] * 2
        assert "disk is full" in str(refused[0])
        assert read == b"v"
        assert await store.get("big") is None
        await store._write(lambda db, _: db.pragma("max_page_count", roomy))
        await store.put("big", bytes(100_000))
        assert await store.append("s", b"") == 1
        await store.close()

    asyncio.run(use())


def test_writing_that_the_system_refuses_fails_closed_and_recovers(path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", REFUSED_BY_THE_SYSTEM, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.splitlines()
    assert [line.partition(":")[0] for line in told] == ["refused", "b'v'"] * 3 + ["200000 b'x'"]
    assert "its disk may be full" in told[0]


def test_a_failed_operation_does_not_fail_others_in_its_transaction(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path)
        await store.add("c", 2**63 - 1, window=60)
        done = await asyncio.gather(
            *(store.append("s", b"%d" % number) for number in range(20)),
            store.add("c", 1, window=60),
            *(store.append("s", b"%d" % number) for number in range(20)),
            return_exceptions=True,
        )
        assert isinstance(done.pop(20), OverflowError)
        assert done == list(range(1, 41))
        await store.close()

    asyncio.run(use())


def test_pruning_removes_everything_that_has_expired_in_parts(path: Path) -> None:
    moment = 1_000_000.0
    machine = Machine("boot", lambda: moment, lambda: moment)

    async def use() -> None:
        nonlocal moment
        store = await SqliteStore.open(path, machine=machine)
        for number in range(1100):
            acts = [store.put(str(number), b"", ttl=5), store.append("s", b"", ttl=5)]
            await asyncio.gather(*acts, store.add("c", 1, window=5), store.claim("k", b"", ttl=5))
        await store.put("lasting", b"x")
        before = store._writer.transactions
        moment += 6
        assert await store.prune() == 2202
        assert store._writer.transactions - before >= 4
        assert await store.keys("") == ["lasting"]
        await store.close()

    asyncio.run(use())


def test_waiting_operations_share_a_transaction(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path)
        before = store._writer.transactions
        await asyncio.gather(*(store.claim(str(number), b"", ttl=60) for number in range(1000)))
        assert store._writer.transactions - before < 100
        await store.close()

    asyncio.run(use())


def test_loops_of_several_threads_share_a_store(path: Path) -> None:
    store = SqliteStore(path)
    sums: list[int] = []

    async def use() -> None:
        for _ in range(50):
            sums.append(await store.add("c", 1, window=60))
            await store.get("k")

    threads = [threading.Thread(target=lambda: asyncio.run(use())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sums) == list(range(1, 201))
    asyncio.run(store.close())


def test_many_followers_do_not_poll_on_the_loop(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path)
        other = await SqliteStore.open(path)
        heard = []

        async def follow() -> None:
            heard.append(await anext(aiter(store.follow("s"))))

        following = [asyncio.create_task(follow()) for _ in range(50)]
        await asyncio.sleep(0.3)
        used = time.process_time()
        await asyncio.sleep(1)
        assert time.process_time() - used < 0.3
        await other.append("s", b"x")
        async with asyncio.timeout(60):
            await asyncio.gather(*following)
        assert heard == [StreamEntry(1, b"x")] * 50
        await other.close()
        await store.close()

    asyncio.run(use())


def test_writes_of_this_process_wake_waiters_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A poller would notice far too late.
    monkeypatch.setattr(notifier, "_MIN_PAUSE", 600.0)
    monkeypatch.setattr(notifier, "_MAX_PAUSE", 600.0)
    monkeypatch.setattr(module, "_HOLDER_CHECK_SECONDS", 600.0)

    async def use() -> None:
        store = await SqliteStore.open(path)
        for key in ("a", "b", "c"):
            await store.claim(key, b"", ttl=60)
            waiting = asyncio.create_task(store.outcome(key, within=300))
            done, _ = await asyncio.wait([waiting], timeout=0.1)
            assert not done
            await store.complete(key, b"r")
            async with asyncio.timeout(60):
                assert await waiting == Claim(ClaimState.DONE, b"r")
        await store.close()

    asyncio.run(use())

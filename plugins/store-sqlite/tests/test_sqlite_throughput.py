"""Work that is saved: shared transactions, a short log, no flush on the event loop, lookups by index."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from jackfield.store import Claim, ClaimState
from jackfield_store_sqlite import SqliteStore, schema, statements, writer
from jackfield_store_sqlite.database import StoreConnection
from jackfield_store_sqlite.writer import LOG_PAGES, Job, StoreWriter

RUN = Claim(ClaimState.RUN)
BENEATH = "unix"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackfield.db"


class _File(apsw.VFSFile):
    def __init__(self, flushes: list[int], name: Any, flags: list[int]) -> None:
        self.flushes = flushes
        super().__init__(BENEATH, name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self.flushes.append(threading.get_ident())
        super().xSync(flags)


class _Files(apsw.VFS):
    def __init__(self, flushes: list[int]) -> None:
        self.flushes = flushes
        super().__init__("flushes", BENEATH, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        return _File(self.flushes, name, flags)


@pytest.fixture
def flushes() -> Iterator[list[int]]:
    """The threads that flushed a file, once for every flush."""
    flushes: list[int] = []
    files = _Files(flushes)
    yield flushes
    files.unregister()


async def read_calls(store: SqliteStore, first: int, count: int) -> None:
    for number in range(first, first + count):
        assert await store.claim(f"read/{number}", b"f", ttl=600, durable=False) == RUN
        assert await store.complete(f"read/{number}", bytes(3000), durable=False)
        if number % 50 == 0:
            # As in a host, other threads get a chance to run.
            await asyncio.sleep(0.001)


def test_calls_that_only_read_do_not_flush_on_the_event_loop(path: Path, flushes: list[int]) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path)
        flushes.clear()
        await asyncio.gather(*(read_calls(store, 10_000 * number, 800) for number in range(4)))
        # The checkpoints of the writer thread flush.
        assert len(flushes) >= 3
        assert threading.get_ident() not in flushes
        await store.close()

    asyncio.run(use())


def test_a_call_during_a_checkpoint_does_not_flush_on_the_event_loop(
    path: Path, flushes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = apsw.Connection.wal_checkpoint
    moved: list[int] = []

    async def use() -> None:
        store = await SqliteStore.open(path)
        loop = asyncio.get_running_loop()

        def checkpoint_before_a_call(db: apsw.Connection, *, mode: int) -> tuple[int, int]:
            result = checkpoint(db, mode=mode)
            if mode == apsw.SQLITE_CHECKPOINT_PASSIVE and result[1] == result[0]:
                # Everything is moved, so the next write could start a new log.
                moved.append(result[1])
                first = 10_000 * len(moved)
                asyncio.run_coroutine_threadsafe(read_calls(store, first, 1), loop).result()
            return result

        monkeypatch.setattr(StoreConnection, "wal_checkpoint", checkpoint_before_a_call, raising=False)
        flushes.clear()
        await read_calls(store, 0, 3000)
        assert moved
        assert threading.get_ident() not in flushes
        await store.close()

    asyncio.run(use())


def test_calls_that_go_on_do_not_lengthen_the_log(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path)
        other = await SqliteStore.open(path)
        await asyncio.gather(read_calls(store, 0, 3000), read_calls(other, 10_000, 3000))
        # A single log of these calls would hold more than 20 times LOG_PAGES.
        assert path.with_name("jackfield.db-wal").stat().st_size < 10 * LOG_PAGES * schema.PAGE_BYTES
        assert await other.claim("read/17", b"f", ttl=600) == Claim(ClaimState.DONE, bytes(3000))
        await other.close()
        await store.close()

    asyncio.run(use())


def test_a_reader_delays_the_next_log_but_not_the_writers(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path)
        db = apsw.Connection(str(path))
        # A backup reads for a long time; the log cannot start again before it has ended.
        db.execute("BEGIN")
        assert db.execute("SELECT count(*) FROM claims").get == 0
        await read_calls(store, 0, 2000)
        await store.put("k", b"v")
        long = store._database.log_pages
        assert long > LOG_PAGES
        db.execute("COMMIT")
        db.close()
        await read_calls(store, 10_000, 2000)
        await store.put("k", b"w")
        assert store._database.log_pages < long + LOG_PAGES
        await store.close()

    asyncio.run(use())


def test_operations_of_one_iteration_share_a_transaction(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path)
        before = store._writer.transactions
        acts = [store.put(f"k{number}", b"v") for number in range(40)]
        claims = [store.claim(f"c{number}", b"f", ttl=600) for number in range(40)]
        done = await asyncio.gather(*acts, *claims)
        assert done == [None] * 40 + [RUN] * 40
        # One more if the lease had to be renewed in between.
        assert store._writer.transactions - before <= 2
        await store.close()

    asyncio.run(use())


def work() -> None:
    """Take the time of a short request."""
    time.sleep(0.0002)


def test_operations_of_a_busy_event_loop_share_a_transaction(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for a slow machine.
    monkeypatch.setattr(writer, "_GATHER_SECONDS", 5.0)

    async def put_later(store: SqliteStore, iterations: int) -> None:
        for _ in range(iterations):
            work()
            await asyncio.sleep(0)
        await store.put(f"k{iterations}", b"v")

    async def use() -> None:
        store = await SqliteStore.open(path)
        before = store._writer.transactions
        await asyncio.gather(*(put_later(store, number) for number in range(8)))
        # One more if the lease had to be renewed in between.
        assert store._writer.transactions - before <= 2
        await store.close()

    asyncio.run(use())


def test_operations_do_not_wait_until_the_event_loop_is_idle(path: Path) -> None:
    async def keep_busy() -> None:
        while True:
            work()
            await asyncio.sleep(0)

    async def use() -> None:
        store = await SqliteStore.open(path)
        busy = asyncio.create_task(keep_busy())
        await asyncio.wait_for(store.put("k", b"v"), 10)
        busy.cancel()
        await store.close()

    asyncio.run(use())


def test_an_existing_claim_is_answered_while_the_file_cannot_be_written(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path, patience=0.3)
        await store.claim("done", b"f", ttl=600)
        await store.complete("done", b"r")
        db = apsw.Connection(str(path))
        db.execute("BEGIN IMMEDIATE")
        # The first one keeps the writer thread busy, so that the others do not look first.
        found = await asyncio.gather(
            *(store.claim(key, b"f", ttl=600) for key in ("new", "done", "done")), return_exceptions=True
        )
        assert "is locked by another process" in str(found[0])
        assert found[1:] == [Claim(ClaimState.DONE, b"r")] * 2
        db.execute("COMMIT")
        db.close()
        assert await store.claim("new", b"f", ttl=600) == RUN
        await store.close()

    asyncio.run(use())


@pytest.mark.parametrize("moment", ["waiting", "committed", "resolved"])
def test_a_claim_that_is_cancelled_at_any_moment_is_not_held(
    path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path)
        submit, resolve = StoreWriter.submit, writer._resolve

        def submit_and_cancel(self: StoreWriter, *arguments: Any, **options: Any) -> Job[Any]:
            job: Job[Any] = submit(self, *arguments, **options)
            if arguments[0] is statements.make_claim:
                if moment == "waiting":
                    job.future.get_loop().call_soon(claiming.cancel)
                elif moment == "resolved":
                    # Runs before the task learns the result.
                    job.future.add_done_callback(lambda _: claiming.cancel())
            return job

        def cancel_and_resolve(jobs: list[Job[Any]]) -> None:
            if moment == "committed" and jobs[0].work is statements.make_claim:
                claiming.cancel()
            resolve(jobs)

        monkeypatch.setattr(StoreWriter, "submit", submit_and_cancel)
        monkeypatch.setattr(writer, "_resolve", cancel_and_resolve)
        claiming = asyncio.create_task(store.claim("k", b"f", ttl=600))
        with pytest.raises(asyncio.CancelledError):
            await claiming
        monkeypatch.undo()
        # The first write comes after the claim, the second one after its release.
        await store.put("x", b"")
        await store.put("x", b"")
        assert (await store.outcome("k", within=0)).state is ClaimState.FREE
        assert await store.claim("k", b"g", ttl=600) == RUN
        await store.close()

    asyncio.run(use())


def test_prefixes_are_looked_up_in_an_index(path: Path) -> None:
    plans: dict[str, list[str]] = {}

    def explain(db: apsw.Connection, now: float, query: Any, *arguments: Any) -> None:
        def note(_cursor: Any, sql: str, bindings: Any) -> bool:
            if not sql.startswith("EXPLAIN"):
                rows = db.cursor().execute(f"EXPLAIN QUERY PLAN {sql}", bindings).fetchall()
                plans[query.__name__] = [str(row[3]) for row in rows]
            return True

        db.exec_trace = note
        try:
            query(db, now, *arguments)
        finally:
            db.exec_trace = None

    async def use() -> None:
        store = await SqliteStore.open(path)
        await store._write(explain, statements.value_keys, "session/", 10)
        await store._write(explain, statements.stream_names, "session/")
        await store._write(explain, statements.read_few_entries, "s", 0, 10)
        await store._write(explain, statements.claims_in_doubt, "call/", store._owner)
        await store.close()

    asyncio.run(use())
    assert plans["value_keys"][0].startswith(
        "SEARCH kept USING INDEX sqlite_autoindex_kept_1 (key>? AND key<?)"
    )
    assert "(stream=? AND id>?)" in plans["read_few_entries"][0]
    assert plans["stream_names"][0].startswith("SEARCH streams USING")
    assert "(name>? AND name<?)" in plans["stream_names"][0]
    assert plans["claims_in_doubt"][0].startswith("SEARCH claims USING INDEX claims_noted (key>? AND key<?)")
    assert not [step for plan in plans.values() for step in plan if "SCAN" in step or "TEMP B-TREE" in step]


def test_few_keys_and_entries_are_read_on_the_loop_and_many_in_a_thread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def note(query: Any) -> Any:
        def noted(*arguments: Any) -> Any:
            threads.append(threading.get_ident())
            return query(*arguments)

        return noted

    async def use() -> None:
        store = await SqliteStore.open(path)
        few, many = statements.INLINE_ROWS, statements.INLINE_ROWS + 1
        await asyncio.gather(
            *(store.put(f"few/{number:02}", b"") for number in range(few)),
            *(store.put(f"many/{number:02}", b"", ttl=0) for number in range(few)),
            store.put(f"many/{few:02}", b""),
            *(store.append("few", b"%d" % number) for number in range(few)),
            *(store.append("many", b"%d" % number, ttl=600) for number in range(many)),
            store.append("large", bytes(statements.INLINE_ENTRY_BYTES + 1)),
        )
        for name in ("value_keys", "read_few_entries", "read_entries"):
            monkeypatch.setattr(statements, name, note(getattr(statements, name)))
        loop = threading.get_ident()
        assert await store.keys("few/") == [f"few/{number:02}" for number in range(few)]
        assert [entry.value for entry in await store.read("few")] == [b"%d" % each for each in range(few)]
        assert [entry.id for entry in await store.read("few", after=3, limit=2)] == [4, 5]
        assert await store.read("few", after=3, limit=0) == await store.read("none") == []
        assert [entry.id for entry in await store.read("many", after=1, limit=3)] == [2, 3, 4]
        assert set(threads) == {loop}
        threads.clear()
        assert await store.keys("many/") == [f"many/{few:02}"]
        assert [entry.id for entry in await store.read("many")] == list(range(1, many + 1))
        assert [len(entry.value) for entry in await store.read("large")] == [
            statements.INLINE_ENTRY_BYTES + 1
        ]
        # Each was tried on the loop first.
        assert [thread == loop for thread in threads] == [True, False] * 3
        await store.close()

    asyncio.run(use())

"""Expired rows: how `prune` finds and deletes them, and what happens to the file."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import apsw
import pytest
from jackfield.store import Claim, ClaimState, DoubtfulClaim, StoreUnavailableError
from jackfield_store_sqlite import SqliteStore, expiry, schema
from jackfield_store_sqlite.process_identity import Machine


class Clock:
    """A machine whose time the test sets."""

    def __init__(self) -> None:
        self.time = 1_000_000.0
        self.machine = Machine("boot", lambda: self.time, lambda: self.time)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackfield.db"


async def make_claims(store: SqliteStore, name: str, count: int, *, ttl: float, result: bytes = b"r") -> None:
    for number in range(count):
        await store.claim(f"{name}/{number}", b"f", ttl=ttl, durable=False)
        await store.complete(f"{name}/{number}", result, durable=False)


def count_searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list to which each search of a range of claims adds the first row id of the range."""
    searched: list[int] = []
    search = expiry.ExpirySearch._search_range

    def noted(self: Any, db: Any, now: float, table: str, start: int) -> Any:
        searched.extend([start] * (table == "claims"))
        return search(self, db, now, table, start)

    monkeypatch.setattr(expiry.ExpirySearch, "_search_range", noted)
    return searched


def test_only_ranges_with_expired_rows_are_searched_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, searched = Clock(), count_searches(monkeypatch)
    monkeypatch.setattr(expiry, "RANGE_ROWS", 100)

    async def use() -> None:
        store = await SqliteStore.open(path, machine=clock.machine)
        for name, ttl in (("early", 60), ("late", 6000), ("middle", 600)):
            await make_claims(store, name, 200, ttl=ttl)
        assert await store.prune() == 0
        assert searched == [0, 100, 200, 300, 400, 500, 600]
        # Only the last range can still get rows.
        searched.clear()
        assert await store.prune() == 0
        assert searched == [600]
        searched.clear()
        clock.time += 61
        assert await store.prune() == 200
        # The third range begins with the last claim that expired early.
        assert searched == [0, 100, 200, 600]
        clock.time += 600
        assert await store.prune() == 200
        clock.time += 6000
        assert await store.prune() == 200
        assert await store._read(lambda db, _: db.execute("SELECT count(*) FROM claims").get) == 0
        assert not store._expiry._due
        await store.close()

    asyncio.run(use())


def test_a_row_whose_expiry_was_brought_forward_is_deleted_within_the_documented_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(expiry, "RANGE_ROWS", 10)

    async def use() -> None:
        store = await SqliteStore.open(path, machine=clock.machine)
        for number in range(30):
            await store.put(str(number), b"", ttl=1_000_000)
        assert await store.prune() == 0
        await store.put("5", b"", ttl=1)
        clock.time += 2
        assert await store.get("5") is None
        clock.time += expiry.RECHECK_SECONDS
        assert await store.prune() == 1
        assert len(await store.keys("")) == 29
        await store.close()

    asyncio.run(use())


def test_rows_that_another_process_adds_and_deletes_are_found(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(expiry, "RANGE_ROWS", 10)

    async def use() -> None:
        store = await SqliteStore.open(path, machine=clock.machine)
        other = await SqliteStore.open(path, machine=clock.machine)
        await make_claims(store, "a", 35, ttl=60)
        assert await store.prune() == 0
        clock.time += 61
        assert await other.prune() == 35
        await make_claims(other, "b", 35, ttl=60)
        assert await store.prune() == 0
        clock.time += 61
        assert await store.prune() == 35
        assert await other.prune() == 0
        await store.close()
        await other.close()

    asyncio.run(use())


def test_rows_that_could_not_be_deleted_are_found_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(expiry, "RANGE_ROWS", 10)

    def refuse(*_: object) -> int:
        raise apsw.FullError

    async def use() -> None:
        store = await SqliteStore.open(path, machine=clock.machine)
        await make_claims(store, "a", 15, ttl=60)
        await make_claims(store, "b", 15, ttl=6000)
        clock.time += 61
        with monkeypatch.context() as patched:
            patched.setattr(expiry, "delete_expired", refuse)
            with pytest.raises(StoreUnavailableError, match="its disk is full"):
                await store.prune()
        assert await store.prune() == 15
        await store.close()

    asyncio.run(use())


def test_the_event_loop_neither_searches_nor_deletes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    threads: dict[str, set[int]] = {"search": set(), "delete": set()}

    def note(what: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            threads[what].add(threading.get_ident())
            return work(*arguments)

        return noted

    async def use() -> None:
        store = await SqliteStore.open(path, machine=clock.machine)
        await make_claims(store, "a", 20, ttl=60)
        clock.time += 61
        store._expiry.search = note("search", store._expiry.search)  # type: ignore[method-assign]
        monkeypatch.setattr(expiry, "delete_expired", note("delete", expiry.delete_expired))
        assert await store.prune() == 20
        await store.close()

    asyncio.run(use())
    assert len(threads["search"]) == len(threads["delete"]) == 1
    assert threading.get_ident() not in threads["search"] | threads["delete"]


def test_the_file_does_not_grow_if_expired_rows_are_pruned(path: Path) -> None:
    clock = Clock()

    async def use() -> None:
        store = await SqliteStore.open(path, machine=clock.machine)
        sizes = []
        for turn in range(6):
            await make_claims(store, str(turn), 1200, ttl=60, result=bytes(2000))
            await asyncio.gather(
                *(store.append(f"s{turn}", bytes(400), ttl=60) for _ in range(300)),
                *(store.put(f"{turn}/{number}", bytes(600), ttl=60) for number in range(300)),
            )
            clock.time += 61
            assert await store.prune() == 1800
            await store._write(lambda db, _: None)
            sizes.append(await store._read(lambda db, _: db.pragma("page_count")))
        # A page more for each stream name and owner at most; without pruning, it would grow six times.
        assert sizes[-1] <= sizes[0] * 1.05
        await store.close()

    asyncio.run(use())


OLDER_ROWS = """
INSERT INTO kept (key, value, expires)
    VALUES ('lasting', x'78', NULL), ('short', x'79', 2e6), ('gone', x'7a', 5);
INSERT INTO counters (key, count, expires) VALUES ('c', 7, 2e6);
INSERT INTO claims (key, fingerprint, owner, result, expires, note)
    VALUES ('done', x'66', 'o', x'72', 2e6, NULL), ('doubtful', x'66', 'o', NULL, 5, x'6e'),
           ('gone', x'66', 'o', x'72', 5, NULL);
INSERT INTO streams (number, name, last) VALUES (3, 's', 9);
INSERT INTO entries (stream, id, value, expires) VALUES (3, 8, x'38', NULL), (3, 9, x'39', 2e6);
"""


def test_a_file_with_indexes_on_the_expiry_is_migrated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:3])
        db = apsw.Connection(str(path))
        schema.migrate(db, path, 1.0, nullcontext())
        db.execute(OLDER_ROWS)
        db.close()
    clock = Clock()

    async def use() -> None:
        store = await SqliteStore.open(path, machine=clock.machine)
        assert await store.keys("") == ["lasting", "short"]
        assert await store.get("short") == b"y"
        assert await store.add("c", 1, window=60) == 8
        assert await store.claim("done", b"f", ttl=60) == Claim(ClaimState.DONE, b"r")
        assert await store.in_doubt("") == [DoubtfulClaim("doubtful", b"n")]
        assert [tuple(entry) for entry in await store.read("s")] == [(8, b"8"), (9, b"9")]
        assert await store.append("s", b"10") == 10
        assert await store.prune() == 2
        clock.time += 2e6
        assert await store.prune() == 4
        assert await store.in_doubt("") == [DoubtfulClaim("doubtful", b"n")]
        names = await store._read(
            lambda db, _: [name for (name,) in db.execute("SELECT name FROM sqlite_schema").fetchall()]
        )
        assert not [name for name in names if "expiry" in name or "before" in name]
        assert await store._read(lambda db, _: db.pragma("integrity_check")) == "ok"
        await store.close()

    asyncio.run(use())

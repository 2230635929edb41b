"""Cost of the stores: claims of reads, durable writes, appends, keys by prefix, and growth of memory.

Every figure is CPU time of the whole process, with its checkpoints, except for the rates per second. The
PostgreSQL server is another process on the same machine, so its CPU time shows only in the rates. The floor
of a claim on SQLite is the same statements in apsw alone, with the same table, page size and length of the
log. All variants run interleaved. `python -m bench.probes.stores` also shows the goals.
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path

import apsw
from jackfield.store import MemoryStore, Store
from jackfield_store_postgres import PostgresStore
from jackfield_store_sqlite import SqliteStore, schema
from jackfield_store_sqlite.writer import LOG_PAGES
from jackfield_testkit.postgres import PostgresServer

ROUNDS = 9
CALLS = 1000
RESULT = b"x" * 2000
"""About as long as five search results."""
NOTE = b"n" * 300
TTL = 86_400.0

GOALS = {
    "a read's claim and completion, SQLite, us": "at most 45",
    "a read's claim and completion, SQLite, us on the loop": "at most 45",
    "durable calls per second, 64 callers": "at least 8,000",
    "keys(prefix) among 10,000 sessions, memory, us": "at most 5",
    "keys(prefix) among 10,000 sessions, SQLite, us": "at most 1.5 times that of 1 session",
    "memory per evictable call after 100,000 calls, bytes": "at most 50",
}

Cost = tuple[float, float]
"""Microseconds of CPU of the process and of the event loop's thread."""


async def cost(work: Awaitable[object], times: int) -> Cost:
    process, thread = time.process_time(), time.thread_time()
    await work
    return (time.process_time() - process) / times * 1e6, (time.thread_time() - thread) / times * 1e6


def middle(costs: list[Cost], place: int = 0) -> float:
    return statistics.median(each[place] for each in costs)


def key(number: int) -> str:
    return f"call/{number // 50:032x}/call_{number:010}"


# Claims of reads.


async def read_calls(store: Store, first: int, count: int = CALLS) -> None:
    for number in range(first, first + count):
        await store.claim(key(number), b"f" * 32, ttl=TTL, durable=False)
        await store.complete(key(number), RESULT, durable=False)


class RawClaims:
    """The statements of a claim and its completion, without a store around them."""

    _MAKE = (
        "INSERT INTO claims (key, fingerprint, owner, result, expires) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (key) DO NOTHING"
    )
    _COMPLETE = "UPDATE claims SET result = ? WHERE key = ? AND owner = ? AND result IS NULL"

    def __init__(self, path: Path, batch: int) -> None:
        """`batch` is the number of calls per transaction; 0 means one transaction per statement."""
        self._db = apsw.Connection(str(path))
        schema.migrate(self._db, path, 1.0, nullcontext())
        self._db.pragma("synchronous", "NORMAL")
        self._db.wal_autocheckpoint(LOG_PAGES)
        self._batch = batch

    async def run(self, first: int) -> None:
        for start in range(first, first + CALLS, self._batch or CALLS):
            if self._batch:
                self._db.execute("BEGIN IMMEDIATE")
            for number in range(start, start + (self._batch or CALLS)):
                name = key(number)
                self._db.execute(self._MAKE, (name, b"f" * 32, "o" * 16, None, TTL + number))
                self._db.execute(self._COMPLETE, (RESULT, name, "o" * 16))
            if self._batch:
                self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


async def claims(folder: Path, url: str) -> dict[str, float]:
    memory, sqlite = MemoryStore(), await SqliteStore.open(folder / "claims.db")
    postgres = await PostgresStore.open(url, schema="claims")
    raw = {batch: RawClaims(folder / f"raw{batch}.db", batch) for batch in (0, 1, 50)}
    works: dict[str, Callable[[int], Awaitable[None]]] = {
        "a read's claim and completion, memory, us": lambda first: read_calls(memory, first),
        "a read's claim and completion, SQLite, us": lambda first: read_calls(sqlite, first),
        "a read's claim and completion, PostgreSQL, us": lambda first: read_calls(postgres, first),
        "the same in apsw alone, two transactions, us": raw[0].run,
        "the same in apsw alone, one transaction, us": raw[1].run,
        "the same in apsw alone, 50 calls per transaction, us": raw[50].run,
    }
    taken: dict[str, list[Cost]] = {name: [] for name in works}
    # The first rounds fill the log, which costs more than to write it again.
    for number in range(2 + ROUNDS):
        for name, work in works.items():
            spent = await cost(work(number * CALLS), CALLS)
            taken[name] += [spent] if number > 1 else []
    await sqlite.close()
    await postgres.close()
    for each in raw.values():
        each.close()
    found = {name: middle(costs) for name, costs in taken.items()}
    on_loop = middle(taken["a read's claim and completion, SQLite, us"], 1)
    return found | {"a read's claim and completion, SQLite, us on the loop": on_loop}


# Durable writes.


async def durable_call(store: Store, name: str) -> None:
    await store.claim(f"call/{name}", b"f" * 32, ttl=TTL, note=NOTE)
    await store.holds(f"call/{name}")
    await store.complete(f"call/{name}", RESULT, ttl=TTL)


async def append_event(store: Store, name: str) -> None:
    await store.append(name.rpartition("/")[0], b"e" * 400, ttl=TTL)


async def rates(
    store: Store, work: Callable[[Store, str], Awaitable[None]], callers: int
) -> tuple[float, list[Cost]]:
    """Return how often per second callers get their work done, and what it costs."""
    calls = max(20, 1280 // callers)

    async def call(prefix: str) -> None:
        for number in range(calls):
            await work(store, f"{prefix}/{number:010}")

    found, costs = [], []
    for turn in range(ROUNDS):
        began = time.perf_counter()
        tasks = [call(f"{callers}-{turn}-{number}") for number in range(callers)]
        costs.append(await cost(asyncio.gather(*tasks), callers * calls))
        found.append(callers * calls / (time.perf_counter() - began))
    return statistics.median(found), costs


async def durable_calls(folder: Path, url: str) -> dict[str, float]:
    found = {}
    stores: dict[str, Store] = {
        "": await SqliteStore.open(folder / "durable.db", durable_appends=True),
        ", PostgreSQL": await PostgresStore.open(url, schema="durable"),
    }
    for kind, store in stores.items():
        for callers in (1, 16, 64):
            rate, costs = await rates(store, durable_call, callers)
            title = f"{callers} caller{'s' * (callers > 1)}{kind}"
            found[f"durable calls per second, {title}"] = rate
            found[f"CPU of a durable call, {title}, us"] = middle(costs)
        rate, costs = await rates(store, append_event, 64)
        found[f"durable appends per second, 64 callers{kind}"] = rate
        found[f"CPU of a durable append, 64 callers{kind}, us"] = middle(costs)
        await store.close()
    return found


# Keys by prefix.


async def prefixes(folder: Path, url: str) -> dict[str, float]:
    found = {}
    for sessions in (1, 1_000, 10_000):
        stores: dict[str, Store] = {
            "memory": MemoryStore(),
            "SQLite": await SqliteStore.open(folder / f"keys{sessions}.db"),
            "PostgreSQL": await PostgresStore.open(url, schema=f"keys{sessions}"),
        }
        for name, store in stores.items():
            names = [f"session/{number:032x}" for number in range(sessions)]
            await asyncio.gather(*(store.put(each, b"x" * 500, ttl=TTL) for each in names))

            async def look(store: Store = store, names: list[str] = names) -> None:
                for number in range(CALLS):
                    await store.keys(names[number * 7919 % len(names)])

            costs = [await cost(look(), CALLS) for _ in range(ROUNDS)]
            title = f"{sessions:,} session{'s' * (sessions > 1)}"
            found[f"keys(prefix) among {title}, {name}, us"] = middle(costs)
            await store.close()
    return found


# Growth of memory.


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def growth() -> dict[str, float]:
    """Resident bytes per call: results that may be evicted, and the data of a call that must be kept."""
    store = MemoryStore()
    await read_calls(store, 0, 20_000)
    gc.collect()
    before = _resident()
    await read_calls(store, 20_000, 100_000)
    gc.collect()
    evictable = (_resident() - before) / 100_000
    before = _resident()
    for number in range(20_000):
        await store.put(f"session/{number:032x}", bytes(550), ttl=TTL)
        for _ in range(2):
            await store.append(f"events/{number:032x}", bytes(400), ttl=TTL)
    gc.collect()
    return {
        "memory per evictable call after 100,000 calls, bytes": evictable,
        "memory per session of 550 bytes with two events of 400 bytes": (_resident() - before) / 20_000,
    }


async def main() -> None:
    server = PostgresServer.temporary(settings={"fsync": "on"})
    with tempfile.TemporaryDirectory() as name, server as running:
        folder, url = Path(name), running.uri()
        found = await growth()
        found |= await claims(folder, url) | await durable_calls(folder, url) | await prefixes(folder, url)
    for name, figure in found.items():
        print(f"{name:60} {figure:10,.1f}   {GOALS.get(name, '')}")
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())

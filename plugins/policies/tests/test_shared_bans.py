"""Bans of one user that several processes extend and lift on one file, and that survive their death."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from jackfield_policies.access import Bans, Subject
from jackfield_store_sqlite import SqliteStore

ADA = Subject("ada", None)

GUARD = 120
"""Timeout of a wait in seconds."""

HOST = """\
import asyncio, json, os, sys
from jackfield_policies import access
from jackfield_policies.access import Bans
from jackfield_store_sqlite import SqliteStore

# A claim of this process is taken over when it dies, or never: here it is not forgotten in time.
access.LOCK_SECONDS = 100_000
stops_at, lease, path = sys.argv[1], float(sys.argv[2]), sys.argv[3]


def say(**said):
    os.write(1, json.dumps(said).encode() + b"\\n")


async def told():
    return json.loads(await asyncio.to_thread(sys.stdin.readline) or "null")


class Stopping(SqliteStore):
    async def at(self, where):
        if where == stops_at:
            say(at=where)
            await told()

    async def get(self, key):
        value = await super().get(key)
        await self.at("read")
        return value

    async def put(self, key, value, *, ttl=None):
        await self.at("writing")
        await super().put(key, value, ttl=ttl)
        await self.at("written")


async def main():
    store = await Stopping.open(path, lease=lease)
    bans = Bans(store)
    say(at="ready")
    while task := await told():
        async def extend():
            for _ in range(task["times"]):
                say(until=await bans.add("ada", task["seconds"]))
        await asyncio.gather(*(extend() for _ in range(task["tasks"])))
        say(at="done")
    await store.close()


asyncio.run(main())
"""


class Host:
    """A process that bans on request and reports acknowledged bans."""

    def __init__(self, path: Path, stops_at: str = "", lease: float = 10.0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, stops_at, str(lease), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._said() == {"at": "ready"}

    def tell(self, **task: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(task).encode() + b"\n")
        self.process.stdin.flush()

    async def until_at(self, where: str) -> list[float]:
        """Return the acknowledged bans up to this point."""
        ends = []
        while (said := await asyncio.to_thread(self._said)).get("at") != where:
            ends.append(said["until"])
        return ends

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def killed(self) -> list[float]:
        """Return its last messages before it was killed."""
        self.process.kill()
        assert self.process.stdout
        return [json.loads(line)["until"] for line in self.process.stdout]

    def end(self) -> None:
        self.process.kill()
        with self.process:
            pass

    def acknowledged(self) -> float:
        """Return the next acknowledged end of a ban."""
        end: float = self._said()["until"]
        return end

    def _said(self) -> dict[str, Any]:
        assert self.process.stdout
        said: dict[str, Any] = json.loads(self.process.stdout.readline())
        return said


class DelayedStore(SqliteStore):
    """Reports waiters for a claim, and can be delayed before it writes."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.waits = asyncio.Event()
        self.writing = asyncio.Event()
        self.may_write = asyncio.Event()
        self.may_write.set()

    async def outcome(self, key: str, *, within: float) -> Any:
        self.waits.set()
        return await super().outcome(key, within=within)

    async def put(self, key: str, value: bytes, *, ttl: float | None = None) -> None:
        self.writing.set()
        await self.may_write.wait()
        await super().put(key, value, ttl=ttl)


Place = Callable[..., Host]
Main = Callable[[DelayedStore, Bans], Awaitable[None]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept.db"


@pytest.fixture
def host(path: Path) -> Any:
    """Return a function that starts hosts on the file, and stop them afterwards."""
    with ExitStack() as ending:

        def start(*arguments: Any, **options: Any) -> Host:
            started = Host(path, *arguments, **options)
            ending.callback(started.end)
            return started

        yield start


@pytest.fixture
def here(path: Path) -> Callable[..., None]:
    """Return a function that runs an action next to the hosts, with its own store and bans."""

    @asynccontextmanager
    async def opened(lease: float) -> AsyncIterator[DelayedStore]:
        store = await DelayedStore.open(path, lease=lease)
        try:
            yield store
        finally:
            await store.close()

    def run(main: Main, lease: float = 10.0) -> None:
        async def within() -> None:
            async with asyncio.timeout(GUARD), opened(lease) as store:
                await main(store, Bans(store))

        asyncio.run(within())

    return run


async def seen_while(bans: Bans, work: Awaitable[Any]) -> Any:
    """Read a ban repeatedly during an action; it must exist every time."""
    task = asyncio.ensure_future(work)
    while not task.done():
        assert await bans.remaining("ada") > 0
        await asyncio.sleep(0.001)
    return await task


def test_concurrent_extensions_are_all_kept_and_the_ban_is_always_visible(host: Place, here: Any) -> None:
    async def main(store: DelayedStore, bans: Bans) -> None:
        hosts = [host() for _ in range(3)]
        first = await bans.add("ada", 60)
        for each in hosts:
            each.tell(tasks=2, times=6, seconds=60)
        ends = await seen_while(bans, asyncio.gather(*(each.until_at("done") for each in hosts)))
        acknowledged = sorted(end for each in ends for end in each)
        assert acknowledged == [first + 60 * number for number in range(1, 37)]
        assert (await bans.active())[ADA] == acknowledged[-1]

    here(main)


@pytest.mark.parametrize(("where", "counts"), [("read", 0), ("writing", 0), ("written", 60)])
def test_a_killed_process_does_not_block_extensions(host: Place, here: Any, where: str, counts: int) -> None:
    async def main(store: DelayedStore, bans: Bans) -> None:
        first = await bans.add("ada", 600)
        dying = host(where)
        dying.tell(tasks=1, times=1, seconds=60)
        await dying.until_at(where)
        extending = asyncio.create_task(bans.add("ada", 30))
        await store.waits.wait()
        assert not extending.done()
        assert await bans.remaining("ada") > 0
        assert dying.killed() == []
        assert await seen_while(bans, extending) == first + counts + 30

    here(main)


def test_nothing_acknowledged_is_lost_when_hosts_are_killed_while_they_extend(host: Place, here: Any) -> None:
    async def main(store: DelayedStore, bans: Bans) -> None:
        first = await bans.add("ada", 600)
        ends: list[float] = []
        for _ in range(3):
            hosts = [host() for _ in range(2)]
            for each in hosts:
                each.tell(tasks=1, times=10_000, seconds=60)
            ends.append(await seen_while(bans, asyncio.to_thread(hosts[0].acknowledged)))
            for each in hosts:
                ends += each.killed()
        extensions = (await bans.add("ada", 60) - first) / 60 - 1
        assert len(set(ends)) == len(ends), "two were told the same end"
        # Each killed host may have written one ban that it could not report.
        assert len(ends) <= extensions <= len(ends) + 6

    here(main)


def test_a_hung_host_notices_that_it_lost_the_lock(host: Place, here: Any) -> None:
    async def main(store: DelayedStore, bans: Bans) -> None:
        first = await bans.add("ada", 600)
        hung = host("read", lease=0.5)
        hung.tell(tasks=1, times=1, seconds=60)
        await hung.until_at("read")
        hung.send(signal.SIGSTOP)
        try:
            assert await bans.add("ada", 30) == first + 30
        finally:
            hung.send(signal.SIGCONT)
        hung.tell()
        await hung.until_at("read")  # Repeated, because the value it had read is stale.
        hung.tell()
        assert await hung.until_at("done") == [first + 90]
        assert (await bans.active())[ADA] == first + 90

    here(main, lease=0.5)


def test_a_lifted_ban_is_not_restored_by_a_concurrent_extension(here: Any, path: Path) -> None:
    async def main(store: DelayedStore, bans: Bans) -> None:
        await bans.add("ada", 600)
        store.writing.clear()
        store.may_write.clear()
        extending = asyncio.create_task(bans.add("ada", 60))
        await store.writing.wait()
        operator = await DelayedStore.open(path)
        try:
            lifting = asyncio.create_task(Bans(operator).remove("ada"))
            await operator.waits.wait()
            store.may_write.set()
            await extending
            assert await lifting
        finally:
            await operator.close()
        assert await bans.active() == {}

    here(main)

"""A model of power cuts: any part of unflushed data may have reached the disk, whole or torn."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from jackfield.store import ClaimState
from jackfield_store_sqlite import SqliteStore

CUTS = 30
BENEATH = "unix"
STORE = "jackfield.db"


class Disk:
    """The content of every file after a power cut."""

    def __init__(self) -> None:
        self.flushed: dict[str, bytearray] = defaultdict(bytearray)
        self.pending: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
        self.lock = threading.Lock()

    def write(self, name: str, data: bytes, offset: int) -> None:
        with self.lock:
            self.pending[name].append((offset, data))

    def flush(self, name: str) -> None:
        with self.lock:
            for offset, data in self.pending.pop(name, ()):
                _overwrite(self.flushed[name], offset, data)

    def cut(self, chance: random.Random) -> dict[str, bytes]:
        with self.lock:
            left = {name: bytearray(image) for name, image in self.flushed.items()}
            for name, writes in self.pending.items():
                for offset, data in writes:
                    # A sector is written whole or not at all.
                    for start in range(0, len(data), 512):
                        if chance.random() < 0.5:
                            _overwrite(
                                left.setdefault(name, bytearray()), offset + start, data[start : start + 512]
                            )
            return {name: bytes(image) for name, image in left.items()}


def _overwrite(image: bytearray, offset: int, data: bytes) -> None:
    image.extend(bytes(max(0, offset - len(image))))
    image[offset : offset + len(data)] = data


class _Files(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        super().__init__("power-cuts", BENEATH, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        return _File(self.disk, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.name = Path(name.filename() if isinstance(name, apsw.URIFilename) else str(name)).name
        if self.name.endswith(".part"):
            # The draft of a new store, which becomes the store by a link outside of SQLite.
            self.name = STORE
        super().__init__(BENEATH, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        self.disk.write(self.name, bytes(data), offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self.disk.flush(self.name)


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    files = _Files(disk)
    yield disk
    files.unregister()


class Cut(NamedTuple):
    """The remaining data, and what had been acknowledged before."""

    left: dict[str, bytes]
    told: frozenset[str]
    appended: int


class Work:
    """Writes, and remembers what was acknowledged."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.told: set[str] = set()
        self.appended = 0
        self.stopped = False

    async def task(self, number: int) -> None:
        for step in itertools.count():
            if self.stopped:
                return
            name = f"{number}.{step}"
            await self.store.put(f"kept/{name}", name.encode() * 50)
            self.told.add(f"kept/{name}")
            await self.store.claim(f"done/{name}", b"", ttl=600)
            await self.store.complete(f"done/{name}", name.encode())
            self.told.add(f"done/{name}")
            # May be lost, but must not affect anything else.
            await self.store.claim(f"read/{name}", b"", ttl=600, durable=False)
            await self.store.complete(f"read/{name}", name.encode(), durable=False)
            await self.store.append("log", name.encode())
            self.appended += 1


async def cuts(disk: Disk, store: SqliteStore) -> list[Cut]:
    """Cut the power repeatedly while the store works."""
    chance = random.Random(5)
    work = Work(store)
    working = asyncio.gather(*map(work.task, range(8)))
    made: list[Cut] = []
    while len(made) < CUTS:
        await asyncio.sleep(chance.uniform(0.001, 0.02))
        told, appended = frozenset(work.told), work.appended
        made.append(Cut(disk.cut(chance), told, appended))
    work.stopped = True
    await working
    await store.close()
    return made


def restore(left: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir()
    for name, image in left.items():
        if not name.endswith(("-shm", "-journal")):
            (folder / name).write_bytes(image)
    return folder / STORE


async def check(path: Path, cut: Cut, *, streams_too: bool) -> None:
    store = await SqliteStore.open(path)
    assert await store._write(lambda db, _: db.pragma("integrity_check")) == "ok"
    kept = set(await store.keys("kept/"))
    assert {each for each in cut.told if each.startswith("kept/")} <= kept
    for each in cut.told - kept:
        found = await store.claim(each, b"", ttl=600)
        assert (found.state, found.result) == (ClaimState.DONE, each.removeprefix("done/").encode())
    ids = [entry.id for entry in await store.read("log", limit=1_000_000)]
    assert ids == list(range(1, len(ids) + 1))
    assert not streams_too or len(ids) >= cut.appended
    await store.close()


@pytest.mark.parametrize("durable_appends", [False, True])
def test_nothing_acknowledged_is_lost(disk: Disk, tmp_path: Path, durable_appends: bool) -> None:
    async def use() -> list[Cut]:
        store = await SqliteStore.open(tmp_path / STORE, durable_appends=durable_appends)
        return await cuts(disk, store)

    made = asyncio.run(use())
    assert made[-1].told
    for number, cut in enumerate(made):
        path = restore(cut.left, tmp_path / f"cut{number}")
        asyncio.run(check(path, cut, streams_too=durable_appends))

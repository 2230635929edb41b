"""The file: its permissions, its validation, and its loss."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest
from jackfield.store import StoreUnavailableError
from jackfield_store_sqlite import SqliteStore, schema


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackfield.db"


async def written(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.put("k", b"v")
    await store.close()


def move(source: Path, target: Path) -> None:
    source.rename(target)


def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(tmp_path / "one" / "two" / "jackfield.db")
        await store.put("k", b"v")
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "one").rglob("*")}
        assert modes.pop("two") == 0o700
        assert set(modes) == {f"jackfield.db{end}" for end in ("", "-wal", "-shm", "-lock")}
        assert set(modes.values()) == {0o600}
        await store.close()

    asyncio.run(use())
    assert [each.name for each in (tmp_path / "one" / "two").iterdir()] == ["jackfield.db"]


def test_data_survives_closing_and_reopening(path: Path) -> None:
    async def use() -> None:
        await written(path)
        store = SqliteStore(path)
        assert await store.get("k") == b"v"
        await store.close()

    asyncio.run(use())


def test_a_file_that_is_not_a_store_is_refused_unchanged(tmp_path: Path) -> None:
    async def refused(name: str, sentence: str) -> None:
        store = SqliteStore(tmp_path / name)
        before = (tmp_path / name).read_bytes() if name != "folder" else b""
        for attempt in (store.get("k"), store.put("k", b"v"), store.read("s")):
            with pytest.raises(StoreUnavailableError, match=sentence):
                await attempt
        with pytest.raises(StoreUnavailableError, match=sentence):
            store.now()
        await store.close()
        assert name == "folder" or (tmp_path / name).read_bytes() == before

    (tmp_path / "text").write_text("a diary, not a database\n" * 100)
    (tmp_path / "folder").mkdir()
    apsw.Connection(str(tmp_path / "other")).execute("CREATE TABLE notes (text)").connection.close()
    newer = apsw.Connection(str(tmp_path / "newer"))
    newer.execute(
        f"CREATE TABLE t (x); PRAGMA application_id = {schema.APPLICATION}; PRAGMA user_version = 99"
    )
    newer.close()
    asyncio.run(refused("text", "is not a SQLite database; move the file away"))
    asyncio.run(refused("folder", "is a folder"))
    asyncio.run(refused("other", "is another program's SQLite database"))
    asyncio.run(refused("newer", r"newer version \(its schema is 99, this one knows up to \d+\); upgrade"))


def test_a_damaged_file_is_reported(path: Path) -> None:
    async def fill() -> None:
        store = await SqliteStore.open(path)
        await asyncio.gather(*(store.put(f"key {number}", b"x" * 500) for number in range(500)))
        await store.close()

    asyncio.run(fill())
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xa5" * (path.stat().st_size - 8192))

    async def use() -> None:
        store = SqliteStore(path)
        with pytest.raises(StoreUnavailableError, match=r"is damaged .* restore a backup"):
            await asyncio.gather(*(store.put(f"key {number}", b"y") for number in range(500)))
        await store.close()

    asyncio.run(use())


def test_an_older_file_is_migrated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(written(path))
    monkeypatch.setattr(
        schema,
        "MIGRATIONS",
        (
            *schema.MIGRATIONS,
            "ALTER TABLE kept ADD COLUMN note TEXT",
            "CREATE TABLE notes (text); INSERT INTO notes VALUES ('x')",
        ),
    )

    async def use() -> None:
        store = await SqliteStore.open(path)
        assert await store.get("k") == b"v"
        assert await store._write(lambda db, _: db.pragma("user_version")) == len(schema.MIGRATIONS)
        assert await store._write(lambda db, _: db.execute("SELECT text FROM notes").get) == "x"
        await store.close()

    asyncio.run(use())


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(written(path))
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE half (x); SELECT nonsense"))
        with pytest.raises(StoreUnavailableError, match="nonsense"):
            asyncio.run(SqliteStore.open(path))
    db = apsw.Connection(str(path))
    assert db.pragma("user_version") == len(schema.MIGRATIONS)
    assert not db.table_exists(None, "half")
    db.close()
    asyncio.run(written(path))


def test_processes_that_start_together_create_one_store(path: Path) -> None:
    program = (
        "import asyncio, sys, time\n"
        "from jackfield_store_sqlite import SqliteStore\n"
        "async def main():\n"
        "    store = await SqliteStore.open(sys.argv[1])\n"
        "    print(await store.add('c', 1, window=60))\n"
        "    await store.close()\n"
        "time.sleep(max(0, float(sys.argv[2]) - time.time()))\n"
        "asyncio.run(main())\n"
    )
    for attempt in range(3):
        at = str(time.time() + 0.4)
        started = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(path) + str(attempt), at],
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        assert sorted(each.communicate()[0].strip() for each in started) == ["1", "2", "3", "4"]


def test_a_lost_file_is_not_recreated(path: Path) -> None:
    """Otherwise its calls would be forgotten and run a second time."""
    away = path.with_name("away")

    async def use() -> None:
        store = await SqliteStore.open(path)
        await store.put("k", b"v")
        move(path, away)
        await asyncio.sleep(0.15)
        for attempt in (store.put("k", b"w"), store.get("k"), store.keys("")):
            with pytest.raises(StoreUnavailableError, match="is gone; put it back"):
                await attempt
        move(away, path)
        assert await store.get("k") == b"v"
        await store.put("k", b"w")
        await store.close()

    asyncio.run(use())


def test_a_replaced_file_is_refused(path: Path) -> None:
    other = path.with_name("other.db")

    async def use() -> None:
        await written(other)
        content = await asyncio.to_thread(other.read_bytes)
        store = await SqliteStore.open(path)
        await store.put("k", b"old")
        move(other, path)
        await asyncio.sleep(0.15)
        for attempt in (store.put("k", b"w"), store.get("k"), store.keys("")):
            with pytest.raises(StoreUnavailableError, match="a different file has replaced"):
                await attempt
        await store.close()
        assert await asyncio.to_thread(path.read_bytes) == content

    asyncio.run(use())

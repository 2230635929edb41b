"""Creating a store: once, explicitly, and never to replace a lost store."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from jackfield.offers import StoreOffer
from jackfield.store import StoreUnavailableError
from jackfield_store_sqlite import SqliteStore, jackfield_stores, schema
from jackfield_store_sqlite.creation import initialise, missing
from jackfield_store_sqlite.settings import SqliteSettings

(OFFER,) = jackfield_stores()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackfield.db"


def created(path: Path, offer: StoreOffer = OFFER) -> str:
    assert offer.initialise
    return offer.initialise(SqliteSettings(path))


def shown(path: Path) -> Any:
    assert OFFER.describe
    return OFFER.describe(SqliteSettings(path))


async def opened(path: Path, **settings: Any) -> None:
    """Open a store the way a host does, and write to it."""
    store = OFFER.create(SqliteSettings(path, **settings))
    try:
        await store.put("k", b"v")
    finally:
        await store.close()


def older(path: Path) -> None:
    """Create a store of the first schema that has been in use."""
    db = apsw.Connection(str(path))
    db.execute(schema.MIGRATIONS[0])
    db.execute("INSERT INTO clock VALUES (1, 'a boot', 1.0, 1.0, 1.0)")
    db.pragma("application_id", schema.APPLICATION)
    db.pragma("user_version", 1)
    db.close()


def test_a_new_store_is_private_to_its_owner_and_has_an_id(tmp_path: Path) -> None:
    path = tmp_path / "one" / "jackfield.db"
    said = created(path)
    store_id = shown(path)["id"]
    assert said == f"created a new store at {path}, with the id {store_id}"
    assert len(store_id) == 32
    assert [each.name for each in path.parent.iterdir()] == ["jackfield.db"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    asyncio.run(opened(path, id=store_id))
    assert {**shown(path), "created": None, "bytes": 0} == {
        "id": store_id,
        "path": str(path),
        "schema": len(schema.MIGRATIONS),
        "created": None,
        "bytes": 0,
        "claims": 0,
        "values": 1,
        "streams": 0,
    }
    assert shown(path)["created"].endswith("+00:00")


def test_two_stores_have_two_ids(tmp_path: Path) -> None:
    assert initialise(tmp_path / "a").id != initialise(tmp_path / "b").id


def test_opening_a_store_for_a_host_never_creates_it(path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="is gone; put it back, or check the mount"):
        asyncio.run(opened(path))
    assert not list(path.parent.iterdir())
    path.touch()
    with pytest.raises(StoreUnavailableError, match="is empty and not a store"):
        asyncio.run(opened(path))
    assert [(each.name, each.stat().st_size) for each in path.parent.iterdir()] == [("jackfield.db", 0)]


def text(path: Path) -> None:
    path.write_text("a diary, not a database\n" * 100)


def another_programs(path: Path) -> None:
    apsw.Connection(str(path)).execute("CREATE TABLE notes (text)").connection.close()


def without_tables(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE gone (x); DROP TABLE gone")
    db.close()


def dangling(path: Path) -> None:
    path.symlink_to(path.with_name("unmounted"))


@pytest.mark.parametrize(
    ("put", "sentence"),
    [
        (Path.touch, "is empty and not a store; put the file back or restore a backup, or"),
        (without_tables, "is empty and not a store"),
        (text, "is not a SQLite database; move the file away"),
        (another_programs, "is another program's SQLite database; give the store a different path"),
        (Path.mkdir, "is a folder; the store needs the path of a file"),
        (dangling, "is a link to .*unmounted, which does not exist; put the file back or check the mount"),
        (created, "is already a store, with the id [0-9a-f]{32}"),
        (older, "is already a store"),
    ],
)
def test_creation_refuses_an_existing_path(path: Path, put: Callable[[Path], object], sentence: str) -> None:
    put(path)
    before = {each.name: each.lstat().st_size for each in path.parent.iterdir()}
    with pytest.raises(StoreUnavailableError, match=f"nothing was created: .*{sentence}"):
        created(path)
    assert {each.name: each.lstat().st_size for each in path.parent.iterdir()} == before


def test_a_missing_store_is_reported_with_a_remedy(path: Path) -> None:
    settings = SqliteSettings(path)
    assert OFFER.missing(settings) == (
        f"the store {path} does not exist; if this is a new deployment, run `jackfield store create`; "
        "otherwise put the file back or check the mount"
    )
    created(path)
    assert OFFER.missing(settings) is None


def test_a_store_with_another_id_is_refused(path: Path) -> None:
    mine = initialise(path).id
    other = initialise(path.with_name("other")).id
    path.with_name("other").rename(path)
    why = OFFER.missing(SqliteSettings(path, id=mine))
    assert why
    assert f"has the id {other}, but [stores.sqlite] requires the id {mine}" in why
    with pytest.raises(StoreUnavailableError, match="it is not the same store"):
        asyncio.run(opened(path, id=mine))
    assert OFFER.missing(SqliteSettings(path, id=other)) is None


def test_a_store_with_a_pinned_id_is_not_created(path: Path) -> None:
    settings = SqliteSettings(path, id="0" * 32)
    assert "requires the one with the id 0000" in str(OFFER.missing(settings))
    assert OFFER.initialise
    with pytest.raises(
        StoreUnavailableError, match=r"nothing was created: .* requires the one with the id 0000"
    ):
        OFFER.initialise(settings)

    async def use() -> None:
        store = SqliteStore(path, store_id="0" * 32)
        with pytest.raises(StoreUnavailableError, match="is gone"):
            await store.get("k")
        await store.close()

    asyncio.run(use())
    assert not list(path.parent.iterdir())


def test_an_older_store_gets_an_id_when_it_is_opened(path: Path) -> None:
    older(path)
    assert (shown(path)["id"], shown(path)["schema"]) == (None, 1)
    with pytest.raises(StoreUnavailableError, match="is from an older version and has no id yet"):
        asyncio.run(opened(path, id="0" * 32))
    assert shown(path)["schema"] == 1
    asyncio.run(opened(path))
    store_id = shown(path)["id"]
    assert (len(store_id), shown(path)["created"]) == (32, None)
    asyncio.run(opened(path, id=store_id))


def test_the_journal_of_a_lost_store_prevents_a_new_one(path: Path) -> None:
    """SQLite would treat it as the journal of the new file."""
    program = (
        "import asyncio, os, sys\n"
        "from jackfield_store_sqlite import SqliteStore\n"
        "async def main():\n"
        "    store = await SqliteStore.open(sys.argv[1])\n"
        "    await store.put('k', b'v')\n"
        "    os._exit(0)\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=60)
    path.unlink()
    assert path.with_name("jackfield.db-wal").exists()
    assert "but jackfield.db-wal, a part of it, does" in str(missing(path, None))
    for attempt in (lambda: created(path), lambda: asyncio.run(SqliteStore.open(path))):
        with pytest.raises(StoreUnavailableError, match=r"remove .*jackfield\.db-wal too"):
            attempt()
    assert not path.exists()


def test_a_file_system_without_hard_links_is_supported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", unsupported)
    created(path)
    asyncio.run(opened(path))
    with pytest.raises(StoreUnavailableError, match="is already a store"):
        created(path)
    assert [each.name for each in path.parent.iterdir()] == ["jackfield.db"]


def test_a_folder_that_cannot_be_written_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(StoreUnavailableError, match=r"cannot be reached .*Permission denied"):
        created(path)


def test_a_backup_holds_what_a_store_in_use_has_written(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "backup.db"

    async def write_and_back_up() -> None:
        store = SqliteStore(path)
        for index in range(50):
            await store.put(f"before/{index}", b"x" * 1000)
        # The latest values are in the journal only.
        assert path.with_name(f"{path.name}-wal").stat().st_size > 50_000
        assert OFFER.backup
        assert OFFER.backup(SqliteSettings(path), copy) == f"copied the store {path} to {copy}"
        await store.put("after", b"1")
        await store.close()

    async def read_the_backup() -> None:
        store = SqliteStore(copy, create=False)
        assert len(await store.keys("before/")) == 50
        assert await store.get("before/49") == b"x" * 1000
        assert await store.get("after") is None
        await store.put("new", b"1")
        await store.close()

    asyncio.run(write_and_back_up())
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert sorted(each.name for each in tmp_path.iterdir() if "jackfield" not in each.name) == ["backup.db"]
    assert not list(tmp_path.glob(".jackfield-*"))
    assert shown(copy)["id"] == shown(path)["id"]
    asyncio.run(read_the_backup())


def test_a_backup_never_replaces_a_file(path: Path, tmp_path: Path) -> None:
    created(path)
    copy = tmp_path / "backup.db"
    copy.write_bytes(b"precious")
    assert OFFER.backup
    with pytest.raises(StoreUnavailableError, match=r"backup\.db exists; choose a new file"):
        OFFER.backup(SqliteSettings(path), copy)
    assert copy.read_bytes() == b"precious"
    copy.unlink()
    copy.with_name("backup.db-wal").write_bytes(b"old")
    with pytest.raises(StoreUnavailableError, match=r"SQLite would read .*backup\.db-wal into the copy"):
        OFFER.backup(SqliteSettings(path), copy)
    with pytest.raises(StoreUnavailableError, match="it is not the same store"):
        OFFER.backup(SqliteSettings(path, id="0" * 32), tmp_path / "other.db")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["backup.db-wal", "jackfield.db"]

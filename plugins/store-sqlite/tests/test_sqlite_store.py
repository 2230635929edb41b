"""Using a store: its limits, its settings, its end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jackfield.settings import SettingsError, parse_offer
from jackfield.store import StoreUnavailableError, StreamEntry
from jackfield_store_sqlite import SqliteStore, jackfield_stores
from jackfield_store_sqlite.settings import SqliteSettings


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackfield.db"


async def first(store: SqliteStore, stream: str) -> StreamEntry:
    return await anext(aiter(store.follow(stream)))


def exit_code(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def run_python(program: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_keys_and_values_over_the_limit_are_rejected(path: Path) -> None:
    async def use() -> None:
        store = SqliteStore(path)
        with pytest.raises(ValueError, match="1025 bytes; the limit is 1024"):
            await store.put("k" * 1025, b"")
        await store.put("k" * 1024, b"")
        with pytest.raises(ValueError, match="an unpaired surrogate"):
            await store.put("\ud800", b"")
        with pytest.raises(ValueError, match="surrogates not allowed"):
            await store.get("\ud800")
        assert await store.get("k" * 1025) is None
        with pytest.raises(ValueError, match="16777217 bytes is too large"):
            await store.put("k", bytes(2**24 + 1))
        await store.put("k", bytes(2**24))
        assert await store.get("k") == bytes(2**24)
        with pytest.raises(TypeError, match="a value must be bytes, not str"):
            await store.put("k", "text")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a key must be a str, not int"):
            await store.put(1, b"")  # type: ignore[arg-type]
        for ttl in (-1.0, float("nan")):
            with pytest.raises(ValueError, match="a number of seconds, at least 0"):
                await store.claim("k", b"", ttl=ttl)
        with pytest.raises(ValueError, match="does not fit into 64 bits"):
            await store.add("c", 2**63, window=1)
        await store.put("forever", b"x", ttl=float("inf"))
        assert await store.get("forever") == b"x"
        await store.close()

    asyncio.run(use())


def test_settings_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (offer,) = jackfield_stores()
    assert offer.name == "sqlite"
    wrong = {"pth": "x", "path": "", "lease": True, "patience": 0, "id": "mine", "durable_appends": 1}
    with pytest.raises(SettingsError) as told:
        parse_offer("stores", offer, wrong)
    assert str(told.value).splitlines() == [
        "[stores.sqlite] pth: unknown setting; did you mean 'path'?",
        "[stores.sqlite] path: expected a path, got ''",
        "[stores.sqlite] id: expected the id that `jackfield store show` prints, got 'mine'",
        "[stores.sqlite] lease: expected a number of seconds above 0, got true",
        "[stores.sqlite] patience: expected a number of seconds above 0, got 0",
        "[stores.sqlite] durable_appends: expected true or false, got 1",
    ]
    assert not list(tmp_path.iterdir())
    assert offer.initialise is not None
    offer.initialise(SqliteSettings())

    async def use() -> None:
        store = offer.create(SqliteSettings())
        await store.put("k", b"v")
        await store.close()

    asyncio.run(use())
    assert [each.name for each in tmp_path.iterdir()] == ["jackfield.db"]


def test_asking_for_the_offer_does_not_load_sqlite() -> None:
    told = run_python(
        "import sys, jackfield_store_sqlite as plugin\n"
        "offers = plugin.jackfield_stores()\n"
        "print('apsw' in sys.modules, offers[0].name)"
    )
    assert told.split() == ["False", "sqlite"]


def test_a_closed_store_raises_store_unavailable(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path)
        following = asyncio.create_task(first(store, "s"))
        await asyncio.sleep(0.05)
        await store.close()
        await store.close()
        with pytest.raises(StoreUnavailableError, match="is closed"):
            await following
        for attempt in (store.get("k"), store.put("k", b""), store.keys(""), store.outcome("k", within=1)):
            with pytest.raises(StoreUnavailableError, match="is closed"):
                await attempt

    asyncio.run(use())


def test_a_process_can_exit_without_closing_its_store_and_loses_nothing(path: Path) -> None:
    run_python(
        "import asyncio, sys\n"
        "from jackfield_store_sqlite import SqliteStore\n"
        "store = SqliteStore(sys.argv[1])\n"
        "async def main():\n"
        "    asyncio.create_task(anext(aiter(store.follow('s'))))\n"
        "    await asyncio.gather(*(store.put(str(n), b'x') for n in range(100)), store.keys(''))\n"
        "asyncio.run(main())\n",
        path,
    )

    async def use() -> None:
        store = SqliteStore(path)
        assert len(await store.keys("")) == 100
        await store.close()

    asyncio.run(use())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_store_created_before_a_fork_is_refused_after_it(path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path)
        child = os.fork()
        if not child:
            try:
                await store.put("k", b"")
            except RuntimeError as error:
                os._exit(7 if "created before a fork" in str(error) else 1)
            os._exit(2)
        assert exit_code(child) == 7
        await store.put("k", b"v")
        await store.close()

    asyncio.run(use())

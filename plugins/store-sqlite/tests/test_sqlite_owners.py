"""Time independent of the wall clock, and the liveness of holders."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jackfield.store import Claim, ClaimState
from jackfield_store_sqlite import SqliteStore
from jackfield_store_sqlite.process_identity import Machine, Process, has_exited, this_process


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackfield.db"


@pytest.mark.parametrize("moved", [-600.0, 600.0])
def test_a_moved_wall_clock_moves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, moved: float) -> None:
    async def use() -> None:
        store = await SqliteStore.open(path)
        before = store.now()
        await store.put("token", b"x", ttl=300)
        await store.add("c", 1, window=300)
        await store.claim("held", b"", ttl=300)
        wall = time.time
        monkeypatch.setattr(time, "time", lambda: wall() + moved)
        other = await SqliteStore.open(path)
        for each in (store, other):
            assert before <= each.now() < before + 30
            assert await each.get("token") == b"x"
            assert (await each.claim("held", b"", ttl=300)).state is ClaimState.RUNNING
        assert await other.add("c", 1, window=300) == 2
        await other.close()
        await store.close()

    asyncio.run(use())


def test_time_goes_on_across_boots_and_never_back(path: Path) -> None:
    async def told(boot: str, uptime: float, wall: float) -> float:
        store = await SqliteStore.open(path, machine=Machine(boot, lambda: uptime, lambda: wall))
        now = store.now()
        await store.close()
        return now

    async def use() -> None:
        assert await told("first", 100.0, 1_000_000.0) == 1_000_000.0
        assert await told("first", 150.0, 9_999_999.0) == 1_000_050.0
        # The clock of the next boot is wrong: it starts a year too early.
        early = await told("second", 5.0, 1.0)
        assert 1_000_050.0 <= early < 1_000_070.0
        assert await told("second", 6.0, 1.0) == early + 1
        assert await told("third", 1.0, 2_000_000.0) == 2_000_000.0

    asyncio.run(use())


def test_claims_are_in_doubt_after_a_reboot(path: Path) -> None:
    async def use() -> None:
        before = await SqliteStore.open(path, machine=Machine("first"))
        await before.claim("k", b"", ttl=600)
        after = await SqliteStore.open(path, machine=Machine("second"))
        assert (await after.claim("k", b"", ttl=600)).state is ClaimState.IN_DOUBT
        await after.close()
        await before.close()

    asyncio.run(use())


def test_a_holder_with_an_expired_lease_loses_its_claim_to_a_takeover(path: Path) -> None:
    moment = 1_000_000.0
    machine = Machine("boot", lambda: moment, lambda: moment)

    async def use() -> None:
        nonlocal moment
        stalled = await SqliteStore.open(path, machine=machine)
        other = await SqliteStore.open(path, machine=machine)
        await stalled.claim("k", b"", ttl=600)
        assert (await other.claim("k", b"", ttl=600)).state is ClaimState.RUNNING
        moment += 11
        assert (await other.claim("k", b"", ttl=600)).state is ClaimState.IN_DOUBT
        assert await other.reclaim("k")
        assert not await stalled.complete("k", b"late")
        await stalled.release("k")
        assert await other.complete("k", b"r")
        assert await stalled.claim("k", b"", ttl=600) == Claim(ClaimState.DONE, b"r")
        await other.close()
        await stalled.close()

    asyncio.run(use())


def test_an_idle_holder_renews_its_lease(path: Path) -> None:
    async def use() -> None:
        idle = await SqliteStore.open(path, lease=1.5)
        other = await SqliteStore.open(path, lease=1.5)
        await idle.claim("k", b"", ttl=600)
        for _ in range(20):
            await asyncio.sleep(0.1)
            assert (await other.claim("k", b"", ttl=600)).state is ClaimState.RUNNING
        await idle.close()
        assert (await other.claim("k", b"", ttl=600)).state is ClaimState.IN_DOUBT
        await other.prune()
        assert (await other.claim("k", b"", ttl=600)).state is ClaimState.IN_DOUBT
        await other.close()

    asyncio.run(use())


def test_a_cancelled_takeover_leaves_the_claim_in_doubt(path: Path) -> None:
    async def use() -> None:
        first = await SqliteStore.open(path)
        await first.claim("k", b"", ttl=600)
        await first.close()
        store = await SqliteStore.open(path)
        taking = asyncio.create_task(store.reclaim("k"))
        await asyncio.sleep(0)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        await asyncio.sleep(0.1)
        assert (await store.claim("k", b"", ttl=600)).state is ClaimState.IN_DOUBT
        await store.close()

    asyncio.run(use())


def test_a_reused_pid_and_another_namespace_are_distinguished() -> None:
    me = this_process()
    assert not has_exited(me, me)
    assert has_exited(Process(me.pid, "1", me.namespace), me)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    gone = Process(ended.pid, "", me.namespace)
    ended.wait()
    assert has_exited(gone, me)
    assert not has_exited(Process(gone.pid, "", "pid:[another]"), me)


def test_an_unreaped_process_counts_as_exited() -> None:
    me = this_process()
    dying = subprocess.Popen(["sleep", "60"])
    started = Path(f"/proc/{dying.pid}/stat").read_text().rpartition(")")[2].split()[19]
    process = Process(dying.pid, started, me.namespace)
    assert not has_exited(process, me)
    dying.kill()
    for _ in range(3000):
        if has_exited(process, me):
            break
        time.sleep(0.01)
    else:
        pytest.fail("a zombie is taken for a living process")
    dying.wait()


def test_holds_is_true_only_with_a_current_lease(path: Path) -> None:
    moment = 1_000_000.0
    machine = Machine("boot", lambda: moment, lambda: moment)

    async def use() -> None:
        nonlocal moment
        paused = await SqliteStore.open(path, machine=machine)
        other = await SqliteStore.open(path, machine=machine)
        await paused.claim("k", b"", ttl=600, note=b"n")
        await paused.claim("taken", b"", ttl=600, note=b"n")
        await paused.add("counter", 2**63 - 1, window=600)
        moment += 11
        assert await other.reclaim("taken")
        # The second addition fails and rolls back the transaction that would renew the lease.
        found = await asyncio.gather(
            paused.add("counter", 1, window=600),
            paused.holds("k"),
            paused.holds("taken"),
            return_exceptions=True,
        )
        assert isinstance(found[0], OverflowError)
        assert list(found[1:]) == [True, False]
        assert (await other.claim("k", b"", ttl=600)).state is ClaimState.RUNNING
        assert not await other.reclaim("k")
        await other.close()
        await paused.close()

    asyncio.run(use())

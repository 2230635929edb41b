"""Tests that kill and pause processes at random moments."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any, ClassVar

from jackfield.store import Claim, ClaimState, DoubtfulClaim, Store

from jackfield_testkit.store import worker
from jackfield_testkit.store.claims import IN_DOUBT, done
from jackfield_testkit.store.harness import StoreHarness, WorkerProcess, async_test, expect_consecutive
from jackfield_testkit.suite import expect, expect_equal, fail_test

_PROCESSES = 3
_DETECTION = 30.0
"""Seconds within which a store has to detect the death of a holder."""


class CrashTests:
    """Processes that are killed or paused; not applicable to a store that is not shared."""

    rounds: ClassVar[int]
    seed: ClassVar[int]

    @async_test
    async def test_acknowledged_writes_survive_a_kill(self, harness: StoreHarness) -> None:
        """All writes of a killed process that were acknowledged are visible to the next process."""
        rng = random.Random(self.seed)  # noqa: S311 - nothing here is secret
        acknowledged: list[worker.Report] = []
        for number in range(self.rounds):
            acknowledged += await asyncio.to_thread(_kill_while_writing, harness, number, rng)
            async with harness.open() as store:
                await _check_acknowledged(store, acknowledged)
        expect(acknowledged, "no process got an acknowledgement before it was killed; the store is too slow")

    @async_test
    async def test_claim_of_a_killed_process_is_in_doubt(self, harness: StoreHarness) -> None:
        """The claim is IN_DOUBT, and one of several competing processes reclaims it."""
        for number in range(max(1, self.rounds // 4)):
            key = f"held/{number}"
            await asyncio.to_thread(_kill_while_holding, harness, key)
            async with harness.open() as store:
                expect_equal(
                    await _claim_after_death(store, key), IN_DOUBT, "claim() of a killed process's claim"
                )
                expect_equal(
                    await store.outcome(key, within=5), IN_DOUBT, "outcome() of a killed process's claim"
                )
                expect_equal(
                    (await store.claim(key, b"x", ttl=600)).state,
                    ClaimState.CONFLICT,
                    "claim() with another fingerprint",
                )
                expect_equal(
                    await store.complete(key, b"mine"), False, "complete() of a killed process's claim"
                )
                contenders = [(worker.reclaim, key, f"by {n}") for n in range(_PROCESSES)]
                reports = await asyncio.to_thread(harness.run_workers, contenders)
                won = [each["won"] for each in reports if "won" in each]
                expect_equal(sorted(won), [False] * (_PROCESSES - 1) + [True], "the results of reclaim()")
                found = await store.claim(key, key.encode(), ttl=600)
                expect(
                    found.state is ClaimState.DONE,
                    f"after reclaim() the claim is {found.state.name}, not DONE",
                )

    @async_test
    async def test_outcome_reports_the_death_of_the_holder(self, harness: StoreHarness) -> None:
        """`outcome` returns IN_DOUBT when the holder dies, and one of many tasks reclaims the claim."""
        async with harness.open() as store:
            holder = harness.start_worker(worker.hold, "k")
            await asyncio.to_thread(holder.wait_for, "ready")
            holder.proceed()
            await asyncio.to_thread(holder.wait_for, "state")
            waiting = asyncio.create_task(store.outcome("k", within=_DETECTION))
            await asyncio.sleep(0.1)
            await asyncio.to_thread(holder.kill)
            expect_equal(await waiting, IN_DOUBT, "outcome() when the holder dies")
            won = await asyncio.gather(*(store.reclaim("k") for _ in range(50)))
            expect_equal(sum(won), 1, "the number of 50 concurrent reclaim() that succeeded")
            expect_equal(
                (await store.claim("k", b"k", ttl=600)).state, ClaimState.RUNNING, "claim() after reclaim()"
            )
            expect_equal(await store.complete("k", b"r"), True, "complete() after reclaim()")
            expect_equal(await store.claim("k", b"k", ttl=600), done(b"r"), "claim() at the end")

    @async_test
    async def test_claims_of_killed_processes_are_listed(self, harness: StoreHarness) -> None:
        """`in_doubt` lists only claims of killed processes that have a note, until they are settled."""
        async with harness.open() as store:
            await store.claim("call/mine", b"f", ttl=600, note=b"n")
            alive = await asyncio.to_thread(_start_holder, harness, worker.hold_with_note, "call/alive")
            plain = await asyncio.to_thread(_start_holder, harness, worker.hold, "call/plain")
            dying = await asyncio.to_thread(
                _start_holder, harness, worker.hold_with_note, "call/b", "call/a", "other"
            )
            expect_equal(await store.in_doubt(""), [], "in_doubt() while all holders are alive")
            await asyncio.to_thread(plain.kill)
            await asyncio.to_thread(dying.kill)
            # Each claim is checked: a store may notice the death for one claim earlier than for another.
            for key in ("call/a", "call/b", "other", "call/plain"):
                expect_equal(
                    await _claim_after_death(store, key),
                    IN_DOUBT,
                    f"claim() of {key} after its holder was killed",
                )
            await store.prune()
            listed = [DoubtfulClaim("call/a", b"note of call/a"), DoubtfulClaim("call/b", b"note of call/b")]
            expect_equal(await store.in_doubt("call/"), listed, "in_doubt() after the holder was killed")
            expect_equal(
                [each.key for each in await store.in_doubt("")],
                ["call/a", "call/b", "other"],
                "the keys of all claims in doubt",
            )
            expect_equal(await store.reclaim("call/a"), True, "reclaim() of a killed process's claim")
            expect_equal(await store.in_doubt("call/"), listed[1:], "in_doubt() after reclaim()")
            expect_equal(await store.complete("call/a", b"r", ttl=600), True, "complete() after reclaim()")
            expect_equal(await store.in_doubt("call/"), listed[1:], "in_doubt() after complete()")
            expect_equal(
                await store.claim("call/a", b"call/a", ttl=600), done(b"r"), "claim() after complete()"
            )
            await asyncio.to_thread(alive.kill)

    @async_test
    async def test_recorded_outcome_is_never_in_doubt(self, harness: StoreHarness) -> None:
        """After a kill at any moment, an outcome recorded in one step is DONE or does not exist."""
        rng = random.Random(self.seed + 2)  # noqa: S311
        recorded = 0
        for number in range(max(1, self.rounds // 4)):
            keys = [f"{number}/{n}" for n in range(200)]
            reports = await asyncio.to_thread(_kill_while_recording, harness, keys, rng)
            recorded += len(reports)
            async with harness.open() as store:
                for each in reports:
                    found = await store.claim(each["key"], each["key"].encode(), ttl=600)
                    expect_equal(
                        found, done(f"{each['key']} by p".encode()), "claim() of an acknowledged outcome"
                    )
                for key in keys:
                    found = await store.outcome(key, within=0)
                    what = f"outcome({key!r}) returned {found.state.name} after a kill during claim(result=)"
                    expect(found in (Claim(ClaimState.FREE), done(f"{key} by p".encode())), what)
        expect(recorded, "no process recorded anything before it was killed; the store is too slow")

    @async_test
    async def test_paused_process_keeps_claims_that_were_not_reclaimed(self, harness: StoreHarness) -> None:
        """A process that was paused can complete the claims that it still holds, and no others."""
        async with harness.open() as store:
            holder = await asyncio.to_thread(
                _start_holder, harness, worker.finish_on_request, "left", "taken"
            )
            holder.pause()
            # Some stores treat a paused process as dead; in others it keeps its claims.
            doubted = await _claim_after_death(store, "left") == IN_DOUBT
            if doubted:
                await _claim_after_death(store, "taken")
            expect_equal(await store.reclaim("taken"), doubted, "reclaim() of a paused process's claim")
            listed = ["left"] if doubted else []
            expect_equal(
                [each.key for each in await store.in_doubt("")], listed, "in_doubt() during the pause"
            )
            holder.resume()
            holder.proceed()
            reports = {
                each["key"]: (each["held"], each["completed"])
                for each in await asyncio.to_thread(holder.finish)
                if "held" in each
            }
            expect_equal(reports["left"], (True, True), "holds() and complete() after the pause")
            still = not doubted
            expect_equal(
                reports["taken"],
                (still, still),
                "holds() and complete() of the claim that was or was not reclaimed",
            )
            expect_equal(
                await store.claim("left", b"left", ttl=600),
                done(b"left, finished"),
                "claim() after the pause",
            )
            if doubted:
                expect_equal(await store.complete("taken", b"r"), True, "complete() after reclaim()")
                expect_equal(await store.claim("taken", b"taken", ttl=600), done(b"r"), "claim() at the end")
            expect_equal(await store.in_doubt(""), [], "in_doubt() at the end")

    @async_test
    async def test_nothing_runs_twice(self, harness: StoreHarness) -> None:
        """No key runs twice, however often processes are killed and restarted."""
        rng = random.Random(self.seed + 1)  # noqa: S311
        keys = [f"key/{number}" for number in range(300)]
        runs: list[str] = []
        for number in range(self.rounds):
            reports = await asyncio.to_thread(_kill_while_claiming, harness, keys, number, rng)
            runs += [each["key"] for each in reports if each.get("state") == "RUN"]
        expect_equal(len(set(runs)), len(runs), "the number of different keys that ran")
        expect(runs, "no process ran anything before it was killed")


def _kill_while_writing(harness: StoreHarness, number: int, rng: random.Random) -> list[worker.Report]:
    writer = harness.start_worker(worker.write, f"r{number}")
    writer.wait_for("ready")
    writer.proceed()
    # On a busy machine, a process may be killed before it reports anything; the first round waits.
    first = [] if number else [next(writer.reports())]
    time.sleep(rng.uniform(0.005, 0.15))
    return [*first, *writer.kill()]


def _kill_while_holding(harness: StoreHarness, key: str) -> None:
    _start_holder(harness, worker.hold, key).kill()


def _start_holder(harness: StoreHarness, action: Callable[..., Any], *keys: str) -> WorkerProcess:
    """Start a process that has claimed these keys."""
    holder = harness.start_worker(action, *keys)
    holder.wait_for("ready")
    holder.proceed()
    for _ in keys:
        expect_equal(holder.wait_for("state")["state"], "RUN", "the first claim()")
    return holder


def _kill_while_recording(harness: StoreHarness, keys: list[str], rng: random.Random) -> list[worker.Report]:
    recording = harness.start_worker(worker.record_and_wait, "p", *keys)
    recording.wait_for("ready")
    recording.proceed()
    first = recording.wait_for("state")
    time.sleep(rng.uniform(0, 0.01))
    return [first, *recording.kill()]


def _kill_while_claiming(
    harness: StoreHarness, keys: list[str], number: int, rng: random.Random
) -> list[worker.Report]:
    """Run two processes that claim the same keys in different orders, and kill both."""
    claiming = []
    for _ in range(2):
        order = rng.sample(keys, len(keys))
        claiming.append(harness.start_worker(worker.hold, *order))
    for each in claiming:
        each.wait_for("ready")
    for each in claiming:
        each.proceed()
    first = [] if number else [claiming[0].wait_for("state")]
    time.sleep(rng.uniform(0.005, 0.06))
    return [*first, *(report for each in claiming for report in each.kill())]


async def _check_acknowledged(store: Store, reports: list[worker.Report]) -> None:
    for report in reports:
        match report:
            case {"put": name}:
                expect_equal(
                    await store.get(f"kept/{name}"), name.encode(), f"get() of the acknowledged kept/{name}"
                )
            case {"claimed": name}:
                found = await _claim_after_death(store, f"open/{name}", b"")
                expect_equal(found, IN_DOUBT, f"claim() of the acknowledged open/{name}")
            case {"completed": name}:
                found = await store.claim(f"done/{name}", b"", ttl=600)
                expect_equal(found, done(name.encode()), f"claim() of the acknowledged done/{name}")
            case {"took": name}:
                expect_equal(await store.get(f"token/{name}"), None, f"get() of the taken token/{name}")
    log = await store.read("log", limit=1_000_000)
    expect_consecutive(log, len(log), "read() after the crash")
    values = {entry.id: entry.value.decode() for entry in log}
    lost = [each for each in reports if "id" in each and values.get(each["id"]) != each["value"]]
    if lost:
        fail_test(f"{len(lost)} acknowledged entries are lost or changed, the first is {lost[0]}")


async def _claim_after_death(store: Store, key: str, fingerprint: bytes | None = None) -> Claim:
    """Return the claim of a key once the death of its holder has been detected, or the time is up."""
    until = time.monotonic() + _DETECTION
    while True:
        found = await store.claim(key, key.encode() if fingerprint is None else fingerprint, ttl=600)
        if found.state is not ClaimState.RUNNING or time.monotonic() > until:
            return found
        await asyncio.sleep(0.05)

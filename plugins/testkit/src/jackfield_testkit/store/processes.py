"""Tests of several processes that share one store."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

from jackfield.store import ClaimState

from jackfield_testkit.store import worker
from jackfield_testkit.store.claims import RUNNING, done
from jackfield_testkit.store.harness import StoreHarness, async_test, expect_consecutive, follow
from jackfield_testkit.suite import expect, expect_equal

_PROCESSES = 3


class ProcessTests:
    """Several processes at one place; not applicable to a store that is not shared."""

    @async_test
    async def test_processes_share_the_same_time(self, harness: StoreHarness) -> None:
        """All processes have the same time."""
        async with harness.open() as store:
            before = store.now()
            (reported, _) = await asyncio.to_thread(harness.run_workers, [(worker.report_time,)])
            expect(
                before - 0.01 <= reported["now"] <= store.now() + 0.01, "another process has a different time"
            )

    @async_test
    async def test_one_of_many_processes_runs_a_call(self, harness: StoreHarness) -> None:
        """One process runs each call, and all processes get the same result."""
        keys, times = 40, 5
        reports = await asyncio.to_thread(
            harness.run_workers, [(worker.deliver, "call/", keys, times, f"p{n}") for n in range(_PROCESSES)]
        )
        check_deliveries(reports, keys, keys * times * _PROCESSES)

    @async_test
    async def test_one_of_many_processes_takes_a_value(self, harness: StoreHarness) -> None:
        """Only one of several processes takes a value."""
        tokens = [f"token/{number}" for number in range(50)]
        async with harness.open() as store:
            await asyncio.gather(*(store.put(token, b"x") for token in tokens))
            reports = await asyncio.to_thread(harness.run_workers, [(worker.take, *tokens)] * _PROCESSES)
            taken = Counter(each["took"] for each in reports if "took" in each)
            expect_equal(dict(taken), dict.fromkeys(tokens, 1), "how often each token was taken")
            expect_equal(await store.keys("token/"), [], "keys() after all tokens were taken")

    @async_test
    async def test_no_addition_of_a_process_is_lost(self, harness: StoreHarness) -> None:
        """Every addition of every process counts."""
        reports = await asyncio.to_thread(harness.run_workers, [(worker.add, "c", 50)] * _PROCESSES)
        sums = sorted(each["count"] for each in reports if "count" in each)
        expect_equal(sums, list(range(1, 50 * _PROCESSES + 1)), "what add() returned in all processes")

    @async_test
    async def test_entries_of_all_processes_are_consecutive(self, harness: StoreHarness) -> None:
        """Entries of all processes have consecutive ids, and a follower gets each of them once."""
        count = 100 * _PROCESSES
        async with harness.open() as store:
            following = asyncio.create_task(follow(store, "s", count, within=50))
            reports = await asyncio.to_thread(
                harness.run_workers, [(worker.append, "s", 100, f"p{n}") for n in range(_PROCESSES)]
            )
            appended = {each["id"]: each["value"].encode() for each in reports if "id" in each}
            expect_equal(sorted(appended), list(range(1, count + 1)), "the ids that append() returned")
            entries = await following
            expect_consecutive(entries, count, "follow()")
            expect_equal({entry.id: entry.value for entry in entries}, appended, "the values by id")

    @async_test
    async def test_outcome_waits_for_another_process(self, harness: StoreHarness) -> None:
        """`outcome` returns the result of another process soon after it is complete."""
        async with harness.open() as store:
            other = harness.start_worker(worker.finish, "k", "result", 0.5)
            await asyncio.to_thread(other.wait_for, "ready")
            other.proceed()
            await asyncio.to_thread(other.wait_for, "state")
            expect_equal(
                (await store.claim("k", b"k", ttl=600)).state,
                ClaimState.RUNNING,
                "claim() of another process's claim",
            )
            expect_equal(await store.complete("k", b"mine"), False, "complete() of another process's claim")
            await store.release("k")
            before = time.monotonic()
            expect_equal(
                await store.outcome("k", within=20), done(b"result"), "outcome() of another process's claim"
            )
            expect(time.monotonic() - before < 3, "outcome() took more than 3 s to notice another process")
            await asyncio.to_thread(other.finish)

    @async_test
    async def test_one_of_many_processes_records_the_outcome(self, harness: StoreHarness) -> None:
        """One of several processes records an outcome in one step, and the others get it."""
        keys = [f"call/{number}" for number in range(40)]
        reports = await asyncio.to_thread(
            harness.run_workers, [(worker.record, f"p{n}", *keys) for n in range(_PROCESSES)]
        )
        winners = {each["key"]: each["by"] for each in reports if each.get("state") == "RUN"}
        runs = sum(each.get("state") == "RUN" for each in reports)
        expect_equal((runs, sorted(winners)), (len(keys), sorted(keys)), "the number of recorded outcomes")
        results = {
            (each["key"], each["state"], each["result"])
            for each in reports
            if each.get("state") != "RUN" and "key" in each
        }
        expected = {(key, "DONE", f"{key} by {by}") for key, by in winners.items()}
        expect_equal(results, expected, "the results of the other processes")

    @async_test
    async def test_only_the_holding_process_can_end_a_claim(self, harness: StoreHarness) -> None:
        """In another process `holds` is false, and `abandon`, `release` and `complete` do nothing."""
        async with harness.open() as store:
            holder = harness.start_worker(worker.finish_on_request, "k")
            await asyncio.to_thread(holder.wait_for, "ready")
            holder.proceed()
            await asyncio.to_thread(holder.wait_for, "claimed_all")
            expect_equal(await store.holds("k"), False, "holds() of another process's claim")
            await store.abandon("k")
            await store.release("k")
            expect_equal(await store.complete("k", b"mine"), False, "complete() of another process's claim")
            expect_equal(
                await store.in_doubt(""), [], "in_doubt() after abandon() of another process's claim"
            )
            late = await store.claim("k", b"k", ttl=600, result=b"mine")
            expect_equal(late, RUNNING, "claim(result=) of another process's claim")
            holder.proceed()
            reported = await asyncio.to_thread(holder.wait_for, "completed")
            expect_equal(
                (reported["held"], reported["completed"]),
                (True, True),
                "holds() and complete() by the holder",
            )
            expect_equal(await store.claim("k", b"k", ttl=600), done(b"k, finished"), "claim() in the end")
            await asyncio.to_thread(holder.finish)


def check_deliveries(reports: list[worker.Report], keys: int, deliveries: int) -> None:
    """Fail the test unless every key ran once and every delivery got the same result."""
    runs = Counter(each["ran"] for each in reports if "ran" in each)
    twice = [key for key, count in runs.items() if count > 1]
    expect(not twice, f"keys that ran more than once: {twice[:10]}")
    expect_equal(len(runs), keys, "the number of keys that ran")
    answers = [each for each in reports if "result" in each]
    expect_equal(len(answers), deliveries, "the number of results")
    expect_equal({each["state"] for each in answers}, {"DONE"}, "the states of the deliveries")
    expect_equal(
        len({(each["key"], each["result"]) for each in answers}), keys, "the number of different results"
    )

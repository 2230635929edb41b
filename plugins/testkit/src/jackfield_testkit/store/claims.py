"""Tests of claims: one caller runs, the others get its result, and claims in doubt wait for a decision."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

from jackfield.store import Claim, ClaimState, DoubtfulClaim, Store

from jackfield_testkit.store.harness import StoreHarness, async_test
from jackfield_testkit.suite import expect, expect_equal, fail_test

_RACERS = 100
RUN, RUNNING = Claim(ClaimState.RUN), Claim(ClaimState.RUNNING)
CONFLICT, FREE = Claim(ClaimState.CONFLICT), Claim(ClaimState.FREE)
IN_DOUBT = Claim(ClaimState.IN_DOUBT)


def done(result: bytes) -> Claim:
    """Return the claim of a key that has this result."""
    return Claim(ClaimState.DONE, result)


class ClaimTests:
    """`claim`, `complete`, `release`, `reclaim` and `outcome` within one process."""

    @async_test
    async def test_first_claim_runs_and_all_get_its_result(self, harness: StoreHarness) -> None:
        """The first claim is RUN, others are RUNNING until it is completed, then all get the same bytes."""
        result = bytes(range(256))
        async with harness.open() as store:
            expect_equal(await store.claim("k", b"f", ttl=600), RUN, "the first claim()")
            expect_equal(await store.claim("k", b"f", ttl=600), RUNNING, "the second claim()")
            expect_equal(await store.complete("k", result), True, "complete() by the holder")
            for _ in range(3):
                expect_equal(await store.claim("k", b"f", ttl=600), done(result), "claim() after complete()")

    @async_test
    async def test_claim_without_durability_is_still_exclusive(self, harness: StoreHarness) -> None:
        """A claim that a power failure may lose still excludes all others."""
        async with harness.open() as store:
            expect_equal(await store.claim("k", b"f", ttl=600, durable=False), RUN, "claim(durable=False)")
            expect_equal(
                await store.claim("k", b"f", ttl=600), RUNNING, "claim() of a key claimed without durable"
            )
            expect_equal(await store.complete("k", b"r", durable=False), True, "complete(durable=False)")
            expect_equal(
                await store.claim("k", b"f", ttl=600), done(b"r"), "claim() after complete(durable=False)"
            )
            expect_equal(
                await store.claim("k", b"g", ttl=600, durable=False), CONFLICT, "another fingerprint"
            )

    @async_test
    async def test_empty_result_is_a_result(self, harness: StoreHarness) -> None:
        """An empty result differs from no result."""
        async with harness.open() as store:
            await store.claim("k", b"", ttl=600)
            await store.complete("k", b"")
            expect_equal(await store.claim("k", b"", ttl=600), done(b""), "claim() after an empty result")

    @async_test
    async def test_different_fingerprint_conflicts(self, harness: StoreHarness) -> None:
        """The same key with a different fingerprint is a CONFLICT, while the call runs and afterwards."""
        async with harness.open() as store:
            await store.claim("k", b"f", ttl=600)
            expect_equal(await store.claim("k", b"g", ttl=600), CONFLICT, "claim() with another fingerprint")
            await store.complete("k", b"r")
            expect_equal(
                await store.claim("k", b"g", ttl=600),
                CONFLICT,
                "claim() with another fingerprint after complete()",
            )
            expect_equal(await store.claim("k", b"f", ttl=600), done(b"r"), "claim() after a conflict")

    @async_test
    async def test_one_of_many_claims_runs(self, harness: StoreHarness) -> None:
        """One of many concurrent claims runs, and all others get its result."""
        async with harness.open() as store:

            async def deliver(number: int) -> tuple[bool, bytes | None]:
                found = await store.claim("k", b"f", ttl=600)
                ran = found.state is ClaimState.RUN
                if ran:
                    await asyncio.sleep(0.02)
                    await store.complete("k", b"by %d" % number)
                return ran, (await store.outcome("k", within=10)).result

            results = await asyncio.gather(*map(deliver, range(_RACERS)))
            runs = [number for number, (ran, _) in enumerate(results) if ran]
            expect(len(runs) == 1, f"{len(runs)} of {_RACERS} concurrent claims were RUN")
            expect_equal({result for _, result in results}, {b"by %d" % runs[0]}, "the results of the others")

    @async_test
    async def test_released_key_can_be_claimed_again(self, harness: StoreHarness) -> None:
        """After `release`, a key can be claimed with any fingerprint."""
        async with harness.open() as store:
            await store.claim("k", b"f", ttl=600)
            await store.release("k")
            expect_equal(await store.claim("k", b"g", ttl=600), RUN, "claim() after release()")
            await store.release("never claimed")

    @async_test
    async def test_result_is_final(self, harness: StoreHarness) -> None:
        """A completed claim cannot be replaced or released, and only a held claim can be completed."""
        async with harness.open() as store:
            expect_equal(await store.complete("k", b"r"), False, "complete() of a key that was never claimed")
            await store.claim("k", b"f", ttl=600)
            await store.complete("k", b"r")
            expect_equal(await store.complete("k", b"other"), False, "a second complete()")
            await store.release("k")
            expect_equal(await store.claim("k", b"f", ttl=600), done(b"r"), "claim() after a late release()")

    @async_test
    async def test_claims_expire(self, harness: StoreHarness) -> None:
        """After its time to live, a claim is removed with its result."""
        async with harness.open_timed() as (store, unit, advance):
            await store.claim("done", b"f", ttl=unit)
            await store.complete("done", b"r")
            await store.claim("running", b"f", ttl=unit)
            await advance(1.2)
            expect_equal(await store.complete("running", b"r"), False, "complete() after the time to live")
            for key in ("done", "running"):
                expect_equal(await store.outcome(key, within=0), FREE, "outcome() after the time to live")
                expect_equal(await store.claim(key, b"g", ttl=unit), RUN, "claim() after the time to live")
                expect_equal(
                    await store.claim(key, b"f", ttl=unit), CONFLICT, "claim() with the expired fingerprint"
                )

    @async_test
    async def test_claim_of_a_live_holder_cannot_be_reclaimed(self, harness: StoreHarness) -> None:
        """Only claims in doubt can be reclaimed."""
        async with harness.open() as store:
            expect_equal(await store.reclaim("k"), False, "reclaim() of a key that was never claimed")
            await store.claim("k", b"f", ttl=600)
            expect_equal(await store.reclaim("k"), False, "reclaim() while the holder is alive")
            await store.complete("k", b"r")
            expect_equal(await store.reclaim("k"), False, "reclaim() of a completed claim")
            expect_equal(
                await store.claim("k", b"f", ttl=600), done(b"r"), "claim() after a rejected reclaim()"
            )

    @async_test
    async def test_outcome_waits_for_the_result(self, harness: StoreHarness) -> None:
        """`outcome` returns soon after the claim ends, RUNNING after its time limit, and never RUN."""
        async with harness.open() as store:
            expect_equal(
                await store.outcome("k", within=0.05), FREE, "outcome() of a key that was never claimed"
            )
            await store.claim("k", b"f", ttl=600)
            before = time.monotonic()
            expect_equal(await store.outcome("k", within=0.2), RUNNING, "outcome() at its time limit")
            expect(0.15 < time.monotonic() - before < 5, "outcome() did not wait for its time limit")
            expect_equal(
                await outcome_during(store, store.complete("k", b"r")),
                done(b"r"),
                "outcome() after complete()",
            )
            await store.claim("other", b"f", ttl=600)
            expect_equal(
                await outcome_during(store, store.release("other"), "other"),
                FREE,
                "outcome() after release()",
            )

    @async_test
    async def test_cancelled_claim_is_not_held(self, harness: StoreHarness) -> None:
        """A claim that was cancelled before it returned is not held, so another claim can run."""
        async with harness.open() as store:
            tasks = [asyncio.create_task(store.claim(str(n), b"f", ttl=600)) for n in range(_RACERS)]
            for number, task in enumerate(tasks):
                if number % 10 == 0:
                    await asyncio.sleep(0.0005)
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            for number, result in enumerate(results):
                expected = RUNNING if isinstance(result, Claim) else RUN
                await _wait_for_claim(store, str(number), expected)


class DoubtTests:
    """`note`, `result`, `holds`, `abandon`, `in_doubt` and the `ttl` of `complete`."""

    @async_test
    async def test_claim_with_a_note_is_kept_until_it_has_a_result(self, harness: StoreHarness) -> None:
        """A claim with a note outlives its ttl and `prune` while it is running or in doubt."""
        async with harness.open_timed() as (store, unit, advance):
            for key in ("running", "doubtful"):
                await store.claim(key, b"f", ttl=unit, note=b"a note")
            await store.abandon("doubtful")
            await store.claim("plain", b"f", ttl=unit)
            await advance(1.2)
            await store.prune()
            expect_equal(await store.outcome("plain", within=0), FREE, "outcome() of a claim without a note")
            for key, state in (("running", RUNNING), ("doubtful", IN_DOUBT)):
                what = f"of a claim with a note that was {key} when its ttl passed"
                expect_equal(await store.outcome(key, within=0), state, f"outcome() {what}")
                expect_equal(await store.claim(key, b"f", ttl=unit), state, f"claim() {what}")
                expect_equal(
                    await store.claim(key, b"g", ttl=unit), CONFLICT, f"claim() with other bytes {what}"
                )
            listed = [DoubtfulClaim("doubtful", b"a note")]
            expect_equal(await store.in_doubt(""), listed, "in_doubt() after the ttl passed")
            expect_equal(
                await store.holds("running"), True, "holds() after the ttl of a claim with a note passed"
            )
            expect_equal(await store.reclaim("doubtful"), True, "reclaim() after the ttl passed")
            expect_equal(await store.complete("doubtful", b"r", ttl=unit), True, "complete() after reclaim()")
            expect_equal(
                await store.complete("running", b"r", ttl=unit), True, "complete() after the ttl passed"
            )
            for key in ("running", "doubtful"):
                expect_equal(
                    await store.claim(key, b"f", ttl=unit), done(b"r"), "claim() after complete(ttl=)"
                )

    @async_test
    async def test_claim_with_a_note_and_a_result_expires(self, harness: StoreHarness) -> None:
        """Once it has a result, a claim with a note is removed after its ttl."""
        async with harness.open_timed() as (store, unit, advance):
            for key in ("in time", "late"):
                await store.claim(key, b"f", ttl=unit, note=b"n")
            await store.complete("in time", b"r")
            await store.claim("at once", b"f", ttl=unit, note=b"n", result=b"r")
            expect_equal(
                await store.claim("in time", b"f", ttl=unit), done(b"r"), "claim() before the ttl passed"
            )
            await advance(1.2)
            expect_equal(await store.complete("late", b"r"), True, "complete() after the ttl passed")
            for key in ("in time", "late", "at once"):
                expect_equal(await store.outcome(key, within=0), FREE, f"outcome() of {key!r} after its ttl")
                expect_equal(await store.claim(key, b"g", ttl=unit), RUN, f"claim() of {key!r} after its ttl")

    @async_test
    async def test_result_can_have_its_own_ttl(self, harness: StoreHarness) -> None:
        """`complete(ttl=)` counts from the result; without it the ttl of the claim applies."""
        async with harness.open_timed() as (store, unit, advance):
            for key, ttl in (("extended", unit), ("not extended", unit), ("shortened", unit * 100)):
                await store.claim(key, b"f", ttl=ttl)
            await advance(0.6)
            expect_equal(await store.complete("extended", b"r", ttl=unit), True, "complete(ttl=)")
            await store.complete("not extended", b"r")
            await store.complete("shortened", b"r", ttl=unit * 0.5)
            await advance(0.6)
            expect_equal(
                await store.outcome("extended", within=0), done(b"r"), "outcome() within the new ttl"
            )
            expect_equal(
                await store.outcome("not extended", within=0), FREE, "outcome() after the claim's ttl"
            )
            expect_equal(
                await store.outcome("shortened", within=0), FREE, "outcome() after a shorter new ttl"
            )
            await advance(0.6)
            expect_equal(await store.outcome("extended", within=0), FREE, "outcome() after the new ttl")

    @async_test
    async def test_outcome_can_be_recorded_in_one_step(self, harness: StoreHarness) -> None:
        """`claim(result=)` records an outcome without a holder, unless the key is claimed."""
        async with harness.open() as store:
            for key, result in (("k", b"r"), ("empty", b"")):
                what = f"claim(result={result!r})"
                expect_equal(await store.claim(key, b"f", ttl=600, result=result), RUN, f"the first {what}")
                expect_equal(await store.holds(key), False, f"holds() after {what}")
                expect_equal(await store.complete(key, b"other"), False, f"complete() after {what}")
                await store.release(key)
                await store.abandon(key)
                expect_equal(await store.reclaim(key), False, f"reclaim() after {what}")
                expect_equal(await store.claim(key, b"f", ttl=600), done(result), f"claim() after {what}")
                expect_equal(
                    await store.claim(key, b"f", ttl=600, result=b"late"),
                    done(result),
                    "a later claim(result=)",
                )
                expect_equal(await store.outcome(key, within=0), done(result), f"outcome() after {what}")
                expect_equal(
                    await store.claim(key, b"g", ttl=600, result=b"late"), CONFLICT, "another fingerprint"
                )
            expect_equal(await store.in_doubt(""), [], "in_doubt() after outcomes were recorded")
            await store.claim("running", b"f", ttl=600)
            late = await store.claim("running", b"f", ttl=600, result=b"late")
            expect_equal(late, RUNNING, "claim(result=) of a running claim")
            expect_equal(
                await store.complete("running", b"r"), True, "complete() after a rejected claim(result=)"
            )

    @async_test
    async def test_first_of_many_recorded_outcomes_wins(self, harness: StoreHarness) -> None:
        """One of many concurrent recordings succeeds, and the others get its result."""
        async with harness.open() as store:
            found = await asyncio.gather(
                *(store.claim("k", b"f", ttl=600, result=b"%d" % number) for number in range(_RACERS))
            )
            first = [number for number, each in enumerate(found) if each.state is ClaimState.RUN]
            expect(len(first) == 1, f"{len(first)} of {_RACERS} concurrent claim(result=) succeeded")
            others = {each for number, each in enumerate(found) if number != first[0]}
            expect_equal(others, {done(b"%d" % first[0])}, "the results of the others")

    @async_test
    async def test_holds_is_true_for_the_holder_only(self, harness: StoreHarness) -> None:
        """`holds` is true from `claim` or `reclaim` to the end of the claim, and at no other time."""
        async with harness.open_timed() as (store, unit, advance):
            expect_equal(await store.holds("k"), False, "holds() of a key that was never claimed")
            for end, what in ((store.release("k"), "release()"), (store.complete("k", b"r"), "complete()")):
                await store.claim("k", b"f", ttl=unit * 100)
                expect_equal(await store.holds("k"), True, "holds() after claim()")
                await end
                expect_equal(await store.holds("k"), False, f"holds() after {what}")
            await store.claim("abandoned", b"f", ttl=unit * 100)
            await store.abandon("abandoned")
            expect_equal(await store.holds("abandoned"), False, "holds() after abandon()")
            await store.reclaim("abandoned")
            expect_equal(await store.holds("abandoned"), True, "holds() after reclaim()")
            await store.claim("short", b"f", ttl=unit)
            await advance(1.2)
            expect_equal(await store.holds("short"), False, "holds() after the ttl of a claim without a note")

    @async_test
    async def test_abandoned_claim_is_in_doubt(self, harness: StoreHarness) -> None:
        """`abandon` puts a held claim in doubt for everyone, and one of many `reclaim` calls succeeds."""
        async with harness.open() as store:
            await store.abandon("k")
            expect_equal(await store.outcome("k", within=0), FREE, "outcome() after abandon() of no claim")
            expect_equal(await store.claim("k", b"f", ttl=600), RUN, "claim() after abandon() of no claim")
            expect_equal(await store.outcome("k", within=0), RUNNING, "outcome() after claim()")
            expect_equal(
                await outcome_during(store, store.abandon("k")), IN_DOUBT, "outcome() after abandon()"
            )
            expect_equal(await store.claim("k", b"f", ttl=600), IN_DOUBT, "claim() after abandon()")
            expect_equal(
                await store.claim("k", b"g", ttl=600), CONFLICT, "another fingerprint after abandon()"
            )
            expect_equal(await store.complete("k", b"r"), False, "complete() after abandon()")
            await store.release("k")
            expect_equal(await store.claim("k", b"f", ttl=600), IN_DOUBT, "claim() after a late release()")
            won = await asyncio.gather(*(store.reclaim("k") for _ in range(_RACERS)))
            expect_equal(sum(won), 1, f"the number of {_RACERS} concurrent reclaim() that succeeded")
            expect_equal(await store.claim("k", b"f", ttl=600), RUNNING, "claim() after reclaim()")
            expect_equal(await store.complete("k", b"r"), True, "complete() after reclaim()")
            await store.abandon("k")
            expect_equal(
                await store.claim("k", b"f", ttl=600),
                done(b"r"),
                "claim() after abandon() of a completed claim",
            )

    @async_test
    async def test_abandoned_claim_without_a_note_expires(self, harness: StoreHarness) -> None:
        """After its ttl, such a claim is removed: its key can be claimed again and cannot be reclaimed."""
        async with harness.open_timed() as (store, unit, advance):
            for key in ("reclaimed", "claimed"):
                await store.claim(key, b"f", ttl=unit)
                await store.abandon(key)
            await advance(1.2)
            expect_equal(await store.reclaim("reclaimed"), False, "reclaim() after the ttl")
            for key in ("reclaimed", "claimed"):
                expect_equal(
                    await store.outcome(key, within=0), FREE, "outcome() of an abandoned claim after its ttl"
                )
                expect_equal(
                    await store.claim(key, b"g", ttl=unit), RUN, "claim() of an abandoned claim after its ttl"
                )
                expect_equal(await store.holds(key), True, "holds() after claiming it again")

    @async_test
    async def test_claims_in_doubt_are_listed(self, harness: StoreHarness) -> None:
        """`in_doubt` lists abandoned claims with a note by prefix, sorted, until they are settled."""
        keys = ["a/1", "a/2", "a%", "a_", "a*", "a\x00b", "aa", "A", "ä", "\U0010ffff", ""]
        note = bytes(range(256))
        async with harness.open() as store:
            for key in reversed(keys):
                await store.claim(key, b"f", ttl=600, note=note)
            await store.claim("a/without a note", b"f", ttl=600)
            expect_equal(await store.in_doubt(""), [], "in_doubt() while the holder is alive")
            for key in [*keys, "a/without a note"]:
                await store.abandon(key)
            await store.claim("a/running", b"f", ttl=600, note=note)
            for prefix in (*keys, "a", "a/", "a\x00", "b", "%", "_", "*", "a/1/"):
                matching = sorted(key for key in keys if key.startswith(prefix))
                expected = [DoubtfulClaim(key, note) for key in matching]
                expect_equal(await store.in_doubt(prefix), expected, f"in_doubt({prefix!r})")
            expect_equal(await store.reclaim("a/1"), True, "reclaim() of a listed claim")
            expect_equal(
                await store.in_doubt("a/"), [DoubtfulClaim("a/2", note)], "in_doubt() after reclaim()"
            )
            await store.abandon("a/1")
            listed = [DoubtfulClaim("a/1", note), DoubtfulClaim("a/2", note)]
            expect_equal(await store.in_doubt("a/"), listed, "in_doubt() after the next holder abandoned it")
            for key, end in (("a/1", store.complete("a/1", b"r")), ("a/2", store.release("a/2"))):
                await store.reclaim(key)
                await end
            expect_equal(await store.in_doubt("a/"), [], "in_doubt() after complete() and release()")


async def outcome_during(store: Store, action: Awaitable[object], key: str = "k") -> Claim:
    """Return the outcome that waiting callers get while something happens to a claim."""
    waiting = [asyncio.create_task(store.outcome(key, within=5)) for _ in range(10)]
    await asyncio.sleep(0.1)
    before = time.monotonic()
    await action
    found = await asyncio.gather(*waiting)
    expect(time.monotonic() - before < 2, "outcome() took more than 2 s to return")
    expect_equal(len(set(found)), 1, "the number of different outcomes")
    return found[0]


async def _wait_for_claim(store: Store, key: str, expected: Claim) -> None:
    """Wait for the expected claim; a cancelled claim may be released with a short delay."""
    for _ in range(200):
        found = await store.claim(key, b"f", ttl=600)
        if found == expected:
            return
        await asyncio.sleep(0.01)
    fail_test(
        f"claim({key!r}) returned {found.state.name} after a claim that was cancelled before it returned"
    )

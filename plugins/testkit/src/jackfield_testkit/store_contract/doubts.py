"""Claims that a person has to settle: notes, holders, abandoned claims, and outcomes recorded in one step."""

from __future__ import annotations

import asyncio

from jackfield.store import Claim, ClaimState, Doubt

from jackfield_testkit.store_contract.claims import CONFLICT, FREE, RUN, RUNNING, done, meanwhile
from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.store_contract.world import World, on_a_loop

_RACERS = 100
IN_DOUBT = Claim(ClaimState.IN_DOUBT)


class DoubtTests:
    """What `note`, `result`, `holds`, `abandon`, `in_doubt` and the `ttl` of `complete` promise."""

    @on_a_loop
    async def test_a_noted_claim_is_kept_until_it_has_a_result(self, world: World) -> None:
        """A claim with a note outlives its ttl and `prune` while it is running or in doubt."""
        async with world.timed() as (store, unit, let_pass):
            for key in ("running", "doubtful"):
                await store.claim(key, b"f", ttl=unit, note=b"what it is about")
            await store.abandon("doubtful")
            await store.claim("plain", b"f", ttl=unit)
            await let_pass(1.2)
            await store.prune()
            same(await store.outcome("plain", within=0), FREE, "outcome() of a claim without a note")
            for key, state in (("running", RUNNING), ("doubtful", IN_DOUBT)):
                what = f"of a claim with a note that was {key} when its ttl passed"
                same(await store.outcome(key, within=0), state, f"outcome() {what}")
                same(await store.claim(key, b"f", ttl=unit), state, f"claim() {what}")
                same(await store.claim(key, b"g", ttl=unit), CONFLICT, f"claim() with other bytes {what}")
            listed = [Doubt("doubtful", b"what it is about")]
            same(await store.in_doubt(""), listed, "in_doubt() after the ttl passed")
            same(await store.holds("running"), True, "holds() after the ttl of a claim with a note passed")
            same(await store.reclaim("doubtful"), True, "reclaim() after the ttl passed")
            same(await store.complete("doubtful", b"r", ttl=unit), True, "complete() of the same")
            same(await store.complete("running", b"r", ttl=unit), True, "complete() after the ttl passed")
            for key in ("running", "doubtful"):
                same(await store.claim(key, b"f", ttl=unit), done(b"r"), "claim() after complete(ttl=)")

    @on_a_loop
    async def test_a_noted_claim_with_a_result_expires(self, world: World) -> None:
        """Once it has a result, a claim with a note is forgotten when its ttl has passed."""
        async with world.timed() as (store, unit, let_pass):
            for key in ("in time", "late"):
                await store.claim(key, b"f", ttl=unit, note=b"n")
            await store.complete("in time", b"r")
            await store.claim("at once", b"f", ttl=unit, note=b"n", result=b"r")
            same(await store.claim("in time", b"f", ttl=unit), done(b"r"), "claim() before the ttl passed")
            await let_pass(1.2)
            same(await store.complete("late", b"r"), True, "complete() after the ttl passed")
            for key in ("in time", "late", "at once"):
                same(await store.outcome(key, within=0), FREE, f"outcome() of {key!r} after its ttl")
                same(await store.claim(key, b"g", ttl=unit), RUN, f"claim() of {key!r} after its ttl")

    @on_a_loop
    async def test_a_result_can_be_given_a_new_ttl(self, world: World) -> None:
        """`complete(ttl=)` counts from the moment of the result; without it the claim's own ttl holds."""
        async with world.timed() as (store, unit, let_pass):
            for key, ttl in (("extended", unit), ("not extended", unit), ("shortened", unit * 100)):
                await store.claim(key, b"f", ttl=ttl)
            await let_pass(0.6)
            same(await store.complete("extended", b"r", ttl=unit), True, "complete(ttl=)")
            await store.complete("not extended", b"r")
            await store.complete("shortened", b"r", ttl=unit * 0.5)
            await let_pass(0.6)
            same(await store.outcome("extended", within=0), done(b"r"), "outcome() within the new ttl")
            same(await store.outcome("not extended", within=0), FREE, "outcome() after the claim's ttl")
            same(await store.outcome("shortened", within=0), FREE, "outcome() after a shorter new ttl")
            await let_pass(0.6)
            same(await store.outcome("extended", within=0), FREE, "outcome() after the new ttl")

    @on_a_loop
    async def test_an_outcome_is_recorded_in_one_step(self, world: World) -> None:
        """`claim(result=)` records an outcome of which nobody is the holder, unless there is a claim."""
        async with world.store() as store:
            for key, result in (("k", b"r"), ("empty", b"")):
                what = f"claim(result={result!r})"
                same(await store.claim(key, b"f", ttl=600, result=result), RUN, f"the first {what}")
                same(await store.holds(key), False, f"holds() after {what}")
                same(await store.complete(key, b"other"), False, f"complete() after {what}")
                await store.release(key)
                await store.abandon(key)
                same(await store.reclaim(key), False, f"reclaim() after {what}")
                same(await store.claim(key, b"f", ttl=600), done(result), f"claim() after {what}")
                same(
                    await store.claim(key, b"f", ttl=600, result=b"late"),
                    done(result),
                    "a later one's answer",
                )
                same(await store.outcome(key, within=0), done(result), f"outcome() after {what}")
                same(await store.claim(key, b"g", ttl=600, result=b"late"), CONFLICT, "another fingerprint")
            same(await store.in_doubt(""), [], "in_doubt() after outcomes were recorded")
            await store.claim("running", b"f", ttl=600)
            late = await store.claim("running", b"f", ttl=600, result=b"late")
            same(late, RUNNING, "claim(result=) of what somebody is running")
            same(await store.complete("running", b"r"), True, "complete() after somebody's claim(result=)")

    @on_a_loop
    async def test_of_many_outcomes_the_first_counts(self, world: World) -> None:
        """Of many who record an outcome at the same time one succeeds, and the others get its bytes."""
        async with world.store() as store:
            found = await asyncio.gather(
                *(store.claim("k", b"f", ttl=600, result=b"%d" % number) for number in range(_RACERS))
            )
            first = [number for number, each in enumerate(found) if each.state is ClaimState.RUN]
            holds(len(first) == 1, f"of {_RACERS} simultaneous claim(result=) {len(first)} were the first")
            others = {each for number, each in enumerate(found) if number != first[0]}
            same(others, {done(b"%d" % first[0])}, "what the others were told")

    @on_a_loop
    async def test_a_holder_is_told_that_it_holds(self, world: World) -> None:
        """`holds` is true from the claim, or from taking it over, to its end, and at no other time."""
        async with world.timed() as (store, unit, let_pass):
            same(await store.holds("k"), False, "holds() of what was never claimed")
            for end, what in ((store.release("k"), "release()"), (store.complete("k", b"r"), "complete()")):
                await store.claim("k", b"f", ttl=unit * 100)
                same(await store.holds("k"), True, "holds() after claim()")
                await end
                same(await store.holds("k"), False, f"holds() after {what}")
            await store.claim("abandoned", b"f", ttl=unit * 100)
            await store.abandon("abandoned")
            same(await store.holds("abandoned"), False, "holds() after abandon()")
            await store.reclaim("abandoned")
            same(await store.holds("abandoned"), True, "holds() after reclaim()")
            await store.claim("short", b"f", ttl=unit)
            await let_pass(1.2)
            same(await store.holds("short"), False, "holds() after the ttl of a claim without a note")

    @on_a_loop
    async def test_an_abandoned_claim_is_in_doubt(self, world: World) -> None:
        """`abandon` puts a held claim in doubt for everyone; one of those who try takes it over."""
        async with world.store() as store:
            await store.abandon("k")
            same(await store.outcome("k", within=0), FREE, "outcome() after abandon() of no claim")
            same(await store.claim("k", b"f", ttl=600), RUN, "claim() after abandon() of no claim")
            same(await store.outcome("k", within=0), RUNNING, "outcome() of the same")
            same(await meanwhile(store, store.abandon("k")), IN_DOUBT, "outcome() after abandon()")
            same(await store.claim("k", b"f", ttl=600), IN_DOUBT, "claim() after abandon()")
            same(await store.claim("k", b"g", ttl=600), CONFLICT, "another fingerprint after abandon()")
            same(await store.complete("k", b"r"), False, "complete() after abandon()")
            await store.release("k")
            same(await store.claim("k", b"f", ttl=600), IN_DOUBT, "claim() after a late release()")
            won = await asyncio.gather(*(store.reclaim("k") for _ in range(_RACERS)))
            same(sum(won), 1, f"how many of {_RACERS} simultaneous reclaim() succeeded")
            same(await store.claim("k", b"f", ttl=600), RUNNING, "claim() after reclaim()")
            same(await store.complete("k", b"r"), True, "complete() by the one who took over")
            await store.abandon("k")
            same(await store.claim("k", b"f", ttl=600), done(b"r"), "claim() after abandon() of what is done")

    @on_a_loop
    async def test_an_abandoned_claim_without_a_note_expires(self, world: World) -> None:
        """After its ttl it is forgotten: it can be claimed anew, and no longer be taken over."""
        async with world.timed() as (store, unit, let_pass):
            for key in ("reclaimed", "claimed"):
                await store.claim(key, b"f", ttl=unit)
                await store.abandon(key)
            await let_pass(1.2)
            same(await store.reclaim("reclaimed"), False, "reclaim() after the ttl")
            for key in ("reclaimed", "claimed"):
                same(
                    await store.outcome(key, within=0), FREE, "outcome() of an abandoned claim after its ttl"
                )
                same(await store.claim(key, b"g", ttl=unit), RUN, "claim() of the same")
                same(await store.holds(key), True, "holds() of the same")

    @on_a_loop
    async def test_claims_in_doubt_are_listed(self, world: World) -> None:
        """`in_doubt` lists abandoned claims with a note by prefix, sorted, until they are settled."""
        keys = ["a/1", "a/2", "a%", "a_", "a*", "a\x00b", "aa", "A", "ä", "\U0010ffff", ""]
        note = bytes(range(256))
        async with world.store() as store:
            for key in reversed(keys):
                await store.claim(key, b"f", ttl=600, note=note)
            await store.claim("a/without a note", b"f", ttl=600)
            same(await store.in_doubt(""), [], "in_doubt() while the holder lives")
            for key in [*keys, "a/without a note"]:
                await store.abandon(key)
            await store.claim("a/running", b"f", ttl=600, note=note)
            for prefix in (*keys, "a", "a/", "a\x00", "b", "%", "_", "*", "a/1/"):
                begun = sorted(key for key in keys if key.startswith(prefix))
                expected = [Doubt(key, note) for key in begun]
                same(await store.in_doubt(prefix), expected, f"in_doubt({prefix!r})")
            same(await store.reclaim("a/1"), True, "reclaim() of a listed claim")
            same(await store.in_doubt("a/"), [Doubt("a/2", note)], "in_doubt() after reclaim()")
            await store.abandon("a/1")
            listed = [Doubt("a/1", note), Doubt("a/2", note)]
            same(await store.in_doubt("a/"), listed, "in_doubt() after the next holder abandoned it")
            for key, end in (("a/1", store.complete("a/1", b"r")), ("a/2", store.release("a/2"))):
                await store.reclaim(key)
                await end
            same(await store.in_doubt("a/"), [], "in_doubt() after complete() and release()")

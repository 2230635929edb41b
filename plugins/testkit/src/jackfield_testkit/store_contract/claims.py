"""Claims: one runs, the others learn what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

from jackfield.store import Claim, ClaimState, Store

from jackfield_testkit.store_contract.verdict import give_up, holds, same
from jackfield_testkit.store_contract.world import World, on_a_loop

_RACERS = 100
RUN, RUNNING = Claim(ClaimState.RUN), Claim(ClaimState.RUNNING)
CONFLICT, FREE = Claim(ClaimState.CONFLICT), Claim(ClaimState.FREE)


def done(result: bytes) -> Claim:
    """The answer that carries a result."""
    return Claim(ClaimState.DONE, result)


class ClaimTests:
    """What `claim`, `complete`, `release`, `reclaim` and `outcome` promise within one process."""

    @on_a_loop
    async def test_the_first_runs_and_all_get_its_result(self, world: World) -> None:
        """RUN once, RUNNING until it is completed, then the same bytes for ever."""
        result = bytes(range(256))
        async with world.store() as store:
            same(await store.claim("k", b"f", ttl=600), RUN, "the first claim()")
            same(await store.claim("k", b"f", ttl=600), RUNNING, "the second claim()")
            same(await store.complete("k", result), True, "complete() by the holder")
            for _ in range(3):
                same(await store.claim("k", b"f", ttl=600), done(result), "claim() after complete()")

    @on_a_loop
    async def test_a_claim_that_need_not_be_durable_is_still_a_claim(self, world: World) -> None:
        """What a power cut may take is held against everybody else all the same."""
        async with world.store() as store:
            same(await store.claim("k", b"f", ttl=600, durable=False), RUN, "claim(durable=False)")
            same(await store.claim("k", b"f", ttl=600), RUNNING, "claim() of a key claimed without durable")
            same(await store.complete("k", b"r", durable=False), True, "complete(durable=False)")
            same(await store.claim("k", b"f", ttl=600), done(b"r"), "claim() after complete(durable=False)")
            same(await store.claim("k", b"g", ttl=600, durable=False), CONFLICT, "another fingerprint")

    @on_a_loop
    async def test_an_empty_result_is_a_result(self, world: World) -> None:
        """No bytes are not the same as no result."""
        async with world.store() as store:
            await store.claim("k", b"", ttl=600)
            await store.complete("k", b"")
            same(await store.claim("k", b"", ttl=600), done(b""), "claim() after an empty result")

    @on_a_loop
    async def test_another_fingerprint_conflicts(self, world: World) -> None:
        """The same key for something else is refused, while it runs and after."""
        async with world.store() as store:
            await store.claim("k", b"f", ttl=600)
            same(await store.claim("k", b"g", ttl=600), CONFLICT, "claim() with another fingerprint")
            await store.complete("k", b"r")
            same(await store.claim("k", b"g", ttl=600), CONFLICT, "claim() with another fingerprint, later")
            same(await store.claim("k", b"f", ttl=600), done(b"r"), "claim() after somebody else's conflict")

    @on_a_loop
    async def test_one_of_many_runs(self, world: World) -> None:
        """Of many who claim at the same time one runs, and all others get its very bytes."""
        async with world.store() as store:

            async def deliver(number: int) -> tuple[bool, bytes | None]:
                found = await store.claim("k", b"f", ttl=600)
                ran = found.state is ClaimState.RUN
                if ran:
                    await asyncio.sleep(0.02)
                    await store.complete("k", b"by %d" % number)
                return ran, (await store.outcome("k", within=10)).result

            ended = await asyncio.gather(*map(deliver, range(_RACERS)))
            runs = [number for number, (ran, _) in enumerate(ended) if ran]
            holds(len(runs) == 1, f"of {_RACERS} simultaneous claims {len(runs)} were told to run")
            same({result for _, result in ended}, {b"by %d" % runs[0]}, "what the others got as the result")

    @on_a_loop
    async def test_released_is_as_if_never_claimed(self, world: World) -> None:
        """A claim that was given up can be made by the next one, with any fingerprint."""
        async with world.store() as store:
            await store.claim("k", b"f", ttl=600)
            await store.release("k")
            same(await store.claim("k", b"g", ttl=600), RUN, "claim() after release()")
            await store.release("never claimed")

    @on_a_loop
    async def test_a_result_is_final(self, world: World) -> None:
        """What was completed is neither replaced nor released, and nobody completes what is not held."""
        async with world.store() as store:
            same(await store.complete("k", b"r"), False, "complete() of what was never claimed")
            await store.claim("k", b"f", ttl=600)
            await store.complete("k", b"r")
            same(await store.complete("k", b"other"), False, "a second complete()")
            await store.release("k")
            same(await store.claim("k", b"f", ttl=600), done(b"r"), "claim() after a late release()")

    @on_a_loop
    async def test_claims_expire(self, world: World) -> None:
        """After its time to live a claim is forgotten, with its result."""
        async with world.timed() as (store, unit, let_pass):
            await store.claim("done", b"f", ttl=unit)
            await store.complete("done", b"r")
            await store.claim("running", b"f", ttl=unit)
            await let_pass(1.2)
            same(await store.complete("running", b"r"), False, "complete() after the time to live")
            for key in ("done", "running"):
                same(await store.outcome(key, within=0), FREE, "outcome() after the time to live")
                same(await store.claim(key, b"g", ttl=unit), RUN, "claim() after the time to live")
                same(
                    await store.claim(key, b"f", ttl=unit), CONFLICT, "claim() with the forgotten fingerprint"
                )

    @on_a_loop
    async def test_who_lives_cannot_be_dispossessed(self, world: World) -> None:
        """Only what is in doubt can be taken over."""
        async with world.store() as store:
            same(await store.reclaim("k"), False, "reclaim() of what was never claimed")
            await store.claim("k", b"f", ttl=600)
            same(await store.reclaim("k"), False, "reclaim() while the holder lives")
            await store.complete("k", b"r")
            same(await store.reclaim("k"), False, "reclaim() of what is done")
            same(await store.claim("k", b"f", ttl=600), done(b"r"), "claim() after reclaim() was refused")

    @on_a_loop
    async def test_outcome_waits(self, world: World) -> None:
        """Whoever waits is told soon after the end, RUNNING when that is too far off, and never RUN."""
        async with world.store() as store:
            same(await store.outcome("k", within=0.05), FREE, "outcome() of what was never claimed")
            await store.claim("k", b"f", ttl=600)
            before = time.monotonic()
            same(await store.outcome("k", within=0.2), RUNNING, "outcome() when nothing happens")
            holds(0.15 < time.monotonic() - before < 5, "outcome() did not wait as long as it was told to")
            same(await meanwhile(store, store.complete("k", b"r")), done(b"r"), "outcome() after complete()")
            await store.claim("other", b"f", ttl=600)
            same(await meanwhile(store, store.release("other"), "other"), FREE, "outcome() after release()")

    @on_a_loop
    async def test_a_cancelled_claim_holds_nothing(self, world: World) -> None:
        """Whoever is cancelled while claiming was not told to run, so somebody else must be able to."""
        async with world.store() as store:
            tasks = [asyncio.create_task(store.claim(str(n), b"f", ttl=600)) for n in range(_RACERS)]
            for number, task in enumerate(tasks):
                if number % 10 == 0:
                    await asyncio.sleep(0.0005)
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            for number, end in enumerate(ended):
                expected = RUNNING if isinstance(end, Claim) else RUN
                await _until_claimed(store, str(number), expected)


async def meanwhile(store: Store, act: Awaitable[object], key: str = "k") -> Claim:
    """What those are told who wait for a claim while something is done about it."""
    waiting = [asyncio.create_task(store.outcome(key, within=5)) for _ in range(10)]
    await asyncio.sleep(0.1)
    before = time.monotonic()
    await act
    found = await asyncio.gather(*waiting)
    holds(time.monotonic() - before < 2, "outcome() took more than 2 s to notice the end")
    same(len(set(found)), 1, "how many answers those got who waited together")
    return found[0]


async def _until_claimed(store: Store, key: str, expected: Claim) -> None:
    """Letting go may take a moment; holding on for ever is the fault."""
    for _ in range(200):
        found = await store.claim(key, b"f", ttl=600)
        if found == expected:
            return
        await asyncio.sleep(0.01)
    give_up(
        f"claim({key!r}) gives {found.state.name} after a claim that was cancelled before it was answered"
    )

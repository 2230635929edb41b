"""Several processes on one place are one store."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

from jackfield.store import ClaimState

from jackfield_testkit.store_contract import child
from jackfield_testkit.store_contract.claims import RUNNING, done
from jackfield_testkit.store_contract.streams import check_whole, follow
from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.store_contract.world import World, on_a_loop

_PROCESSES = 3


class ProcessTests:
    """What holds between processes; not applicable to a store that is not shared."""

    @on_a_loop
    async def test_the_time_is_the_same_for_all(self, world: World) -> None:
        """Every process tells the same time."""
        async with world.store() as store:
            before = store.now()
            (said, _) = await asyncio.to_thread(world.together, [(child.tell_time,)])
            holds(before - 0.01 <= said["now"] <= store.now() + 0.01, "another process tells another time")

    @on_a_loop
    async def test_one_process_runs(self, world: World) -> None:
        """Whoever delivers what, one runs it, and all get identical bytes."""
        keys, times = 40, 5
        said = await asyncio.to_thread(
            world.together, [(child.deliver, "call/", keys, times, f"p{n}") for n in range(_PROCESSES)]
        )
        check_deliveries(said, keys, keys * times * _PROCESSES)

    @on_a_loop
    async def test_one_process_takes(self, world: World) -> None:
        """A token that several processes take at once is taken once."""
        tokens = [f"token/{number}" for number in range(50)]
        async with world.store() as store:
            await asyncio.gather(*(store.put(token, b"x") for token in tokens))
            said = await asyncio.to_thread(world.together, [(child.take, *tokens)] * _PROCESSES)
            took = Counter(each["took"] for each in said if "took" in each)
            same(dict(took), dict.fromkeys(tokens, 1), "how often each token was taken")
            same(await store.keys("token/"), [], "keys() after all tokens were taken")

    @on_a_loop
    async def test_no_addition_is_lost_between_processes(self, world: World) -> None:
        """Every addition of every process counts."""
        said = await asyncio.to_thread(world.together, [(child.add, "c", 50)] * _PROCESSES)
        sums = sorted(each["count"] for each in said if "count" in each)
        same(sums, list(range(1, 50 * _PROCESSES + 1)), "what add() returned in all processes")

    @on_a_loop
    async def test_appending_and_following_between_processes(self, world: World) -> None:
        """Ids have no gap whoever appends, and whoever follows misses nothing and gets nothing twice."""
        count = 100 * _PROCESSES
        async with world.store() as store:
            following = asyncio.create_task(follow(store, "s", count, within=50))
            said = await asyncio.to_thread(
                world.together, [(child.append, "s", 100, f"p{n}") for n in range(_PROCESSES)]
            )
            appended = {each["id"]: each["value"].encode() for each in said if "id" in each}
            same(sorted(appended), list(range(1, count + 1)), "the ids that append() returned")
            entries = await following
            check_whole(entries, count, "follow()")
            same({entry.id: entry.value for entry in entries}, appended, "what stands under the ids")

    @on_a_loop
    async def test_waiting_for_another_process(self, world: World) -> None:
        """Whoever waits for the claim of another process gets its result soon after it is there."""
        async with world.store() as store:
            other = world.start(child.finish, "k", "result", 0.5)
            await asyncio.to_thread(other.hear, "ready")
            other.go()
            await asyncio.to_thread(other.hear, "state")
            same((await store.claim("k", b"k", ttl=600)).state, ClaimState.RUNNING, "claim() of another's")
            same(await store.complete("k", b"mine"), False, "complete() of another's claim")
            await store.release("k")
            before = time.monotonic()
            same(await store.outcome("k", within=20), done(b"result"), "outcome() of another's claim")
            holds(time.monotonic() - before < 3, "outcome() took more than 2 s to notice another process")
            await asyncio.to_thread(other.rest)

    @on_a_loop
    async def test_one_process_records_the_outcome(self, world: World) -> None:
        """Of several processes that record an outcome in one step one succeeds; the others get its bytes."""
        keys = [f"call/{number}" for number in range(40)]
        said = await asyncio.to_thread(
            world.together, [(child.record, f"p{n}", *keys) for n in range(_PROCESSES)]
        )
        firsts = {each["key"]: each["by"] for each in said if each.get("state") == "RUN"}
        runs = sum(each.get("state") == "RUN" for each in said)
        same((runs, sorted(firsts)), (len(keys), sorted(keys)), "how often an outcome was recorded")
        told = {
            (each["key"], each["state"], each["result"])
            for each in said
            if each.get("state") != "RUN" and "key" in each
        }
        expected = {(key, "DONE", f"{key} by {by}") for key, by in firsts.items()}
        same(told, expected, "what the other processes were told")

    @on_a_loop
    async def test_only_the_holder_can_end_a_claim(self, world: World) -> None:
        """To another process `holds` is false, and its `abandon`, `release` and `complete` do nothing."""
        async with world.store() as store:
            holder = world.start(child.finish_when_told, "k")
            await asyncio.to_thread(holder.hear, "ready")
            holder.go()
            await asyncio.to_thread(holder.hear, "claimed_all")
            same(await store.holds("k"), False, "holds() of another's claim")
            await store.abandon("k")
            await store.release("k")
            same(await store.complete("k", b"mine"), False, "complete() of another's claim")
            same(await store.in_doubt(""), [], "in_doubt() after abandon() of another's claim")
            late = await store.claim("k", b"k", ttl=600, result=b"mine")
            same(late, RUNNING, "claim(result=) of another's claim")
            holder.go()
            said = await asyncio.to_thread(holder.hear, "completed")
            same((said["held"], said["completed"]), (True, True), "holds() and complete() by the holder")
            same(await store.claim("k", b"k", ttl=600), done(b"k, finished"), "claim() in the end")
            await asyncio.to_thread(holder.rest)


def check_deliveries(said: list[child.Said], keys: int, deliveries: int) -> None:
    """Fail unless every key was run once and every delivery was answered with the same bytes."""
    runs = Counter(each["ran"] for each in said if "ran" in each)
    twice = [key for key, count in runs.items() if count > 1]
    holds(not twice, f"run more than once: {twice[:10]}")
    same(len(runs), keys, "how many keys were run")
    answers = [each for each in said if "result" in each]
    same(len(answers), deliveries, "how many deliveries were answered")
    same({each["state"] for each in answers}, {"DONE"}, "what the deliveries came to")
    same(len({(each["key"], each["result"]) for each in answers}), keys, "how many results there are")

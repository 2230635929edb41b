"""Killing processes with SIGKILL, at moments nobody chose."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any, ClassVar

from jackfield.store import Claim, ClaimState, Doubt, Store

from jackfield_testkit.store_contract import child
from jackfield_testkit.store_contract.claims import done
from jackfield_testkit.store_contract.doubts import IN_DOUBT
from jackfield_testkit.store_contract.streams import check_whole
from jackfield_testkit.store_contract.verdict import give_up, holds, same
from jackfield_testkit.store_contract.world import Child, World, on_a_loop

_PROCESSES = 3
_PRONE = 30.0
"""Seconds after which the death of a holder has to have been noticed."""


class CrashTests:
    """What holds when a process dies; not applicable to a store that is not shared."""

    rounds: ClassVar[int]
    seed: ClassVar[int]

    @on_a_loop
    async def test_nothing_acknowledged_is_lost(self, world: World) -> None:
        """Whatever a process was told before it was killed is there for the next one."""
        chance = random.Random(self.seed)  # noqa: S311 - nothing here is secret
        told: list[child.Said] = []
        for number in range(self.rounds):
            told += await asyncio.to_thread(_killed_while_writing, world, f"r{number}", chance)
            async with world.store() as store:
                await _check_told(store, told)
        holds(told, "no process was told anything before it was killed; is the store that slow?")

    @on_a_loop
    async def test_the_claim_of_the_dead_is_in_doubt(self, world: World) -> None:
        """It is neither run again nor waited for: it is IN_DOUBT, and one of those who try takes it over."""
        for number in range(max(1, self.rounds // 4)):
            key = f"held/{number}"
            await asyncio.to_thread(_killed_while_holding, world, key)
            async with world.store() as store:
                same(await _settled(store, key), IN_DOUBT, "claim() of what the dead held")
                same(await store.outcome(key, within=5), IN_DOUBT, "outcome() of the same")
                same(
                    (await store.claim(key, b"x", ttl=600)).state, ClaimState.CONFLICT, "with other arguments"
                )
                same(await store.complete(key, b"mine"), False, "complete() of what the dead held")
                contenders = [(child.reclaim, key, f"by {n}") for n in range(_PROCESSES)]
                said = await asyncio.to_thread(world.together, contenders)
                won = [each["won"] for each in said if "won" in each]
                same(sorted(won), [False] * (_PROCESSES - 1) + [True], "what reclaim() told the contenders")
                found = await store.claim(key, key.encode(), ttl=600)
                holds(
                    found.state is ClaimState.DONE, f"after the takeover it is {found.state.name}, not DONE"
                )

    @on_a_loop
    async def test_whoever_waits_learns_of_the_death(self, world: World) -> None:
        """Waiting for a claim whose holder dies ends with IN_DOUBT, and with one takeover among tasks."""
        async with world.store() as store:
            holder = world.start(child.hold, "k")
            await asyncio.to_thread(holder.hear, "ready")
            holder.go()
            await asyncio.to_thread(holder.hear, "state")
            waiting = asyncio.create_task(store.outcome("k", within=_PRONE))
            await asyncio.sleep(0.1)
            await asyncio.to_thread(holder.kill)
            same(await waiting, IN_DOUBT, "outcome() when the holder dies meanwhile")
            won = await asyncio.gather(*(store.reclaim("k") for _ in range(50)))
            same(sum(won), 1, "how many of 50 simultaneous reclaim() succeeded")
            same((await store.claim("k", b"k", ttl=600)).state, ClaimState.RUNNING, "claim() after reclaim()")
            same(await store.complete("k", b"r"), True, "complete() by the one who took over")
            same(await store.claim("k", b"k", ttl=600), done(b"r"), "claim() in the end")

    @on_a_loop
    async def test_the_claims_of_the_dead_are_listed(self, world: World) -> None:
        """`in_doubt` lists what the dead left with a note and nothing else, until somebody settles it."""
        async with world.store() as store:
            await store.claim("call/mine", b"f", ttl=600, note=b"n")
            alive = await asyncio.to_thread(_holding, world, child.hold_noted, "call/alive")
            plain = await asyncio.to_thread(_holding, world, child.hold, "call/plain")
            dying = await asyncio.to_thread(_holding, world, child.hold_noted, "call/b", "call/a", "other")
            same(await store.in_doubt(""), [], "in_doubt() while all holders live")
            await asyncio.to_thread(plain.kill)
            await asyncio.to_thread(dying.kill)
            for key in ("call/a", "call/plain"):
                same(await _settled(store, key), IN_DOUBT, f"claim() of {key}, which the dead held")
            await store.prune()
            listed = [Doubt("call/a", b"note of call/a"), Doubt("call/b", b"note of call/b")]
            same(await store.in_doubt("call/"), listed, "in_doubt() after the holder was killed")
            same(
                [each.key for each in await store.in_doubt("")], ["call/a", "call/b", "other"], "all in doubt"
            )
            same(await store.reclaim("call/a"), True, "reclaim() of what the dead held")
            same(await store.in_doubt("call/"), listed[1:], "in_doubt() after reclaim()")
            same(await store.complete("call/a", b"r", ttl=600), True, "complete() by the one who took over")
            same(await store.in_doubt("call/"), listed[1:], "in_doubt() after it was settled")
            same(await store.claim("call/a", b"call/a", ttl=600), done(b"r"), "claim() of what was settled")
            await asyncio.to_thread(alive.kill)

    @on_a_loop
    async def test_a_recorded_outcome_is_never_in_doubt(self, world: World) -> None:
        """However soon its process is killed, an outcome recorded in one step is done or was never made."""
        chance = random.Random(self.seed + 2)  # noqa: S311
        recorded = 0
        for number in range(max(1, self.rounds // 4)):
            keys = [f"{number}/{n}" for n in range(200)]
            said = await asyncio.to_thread(_killed_while_recording, world, keys, chance)
            recorded += len(said)
            async with world.store() as store:
                for each in said:
                    found = await store.claim(each["key"], each["key"].encode(), ttl=600)
                    same(found, done(f"{each['key']} by p".encode()), "claim() of an acknowledged outcome")
                for key in keys:
                    found = await store.outcome(key, within=0)
                    what = f"outcome({key!r}) gives {found.state.name} after claim(result=) was cut off"
                    holds(found in (Claim(ClaimState.FREE), done(f"{key} by p".encode())), what)
        holds(recorded, "no process recorded anything before it was killed; is the store that slow?")

    @on_a_loop
    async def test_a_paused_process_keeps_what_nobody_took_over(self, world: World) -> None:
        """A process that hung may finish the claims that are still its own, and no others."""
        async with world.store() as store:
            holder = await asyncio.to_thread(_holding, world, child.finish_when_told, "left", "taken")
            holder.pause()
            # Not every store takes a process that hangs for dead; then its claims stay its own.
            doubted = await _settled(store, "left") == IN_DOUBT
            same(await store.reclaim("taken"), doubted, "reclaim() of a paused process's claim")
            listed = ["left"] if doubted else []
            same([each.key for each in await store.in_doubt("")], listed, "in_doubt() during the pause")
            holder.resume()
            holder.go()
            said = {
                each["key"]: (each["held"], each["completed"])
                for each in await asyncio.to_thread(holder.rest)
                if "held" in each
            }
            same(said["left"], (True, True), "holds() and complete() after the pause")
            still = not doubted
            same(said["taken"], (still, still), "holds() and complete() of what was taken over, or not")
            same(await store.claim("left", b"left", ttl=600), done(b"left, finished"), "claim() after it")
            if doubted:
                same(await store.complete("taken", b"r"), True, "complete() by the one who took over")
                same(await store.claim("taken", b"taken", ttl=600), done(b"r"), "claim() in the end")
            same(await store.in_doubt(""), [], "in_doubt() in the end")

    @on_a_loop
    async def test_nothing_runs_twice(self, world: World) -> None:
        """However often who runs things is killed and started anew, no key is run a second time."""
        chance = random.Random(self.seed + 1)  # noqa: S311
        keys = [f"key/{number}" for number in range(300)]
        runs: list[str] = []
        for _ in range(self.rounds):
            said = await asyncio.to_thread(_killed_while_claiming, world, keys, chance)
            runs += [each["key"] for each in said if each.get("state") == "RUN"]
        same(len(set(runs)), len(runs), "how many different keys were run, of all runs")
        holds(runs, "no process came to run anything before it was killed")


def _killed_while_writing(world: World, me: str, chance: random.Random) -> list[child.Said]:
    writer = world.start(child.write, me)
    writer.hear("ready")
    writer.go()
    time.sleep(chance.uniform(0.005, 0.15))
    return writer.kill()


def _killed_while_holding(world: World, key: str) -> None:
    _holding(world, child.hold, key).kill()


def _holding(world: World, act: Callable[..., Any], *keys: str) -> Child:
    """Another process that has claimed these keys."""
    holder = world.start(act, *keys)
    holder.hear("ready")
    holder.go()
    for _ in keys:
        same(holder.hear("state")["state"], "RUN", "the first claim()")
    return holder


def _killed_while_recording(world: World, keys: list[str], chance: random.Random) -> list[child.Said]:
    recording = world.start(child.record_and_wait, "p", *keys)
    recording.hear("ready")
    recording.go()
    first = recording.hear("state")
    time.sleep(chance.uniform(0, 0.01))
    return [first, *recording.kill()]


def _killed_while_claiming(world: World, keys: list[str], chance: random.Random) -> list[child.Said]:
    """Two at once on the same keys, in different orders; both die."""
    claiming = []
    for _ in range(2):
        order = chance.sample(keys, len(keys))
        claiming.append(world.start(child.hold, *order))
    for each in claiming:
        each.hear("ready")
    for each in claiming:
        each.go()
    time.sleep(chance.uniform(0.005, 0.06))
    return [said for each in claiming for said in each.kill()]


async def _check_told(store: Store, told: list[child.Said]) -> None:
    for said in told:
        match said:
            case {"put": name}:
                same(await store.get(f"kept/{name}"), name.encode(), f"get() of the acknowledged kept/{name}")
            case {"claimed": name}:
                found = await _settled(store, f"open/{name}", b"")
                same(found, IN_DOUBT, f"claim() of the acknowledged open/{name}")
            case {"completed": name}:
                found = await store.claim(f"done/{name}", b"", ttl=600)
                same(found, done(name.encode()), f"claim() of the acknowledged done/{name}")
            case {"took": name}:
                same(await store.get(f"token/{name}"), None, f"get() of the taken token/{name}")
    log = await store.read("log", limit=1_000_000)
    check_whole(log, len(log), "read() after the crash")
    values = {entry.id: entry.value.decode() for entry in log}
    lost = [said for said in told if "id" in said and values.get(said["id"]) != said["value"]]
    if lost:
        give_up(f"{len(lost)} acknowledged entries are lost or changed, the first is {lost[0]}")


async def _settled(store: Store, key: str, fingerprint: bytes | None = None) -> Claim:
    """What a claim comes to once the death of its holder can have been noticed."""
    until = time.monotonic() + _PRONE
    while True:
        found = await store.claim(key, key.encode() if fingerprint is None else fingerprint, ttl=600)
        if found.state is not ClaimState.RUNNING or time.monotonic() > until:
            return found
        await asyncio.sleep(0.05)

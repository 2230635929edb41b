"""Values, tokens and counters."""

from __future__ import annotations

import asyncio

from jackfield.store import ClaimState, Store

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.store_contract.world import World, on_a_loop

_RACERS = 100


class ValueTests:
    """What `now`, `put`, `get`, `delete`, `take`, `keys`, `add`, `prune` and `close` promise."""

    @on_a_loop
    async def test_time_goes_forward(self, world: World) -> None:
        """The store's time is in seconds since the epoch and never goes back."""
        async with world.store() as store:
            moments = []
            for _ in range(20):
                moments.append(store.now())
                await asyncio.sleep(0.001)
            holds(moments == sorted(moments), f"now() went back: {moments}")
            holds(0.015 < moments[-1] - moments[0] < 10, "now() does not count seconds")
            holds(moments[0] > 1e9, f"now() gives {moments[0]}, which is not in seconds since the epoch")

    @on_a_loop
    async def test_values_are_kept_until_deleted(self, world: World) -> None:
        """A value is there until it is replaced or deleted, and only then is it said to be gone."""
        async with world.store() as store:
            same(await store.get("a"), None, "get() of a key that was never put")
            same(await store.delete("a"), False, "delete() of a key that was never put")
            await store.put("a", b"one")
            same(await store.get("a"), b"one", "get() after put()")
            await store.put("a", b"two")
            same(await store.get("a"), b"two", "get() after a second put()")
            same(await store.delete("a"), True, "delete() of a value")
            same(await store.get("a"), None, "get() after delete()")
            same(await store.delete("a"), False, "a second delete()")

    @on_a_loop
    async def test_values_expire(self, world: World) -> None:
        """After its time to live a value is gone, for every method; a new put begins a new one."""
        async with world.timed() as (store, unit, let_pass):
            for key in ("got", "taken", "deleted", "renewed"):
                await store.put(key, b"x", ttl=unit)
            await store.put("lasting", b"x")
            await store.put("never", b"x", ttl=0)
            same(await store.get("never"), None, "get() of a value with no time to live")
            await let_pass(0.6)
            same(await store.get("got"), b"x", "get() before the time to live is over")
            await store.put("renewed", b"y", ttl=unit)
            await let_pass(0.6)
            same(await store.get("got"), None, "get() after the time to live")
            same(await store.take("taken"), None, "take() after the time to live")
            same(await store.delete("deleted"), False, "delete() after the time to live")
            same(await store.get("renewed"), b"y", "get() of a value that was put again meanwhile")
            same(await store.keys(""), ["lasting", "renewed"], "keys() after the time to live")

    @on_a_loop
    async def test_any_bytes(self, world: World) -> None:
        """A value comes back byte for byte, whatever it holds, up to many megabytes."""
        async with world.store() as store:
            for value in (
                b"",
                b"\x00",
                bytes(range(256)),
                "\ud7ff\U0010ffff\n".encode(),
                b"\xff" * (5 << 20),
            ):
                await store.put("v", value)
                holds(await store.get("v") == value, f"{value!r:.60} did not come back from get()")
                holds(await store.take("v") == value, f"{value!r:.60} did not come back from take()")

    @on_a_loop
    async def test_any_key(self, world: World) -> None:
        """Keys are text: no two that differ are the same one, and none is a pattern."""
        keys = [
            "",
            " ",
            "a",
            "A",
            "a/b",
            "a%",
            "a_",
            "a*",
            "ä",
            "a\u0308",
            "a\x00b",
            "\ud7ff",
            "\ue000",
            "\U0010ffff",
        ]
        async with world.store() as store:
            for number, key in enumerate(keys):
                await store.put(key, str(number).encode())
            for number, key in enumerate(keys):
                same(await store.get(key), str(number).encode(), f"get({key!r})")
            for prefix in (*keys, "b", "a\x00", "\ud7ff\ud7ff", "\U0010ffff\U0010ffff"):
                begun = sorted(key for key in keys if key.startswith(prefix))
                same(await store.keys(prefix), begun, f"keys({prefix!r})")

    @on_a_loop
    async def test_one_takes(self, world: World) -> None:
        """Of many who take one token at the same time one gets it, and nobody later."""
        async with world.store() as store:
            for number in range(5):
                await store.put("token", b"%d" % number)
                took = await asyncio.gather(*(store.take("token") for _ in range(_RACERS)))
                got = [value for value in took if value is not None]
                same(got, [b"%d" % number], f"what {_RACERS} simultaneous take() got")
                same(await store.get("token"), None, "get() after take()")
                same(await store.take("token"), None, "a later take()")

    @on_a_loop
    async def test_counters_count_within_their_window(self, world: World) -> None:
        """A counter adds up from its first addition until its window is over, then starts anew."""
        async with world.timed() as (store, unit, let_pass):
            same(await store.add("c", 2, window=unit), 2, "the first add()")
            await let_pass(0.6)
            same(await store.add("c", 3, window=unit), 5, "add() within the window")
            same(await store.add("other", 1, window=unit), 1, "add() to another counter")
            same(await store.get("c"), None, "get() of a counter's key, which is no value")
            await let_pass(0.6)
            same(await store.add("c", -1, window=unit), -1, "add() after the window of the first addition")

    @on_a_loop
    async def test_no_addition_is_lost(self, world: World) -> None:
        """Every addition counts, however many are made at once, and each is told another sum."""
        async with world.store() as store:
            sums = await asyncio.gather(*(store.add("c", 1, window=600) for _ in range(_RACERS)))
            same(sorted(sums), list(range(1, _RACERS + 1)), "what simultaneous add() returned")

    @on_a_loop
    async def test_prune_removes_what_has_expired(self, world: World) -> None:
        """Prune counts what it removed, which may have gone by itself, and removes nothing that lives."""
        async with world.timed() as (store, unit, let_pass):
            for ttl, name in ((unit, "short"), (unit * 100, "long")):
                await store.put(name, b"x", ttl=ttl)
                await store.add(name, 1, window=ttl)
                await store.claim(name, b"f", ttl=ttl)
                await store.append(name, b"x", ttl=ttl)
            same(await store.prune(), 0, "prune() before anything has expired")
            await let_pass(1.2)
            gone = await store.prune()
            holds(0 <= gone <= 4, f"prune() removed {gone} things, and no more than 4 had expired")
            same(await store.prune(), 0, "a second prune()")
            same(await store.get("long"), b"x", "get() of what had not expired")
            same(await store.add("long", 1, window=unit), 2, "add() to a counter that had not expired")
            same((await store.claim("long", b"f", ttl=unit)).state, ClaimState.RUNNING, "claim() of the same")
            same(len(await store.read("long")), 1, "how many entries there are that had not expired")
            same(await store.append("short", b"y"), 2, "append() to a stream whose entries were pruned")

    @on_a_loop
    async def test_closing_keeps_everything(self, world: World) -> None:
        """What is under way when a store is closed is done or refused; a second close does nothing."""
        async with world.store() as store:
            await asyncio.gather(*(store.put(str(number), b"x") for number in range(_RACERS)))
            await _close_twice(store)


async def _close_twice(store: Store) -> None:
    await store.close()
    await store.close()

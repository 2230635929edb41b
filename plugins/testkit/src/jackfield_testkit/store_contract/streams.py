"""Streams: ordered, without a gap, without an entry twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from jackfield.store import Entry, Store

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.store_contract.world import World, on_a_loop

_MANY = 200


async def follow(store: Store, stream: str, count: int, *, after: int = 0, within: float = 20) -> list[Entry]:
    """The next entries of a stream, as somebody who follows it gets them."""
    found: list[Entry] = []
    following = cast(AsyncGenerator[Entry, None], store.follow(stream, after=after))
    async with aclosing(following), asyncio.timeout(within):
        async for entry in following:
            found.append(entry)
            if len(found) == count:
                break
    return found


def check_whole(entries: list[Entry], last: int, what: str, *, after: int = 0) -> None:
    """Fail unless the ids go up by one to the last."""
    ids = [entry.id for entry in entries]
    holds(
        ids == list(range(after + 1, last + 1)),
        f"{what} gave the ids {ids!r:.300}, not {after + 1} to {last}",
    )


class StreamTests:
    """What `append`, `read`, `follow`, `streams` and `clear` promise within one process."""

    @on_a_loop
    async def test_entries_are_numbered_from_one(self, world: World) -> None:
        """Every stream counts for itself, from 1, by one."""
        async with world.store() as store:
            same(await store.read("s"), [], "read() of a stream that was never written")
            for number, value in enumerate((b"", b"\x00\xff", b"\x00" * 100_000), 1):
                same(await store.append("s", value), number, "append()")
                same(await store.append("s2", value), number, "append() to another stream")
                holds(
                    (await store.read("s", after=number - 1)) == [Entry(number, value)],
                    "read() does not give back what append() was given",
                )

    @on_a_loop
    async def test_reading_a_part(self, world: World) -> None:
        """Read begins behind an id and ends at a limit."""
        async with world.store() as store:
            for number in range(1, 11):
                await store.append("s", b"%d" % number)
            check_whole(await store.read("s"), 10, "read()")
            check_whole(await store.read("s", after=7), 10, "read(after=7)", after=7)
            check_whole(await store.read("s", after=2, limit=3), 5, "read(after=2, limit=3)", after=2)
            same(await store.read("s", after=10), [], "read() behind the end")
            same(await store.read("s", limit=0), [], "read(limit=0)")

    @on_a_loop
    async def test_entries_expire_and_ids_do_not_come_again(self, world: World) -> None:
        """An entry whose time is over is gone; its id is never another's."""
        async with world.timed() as (store, unit, let_pass):
            await store.append("s", b"short", ttl=unit)
            await store.append("s", b"long")
            await store.append("s", b"short", ttl=unit)
            await let_pass(1.2)
            same(await store.read("s"), [Entry(2, b"long")], "read() after the time to live of two entries")
            same(await store.append("s", b"new"), 4, "append() behind an entry that has expired")
            same(await follow(store, "s", 2), [Entry(2, b"long"), Entry(4, b"new")], "follow()")

    @on_a_loop
    async def test_streams_that_hold_something_are_listed(self, world: World) -> None:
        """A stream is listed by the beginning of its name, as long as something in it can be read."""
        async with world.timed() as (store, unit, let_pass):
            for stream in ("b_c", "b", "bxc", "a", "b%"):
                await store.append(stream, b"long")
            await store.append("brief", b"short", ttl=unit)
            await store.put("b/value", b"")
            same(await store.streams("b"), ["b", "b%", "b_c", "brief", "bxc"], "streams('b')")
            same(await store.streams("b_"), ["b_c"], "streams('b_')")
            same(await store.streams("none"), [], "streams() of a prefix that no stream has")
            await let_pass(1.2)
            same(await store.streams("brief"), [], "streams() after the time to live of all entries")

    @on_a_loop
    async def test_a_cleared_stream_goes_on_counting(self, world: World) -> None:
        """Nothing of a stream that was cleared can be read; what follows has new ids, and others stay."""
        async with world.store() as store:
            for stream in ("s", "s", "s2"):
                await store.append(stream, b"old")
            same(await store.clear("s"), 2, "clear()")
            same(await store.clear("s"), 0, "clear() of a stream that is empty")
            same(await store.clear("never"), 0, "clear() of a stream that was never written")
            same(await store.read("s"), [], "read() of a cleared stream")
            same(await store.streams("s"), ["s2"], "streams() after one was cleared")
            same(await store.append("s", b"new"), 3, "append() to a cleared stream")
            same(await follow(store, "s", 1), [Entry(3, b"new")], "follow() of a cleared stream")
            same(await store.read("s2"), [Entry(1, b"old")], "read() of another stream")

    @on_a_loop
    async def test_appending_at_once(self, world: World) -> None:
        """Simultaneous appends get ids without a gap, and each finds its own value under its id."""
        async with world.store() as store:
            ids = await asyncio.gather(*(store.append("s", b"%d" % number) for number in range(_MANY)))
            same(sorted(ids), list(range(1, _MANY + 1)), "the ids of simultaneous append()")
            found = {entry.id: entry.value for entry in await store.read("s")}
            same(found, {id_: b"%d" % number for number, id_ in enumerate(ids)}, "what stands under the ids")

    @on_a_loop
    async def test_following(self, world: World) -> None:
        """Whoever follows gets what is there and then what comes, whole and in order, wherever they began."""
        async with world.store() as store:
            for number in range(_MANY):
                await store.append("s", b"%d" % number)
            beginnings = (0, _MANY // 2, _MANY)
            followers = [
                asyncio.create_task(follow(store, "s", 2 * _MANY - after, after=after))
                for after in beginnings
            ]
            for number in range(_MANY):
                await store.append("s", b"%d" % number)
                if number % 20 == 0:
                    await asyncio.sleep(0.002)
            for after, entries in zip(beginnings, await asyncio.gather(*followers), strict=True):
                check_whole(entries, 2 * _MANY, f"follow(after={after})", after=after)

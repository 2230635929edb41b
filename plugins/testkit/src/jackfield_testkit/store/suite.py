"""The contract suite for stores, with the tests of values, counters and streams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from jackfield.store import ClaimState, Store, StreamEntry

from jackfield_testkit.store.claims import ClaimTests, DoubtTests
from jackfield_testkit.store.crashes import CrashTests
from jackfield_testkit.store.harness import StoreHarness, async_test, expect_consecutive, follow
from jackfield_testkit.store.processes import ProcessTests
from jackfield_testkit.suite import ContractTests, contract_tests, expect, expect_equal

_SHARED_ONLY = frozenset(contract_tests(ProcessTests, CrashTests))
_RACERS = 100
_MANY = 200


class ValueTests:
    """`now`, `put`, `get`, `delete`, `take`, `keys`, `add`, `prune` and `close`."""

    @async_test
    async def test_time_never_goes_back(self, harness: StoreHarness) -> None:
        """`now` returns seconds since the epoch and never decreases."""
        async with harness.open() as store:
            times = []
            for _ in range(20):
                times.append(store.now())
                await asyncio.sleep(0.001)
            expect(times == sorted(times), f"now() decreased: {times}")
            expect(0.015 < times[-1] - times[0] < 10, "now() does not count seconds")
            expect(times[0] > 1e9, f"now() returned {times[0]}, which is not in seconds since the epoch")

    @async_test
    async def test_values_are_kept_until_deleted(self, harness: StoreHarness) -> None:
        """A value exists until it is replaced or deleted; `delete` returns whether it existed."""
        async with harness.open() as store:
            expect_equal(await store.get("a"), None, "get() of a key that was never put")
            expect_equal(await store.delete("a"), False, "delete() of a key that was never put")
            await store.put("a", b"one")
            expect_equal(await store.get("a"), b"one", "get() after put()")
            await store.put("a", b"two")
            expect_equal(await store.get("a"), b"two", "get() after a second put()")
            expect_equal(await store.delete("a"), True, "delete() of a value")
            expect_equal(await store.get("a"), None, "get() after delete()")
            expect_equal(await store.delete("a"), False, "a second delete()")

    @async_test
    async def test_values_expire(self, harness: StoreHarness) -> None:
        """After its time to live, no method returns a value; `put` starts a new time to live."""
        async with harness.open_timed() as (store, unit, advance):
            for key in ("got", "taken", "deleted", "renewed"):
                await store.put(key, b"x", ttl=unit)
            await store.put("lasting", b"x")
            await store.put("never", b"x", ttl=0)
            expect_equal(await store.get("never"), None, "get() of a value with no time to live")
            await advance(0.6)
            expect_equal(await store.get("got"), b"x", "get() within the time to live")
            await store.put("renewed", b"y", ttl=unit)
            await advance(0.6)
            expect_equal(await store.get("got"), None, "get() after the time to live")
            expect_equal(await store.take("taken"), None, "take() after the time to live")
            expect_equal(await store.delete("deleted"), False, "delete() after the time to live")
            expect_equal(await store.get("renewed"), b"y", "get() of a value that was put again")
            expect_equal(await store.keys(""), ["lasting", "renewed"], "keys() after the time to live")

    @async_test
    async def test_values_may_be_any_bytes(self, harness: StoreHarness) -> None:
        """Any bytes are returned unchanged, up to several megabytes."""
        async with harness.open() as store:
            for value in (
                b"",
                b"\x00",
                bytes(range(256)),
                "\ud7ff\U0010ffff\n".encode(),
                b"\xff" * (5 << 20),
            ):
                await store.put("v", value)
                expect(await store.get("v") == value, f"get() did not return {value!r:.60}")
                expect(await store.take("v") == value, f"take() did not return {value!r:.60}")

    @async_test
    async def test_keys_may_be_any_text(self, harness: StoreHarness) -> None:
        """Keys are text: different texts are different keys, and no character is a wildcard."""
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
        async with harness.open() as store:
            for number, key in enumerate(keys):
                await store.put(key, str(number).encode())
            for number, key in enumerate(keys):
                expect_equal(await store.get(key), str(number).encode(), f"get({key!r})")
            for prefix in (*keys, "b", "a\x00", "\ud7ff\ud7ff", "\U0010ffff\U0010ffff"):
                matching = sorted(key for key in keys if key.startswith(prefix))
                expect_equal(await store.keys(prefix), matching, f"keys({prefix!r})")

    @async_test
    async def test_one_of_many_takes_a_value(self, harness: StoreHarness) -> None:
        """One of many concurrent `take` calls gets the value, and no later call does."""
        async with harness.open() as store:
            for number in range(5):
                await store.put("token", b"%d" % number)
                values = await asyncio.gather(*(store.take("token") for _ in range(_RACERS)))
                taken = [value for value in values if value is not None]
                expect_equal(taken, [b"%d" % number], f"what {_RACERS} concurrent take() returned")
                expect_equal(await store.get("token"), None, "get() after take()")
                expect_equal(await store.take("token"), None, "a later take()")

    @async_test
    async def test_counters_add_up_within_their_window(self, harness: StoreHarness) -> None:
        """A counter adds up from its first addition to the end of its window, then starts at zero."""
        async with harness.open_timed() as (store, unit, advance):
            expect_equal(await store.add("c", 2, window=unit), 2, "the first add()")
            await advance(0.6)
            expect_equal(await store.add("c", 3, window=unit), 5, "add() within the window")
            expect_equal(await store.add("other", 1, window=unit), 1, "add() to another counter")
            expect_equal(await store.get("c"), None, "get() of the key of a counter")
            await advance(0.6)
            expect_equal(
                await store.add("c", -1, window=unit), -1, "add() after the window of the first addition"
            )

    @async_test
    async def test_no_addition_is_lost(self, harness: StoreHarness) -> None:
        """Every concurrent addition counts, and each returns a different sum."""
        async with harness.open() as store:
            sums = await asyncio.gather(*(store.add("c", 1, window=600) for _ in range(_RACERS)))
            expect_equal(sorted(sums), list(range(1, _RACERS + 1)), "what concurrent add() returned")

    @async_test
    async def test_prune_removes_expired_entries(self, harness: StoreHarness) -> None:
        """`prune` removes expired entries only; it returns how many it removed itself."""
        async with harness.open_timed() as (store, unit, advance):
            for ttl, name in ((unit, "short"), (unit * 100, "long")):
                await store.put(name, b"x", ttl=ttl)
                await store.add(name, 1, window=ttl)
                await store.claim(name, b"f", ttl=ttl)
                await store.append(name, b"x", ttl=ttl)
            expect_equal(await store.prune(), 0, "prune() before anything has expired")
            await advance(1.2)
            removed = await store.prune()
            expect(0 <= removed <= 4, f"prune() removed {removed} entries, but only 4 had expired")
            expect_equal(await store.prune(), 0, "a second prune()")
            expect_equal(await store.get("long"), b"x", "get() of a value that had not expired")
            expect_equal(
                await store.add("long", 1, window=unit), 2, "add() to a counter that had not expired"
            )
            expect_equal(
                (await store.claim("long", b"f", ttl=unit)).state,
                ClaimState.RUNNING,
                "claim() of a claim that had not expired",
            )
            expect_equal(len(await store.read("long")), 1, "the number of entries that had not expired")
            expect_equal(
                await store.append("short", b"y"), 2, "append() to a stream whose entries were pruned"
            )

    @async_test
    async def test_close_keeps_pending_writes(self, harness: StoreHarness) -> None:
        """Pending operations finish when the store is closed; a second `close` does nothing."""
        async with harness.open() as store:
            await asyncio.gather(*(store.put(str(number), b"x") for number in range(_RACERS)))
            await store.close()
            await store.close()


class StreamTests:
    """`append`, `read`, `follow`, `streams` and `clear`."""

    @async_test
    async def test_entries_are_numbered_from_one(self, harness: StoreHarness) -> None:
        """Each stream numbers its entries from 1, without gaps."""
        async with harness.open() as store:
            expect_equal(await store.read("s"), [], "read() of a stream that was never written")
            for number, value in enumerate((b"", b"\x00\xff", b"\x00" * 100_000), 1):
                expect_equal(await store.append("s", value), number, "append()")
                expect_equal(await store.append("s2", value), number, "append() to another stream")
                expect(
                    (await store.read("s", after=number - 1)) == [StreamEntry(number, value)],
                    "read() does not return what was appended",
                )

    @async_test
    async def test_read_starts_after_an_id_and_ends_at_the_limit(self, harness: StoreHarness) -> None:
        """`read` starts after an id and returns at most the limit."""
        async with harness.open() as store:
            for number in range(1, 11):
                await store.append("s", b"%d" % number)
            expect_consecutive(await store.read("s"), 10, "read()")
            expect_consecutive(await store.read("s", after=7), 10, "read(after=7)", after=7)
            expect_consecutive(await store.read("s", after=2, limit=3), 5, "read(after=2, limit=3)", after=2)
            expect_equal(await store.read("s", after=10), [], "read() after the last id")
            expect_equal(await store.read("s", limit=0), [], "read(limit=0)")

    @async_test
    async def test_entries_expire_and_ids_are_not_reused(self, harness: StoreHarness) -> None:
        """An expired entry is gone, and its id is never used again."""
        async with harness.open_timed() as (store, unit, advance):
            await store.append("s", b"short", ttl=unit)
            await store.append("s", b"long")
            await store.append("s", b"short", ttl=unit)
            await advance(1.2)
            expect_equal(
                await store.read("s"),
                [StreamEntry(2, b"long")],
                "read() after the time to live of two entries",
            )
            expect_equal(await store.append("s", b"new"), 4, "append() after an entry that has expired")
            expect_equal(
                await follow(store, "s", 2), [StreamEntry(2, b"long"), StreamEntry(4, b"new")], "follow()"
            )

    @async_test
    async def test_streams_with_entries_are_listed(self, harness: StoreHarness) -> None:
        """`streams` lists streams by prefix, as long as they have an entry that can be read."""
        async with harness.open_timed() as (store, unit, advance):
            for stream in ("b_c", "b", "bxc", "a", "b%"):
                await store.append(stream, b"long")
            await store.append("brief", b"short", ttl=unit)
            await store.put("b/value", b"")
            expect_equal(await store.streams("b"), ["b", "b%", "b_c", "brief", "bxc"], "streams('b')")
            expect_equal(await store.streams("b_"), ["b_c"], "streams('b_')")
            expect_equal(await store.streams("none"), [], "streams() of a prefix that no stream has")
            await advance(1.2)
            expect_equal(await store.streams("brief"), [], "streams() after the time to live of all entries")

    @async_test
    async def test_cleared_stream_continues_its_ids(self, harness: StoreHarness) -> None:
        """`clear` removes the entries of one stream; later entries get new ids."""
        async with harness.open() as store:
            for stream in ("s", "s", "s2"):
                await store.append(stream, b"old")
            expect_equal(await store.clear("s"), 2, "clear()")
            expect_equal(await store.clear("s"), 0, "clear() of an empty stream")
            expect_equal(await store.clear("never"), 0, "clear() of a stream that was never written")
            expect_equal(await store.read("s"), [], "read() of a cleared stream")
            expect_equal(await store.streams("s"), ["s2"], "streams() after clear()")
            expect_equal(await store.append("s", b"new"), 3, "append() to a cleared stream")
            expect_equal(
                await follow(store, "s", 1), [StreamEntry(3, b"new")], "follow() of a cleared stream"
            )
            expect_equal(await store.read("s2"), [StreamEntry(1, b"old")], "read() of another stream")

    @async_test
    async def test_concurrent_appends_have_consecutive_ids(self, harness: StoreHarness) -> None:
        """Concurrent appends get consecutive ids, and each value is stored under its id."""
        async with harness.open() as store:
            ids = await asyncio.gather(*(store.append("s", b"%d" % number) for number in range(_MANY)))
            expect_equal(sorted(ids), list(range(1, _MANY + 1)), "the ids of concurrent append()")
            found = {entry.id: entry.value for entry in await store.read("s")}
            expect_equal(found, {id_: b"%d" % number for number, id_ in enumerate(ids)}, "the values by id")

    @async_test
    async def test_entries_of_one_append_have_consecutive_ids(self, harness: StoreHarness) -> None:
        """The entries of one append have consecutive ids, even if others append at the same time."""
        async with harness.open() as store:
            batches = [[b"%d.%d" % (number, place) for place in range(3)] for number in range(_MANY)]
            last = await asyncio.gather(*(store.append("s", *batch) for batch in batches))
            expect_equal(sorted(last), list(range(3, 3 * _MANY + 1, 3)), "the ids that append() returned")
            expected = {
                id_ - 2 + place: value
                for id_, batch in zip(last, batches, strict=True)
                for place, value in enumerate(batch)
            }
            found = {entry.id: entry.value for entry in await store.read("s")}
            expect_equal(found, expected, "the values by id")

    @async_test
    async def test_followers_get_every_entry_in_order(self, harness: StoreHarness) -> None:
        """A follower gets all existing and new entries in order, from any starting id."""
        async with harness.open() as store:
            for number in range(_MANY):
                await store.append("s", b"%d" % number)
            starts = (0, _MANY // 2, _MANY)
            followers = [
                asyncio.create_task(follow(store, "s", 2 * _MANY - after, after=after)) for after in starts
            ]
            for number in range(_MANY):
                await store.append("s", b"%d" % number)
                if number % 20 == 0:
                    await asyncio.sleep(0.002)
            for after, entries in zip(starts, await asyncio.gather(*followers), strict=True):
                expect_consecutive(entries, 2 * _MANY, f"follow(after={after})", after=after)


class ModelTests:
    """Random sequences of operations."""

    examples: ClassVar[int]

    def test_any_sequence_matches_the_memory_store(self, harness: StoreHarness, tmp_path: Path) -> None:
        """Any sequence of operations has the same results as on the memory store."""
        probe = harness.with_clock(harness.place, lambda: 0.0)
        if probe is None:
            pytest.skip(
                "not applicable: the clock of this store cannot be set; override with_clock() if it can"
            )
        asyncio.run(probe.close())
        pytest.importorskip("hypothesis", reason="hypothesis, which draws the sequences, is not installed")
        from hypothesis import HealthCheck, settings
        from hypothesis.stateful import run_state_machine_as_test

        from jackfield_testkit.store.model import StoreComparison

        members = {"create": staticmethod(harness.with_clock), "folder": tmp_path}
        run_state_machine_as_test(
            type("Comparison", (StoreComparison,), members),
            settings=settings(
                max_examples=self.examples,
                stateful_step_count=40,
                deadline=None,
                database=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            ),
        )


class StoreContractTests(
    ContractTests,
    ValueTests,
    ClaimTests,
    DoubtTests,
    StreamTests,
    ModelTests,
    ProcessTests,
    CrashTests,
    suite=True,
):
    """Subclass it with an `opener` to run the contract tests of a store.

    A contract test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report shows the
    reason. `class OurStores(StoreContractTests, abstract=True)` makes a base class that does not run itself.
    """

    overridable = frozenset(
        {"opener", "place", "with_clock", "shared", "waived", "rounds", "examples", "seed"}
    )

    opener: ClassVar[str] = ""
    """An import string, `"module:function"`; the function takes a place and returns or awaits a store."""

    shared: ClassVar[bool] = True
    """True if several processes that open the same place share one store."""

    rounds: ClassVar[int] = 10
    """How often the crash tests kill a process."""

    examples: ClassVar[int] = 30
    """The number of random sequences of operations that are compared with the memory store."""

    seed: ClassVar[int] = 1
    """The seed for the random moments at which processes are killed."""

    @classmethod
    def check_settings(cls) -> None:
        """Raise `TypeError` for a class without a valid `opener`."""
        module, colon, function = cls.opener.partition(":")
        if not (module and colon and function):
            raise TypeError(
                f'{cls.__name__} does not define how its store is opened; set opener = "module:function", '
                "where function(place) returns a store, in this process and in others"
            )

    def place(self, tmp_path: Path) -> str:
        """Return a new place at which the stores of one test are opened."""
        return str(tmp_path / "store")

    def with_clock(self, place: str, clock: Callable[[], float]) -> Store | None:  # noqa: ARG002
        """Return a store that uses this clock; override it if the store can have one."""
        return None

    @pytest.fixture
    def harness(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreHarness]:
        """The place of the stores, and the processes that use it."""
        if request.function.__name__ in _SHARED_ONLY and not self.shared:
            name = type(self).__name__
            pytest.skip(f"not applicable: the store of {name} is not shared between processes")
        harness = StoreHarness(self.place(tmp_path), self.opener, self.with_clock)
        yield harness
        harness.close()

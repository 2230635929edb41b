"""What is kept of a conversation that several processes carried, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from jackfield.session.session import Session
from jackfield.store import MemoryStore
from jackfield_sessions.journal import Journal, transcript
from jackfield_sessions.journal import name as record_name


class HeldUp(MemoryStore):
    """A store whose values wait where a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: list[asyncio.Event] = []
        self.noticed: Callable[[], None] = lambda: None

    async def put(self, key: str, value: bytes, *, ttl: float | None = None) -> None:
        self.noticed()
        if self.gates:
            await self.gates.pop(0).wait()
        await super().put(key, value, ttl=ttl)


def carried(holder: int, told: list[Mapping[str, Any]]) -> Session:
    def publish(event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
        told.append(fields)

    session = Session("text", "1.0.0", session_id="s", publish=publish)
    session.holder = holder
    return session


async def words(store: MemoryStore) -> list[str]:
    resumed = await Journal.resumed(carried(0, []), store)
    return [each.text for each in resumed.memory.said]


def test_a_record_of_a_superseded_holder_is_not_read_however_late_it_is_written() -> None:
    async def main() -> None:
        store = HeldUp()
        first = Journal(carried(0, []), store)
        await first.said("user", "one")
        store.gates = [late := asyncio.Event()]
        writing = asyncio.create_task(first.said("user", "too late"))
        await asyncio.sleep(0)
        second = await Journal.resumed(carried(7, []), store)
        await second.said("user", "two")
        late.set()
        await writing
        assert await words(store) == ["one", "two"]
        # Numbers are compared as numbers, and a name that only looks like a holder's is none.
        third = await Journal.resumed(carried(12, []), store)
        await third.said("user", "three")
        await store.put(f"{record_name('s')}@other", b"{}")
        await second.said("user", "too late as well")
        assert await words(store) == ["one", "two", "three"]

    asyncio.run(main())


def test_of_two_who_keep_at_a_time_the_later_one_does_not_keep_what_is_older() -> None:
    async def main() -> None:
        store = HeldUp()
        journal = Journal(carried(0, []), store)
        # Counters and conversation are written side by side; either may be the slow one.
        store.gates = [asyncio.Event(), asyncio.Event()]
        gates = list(store.gates)
        keeping = asyncio.create_task(journal.keep(counters=True))
        await asyncio.sleep(0)
        saying = asyncio.create_task(journal.said("user", "hello"))
        for gate in reversed(gates):
            await asyncio.sleep(0)
            gate.set()
        await asyncio.gather(keeping, saying)
        assert await words(store) == ["hello"]

    asyncio.run(main())


def test_an_answer_is_kept_as_given_before_anybody_is_told_of_it() -> None:
    async def main() -> None:
        store, told = HeldUp(), list[Mapping[str, Any]]()
        journal = Journal(carried(0, told), store)
        journal.owed = True
        await journal.said("user", "hello")
        before = len(told)
        store.noticed = lambda: seen.append(len(told))
        seen: list[int] = []
        journal.owed = False
        await journal.said("assistant", "Good day.")
        await journal.settled()
        assert seen == [before]  # One writing, and nothing was told by then.
        taken_up = await Journal.resumed(carried(5, []), store)
        assert not taken_up.owed
        assert [each.text for each in taken_up.memory.said] == ["hello", "Good day."]

    asyncio.run(main())


def test_what_was_kept_and_not_told_is_told_once_by_whoever_takes_over() -> None:
    async def main() -> None:
        store, told = MemoryStore(), list[Mapping[str, Any]]()
        # The first process dies before it hears whether what it published was told; "one" was.
        first = Journal(carried(0, told), store)
        first.confirmed = True
        await first.said("user", "one")
        await first.said("assistant", "two")
        assert await store.read(transcript("s")) == []
        heard = [told[0]]
        again: list[Mapping[str, Any]] = []
        once_more: list[Mapping[str, Any]] = []
        second = await Journal.resumed(carried(5, again), store)
        await second.take_up(heard)
        assert [each["text"] for each in again] == ["two"]
        assert [each["answer"] for each in again] == [1]
        third = await Journal.resumed(carried(9, once_more), store)
        await third.take_up([*heard, *again])
        assert once_more == []
        assert len(await store.read(transcript("s"))) == 2

    asyncio.run(main())

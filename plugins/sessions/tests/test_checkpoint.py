"""The checkpoint of a session with several owners, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.session.session import Session
from jackfield.store import MemoryStore
from jackfield.transport.protocol import Utterance
from jackfield_sessions.checkpoint import RECENT_TURNS, ChatHistory, Checkpoint, checkpoint_name, transcript
from jackfield_sessions.events import EventLog
from jackfield_sessions.hub import EventHub
from jackfield_sessions.summary import SUMMARY_LIMIT, extractive_summary


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


def owned(epoch: int, told: list[Mapping[str, Any]]) -> Session:
    def publish(event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
        told.append(fields)

    session = Session("text", "1.0.0", session_id="s", publish=publish)
    session.epoch = epoch
    return session


async def words(store: MemoryStore) -> list[str]:
    resumed = await Checkpoint.load(owned(0, []), store)
    return [each.text for each in resumed.history.messages]


def test_a_late_record_of_a_previous_owner_is_ignored() -> None:
    async def main() -> None:
        store = HeldUp()
        first = Checkpoint(owned(0, []), store)
        await first.add_message("user", "one")
        store.gates = [late := asyncio.Event()]
        writing = asyncio.create_task(first.add_message("user", "too late"))
        await asyncio.sleep(0)
        second = await Checkpoint.load(owned(7, []), store)
        await second.add_message("user", "two")
        late.set()
        await writing
        assert await words(store) == ["one", "two"]
        # Epochs are compared as numbers, and a name that only looks like one of a record is none.
        third = await Checkpoint.load(owned(12, []), store)
        await third.add_message("user", "three")
        await store.put(f"{checkpoint_name('s')}@other", b"{}")
        await second.add_message("user", "too late as well")
        assert await words(store) == ["one", "two", "three"]

    asyncio.run(main())


def test_concurrent_saves_do_not_overwrite_a_newer_state() -> None:
    async def main() -> None:
        store = HeldUp()
        checkpoint = Checkpoint(owned(0, []), store)
        # Session and checkpoint are written concurrently; either may be the slow one.
        store.gates = [asyncio.Event(), asyncio.Event()]
        gates = list(store.gates)
        saving = asyncio.create_task(checkpoint.save(session=True))
        await asyncio.sleep(0)
        adding = asyncio.create_task(checkpoint.add_message("user", "hello"))
        for gate in reversed(gates):
            await asyncio.sleep(0)
            gate.set()
        await asyncio.gather(saving, adding)
        assert await words(store) == ["hello"]

    asyncio.run(main())


def test_an_answer_is_saved_before_it_is_published() -> None:
    async def main() -> None:
        store, told = HeldUp(), list[Mapping[str, Any]]()
        checkpoint = Checkpoint(owned(0, told), store)
        checkpoint.response_pending = True
        await checkpoint.add_message("user", "hello")
        before = len(told)
        store.noticed = lambda: seen.append(len(told))
        seen: list[int] = []
        checkpoint.response_pending = False
        await checkpoint.add_message("assistant", "Good day.")
        await checkpoint.add_message("assistant", "")
        assert seen == [before]  # One write, and nothing was published by then.
        resumed = await Checkpoint.load(owned(5, []), store)
        assert not resumed.response_pending
        assert [each.text for each in resumed.history.messages] == ["hello", "Good day."]

    asyncio.run(main())


def test_an_answer_without_text_saves_that_no_answer_is_due() -> None:
    async def main() -> None:
        store, told = MemoryStore(), list[Mapping[str, Any]]()
        checkpoint = Checkpoint(owned(0, told), store)
        checkpoint.response_pending = True
        await checkpoint.add_message("user", "hello")
        checkpoint.response_pending = False
        await checkpoint.add_message("assistant", " ")
        assert not (await Checkpoint.load(owned(5, []), store)).response_pending
        assert [each["text"] for each in told] == ["hello"]

    asyncio.run(main())


def test_a_message_that_begins_a_turn_is_saved_with_the_turn() -> None:
    async def main() -> None:
        for text in ("hello", " "):
            store = MemoryStore()
            session = Session("text", "1", session_id="s")
            await session.save(store)
            session.begin_turn()
            await Checkpoint(session, store).add_message("user", text, begins_turn=True)
            resumed = await Session.resume("s", store)
            assert resumed is not None
            assert resumed.turn.number == 2

    asyncio.run(main())


def test_the_next_owner_publishes_a_saved_message_once() -> None:
    async def main() -> None:
        store, told = MemoryStore(), list[Mapping[str, Any]]()
        # The first process dies before it knows whether its messages are in the log; "one" is.
        first = Checkpoint(owned(0, told), store)
        await first.add_message("user", "one")
        await first.add_message("assistant", "two")
        assert await store.read(transcript("s")) == []
        heard = [told[0]]
        again: list[Mapping[str, Any]] = []
        once_more: list[Mapping[str, Any]] = []
        second = await Checkpoint.load(owned(5, again), store)
        await second.recover(heard)
        assert [each["text"] for each in again] == ["two"]
        assert [each["answer"] for each in again] == [1]
        third = await Checkpoint.load(owned(9, once_more), store)
        await third.recover([*heard, *again])
        assert once_more == []
        assert len(await store.read(transcript("s"))) == 2

    asyncio.run(main())


async def published(store: MemoryStore, text: str) -> None:
    """Publish a message as a live session does."""
    session = Session("text", "1.0.0", session_id="s")
    checkpoint = Checkpoint(session, store)
    hub = EventHub(EventLog(session, store), on_message=checkpoint.mark_published)
    session.publish = hub.publish
    await checkpoint.add_message("user", text)
    await hub.flush()


WEEK = 7 * 24 * 3600


@pytest.mark.parametrize(("seconds", "lines"), [(WEEK - 1, 1), (WEEK + 1, 0)])
def test_a_transcript_is_kept_for_seven_days(seconds: int, lines: int) -> None:
    now = 1_000_000.0

    async def main() -> int:
        nonlocal now
        store = MemoryStore(clock=lambda: now)
        await published(store, "remember this")
        now += seconds
        return len(await store.read(transcript("s")))

    assert asyncio.run(main()) == lines


@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "assistant"]), st.text(min_size=1, max_size=300)), max_size=60
    )
)
def test_the_history_keeps_the_last_turns_and_summarizes_the_rest(said: list[tuple[Any, str]]) -> None:
    history = ChatHistory()
    for speaker, text in said:
        history.add(speaker, text)
    before = tuple(history.messages)
    asyncio.run(history.compact(extractive_summary))
    kept = tuple(history.messages)
    assert before[len(before) - len(kept) :] == kept
    asked = [each for each in before if each.speaker == "user"]
    assert [each for each in kept if each.speaker == "user"] == asked[-RECENT_TURNS:]
    assert len(history.summary) <= SUMMARY_LIMIT
    if len(asked) <= RECENT_TURNS:
        assert kept == before


def test_a_failed_summary_is_replaced_by_an_extractive_one() -> None:
    async def fails(summary: str, older: Sequence[Utterance]) -> str:
        raise TimeoutError

    async def works(summary: str, older: Sequence[Utterance]) -> str:
        return f"{len(older)} things were said"

    for summarize, expected in ((fails, "user: question 0"), (works, "2 things were said")):
        history = ChatHistory()
        for number in range(RECENT_TURNS + 1):
            history.add("user", f"question {number}")
            history.add("assistant", f"answer {number}")
        asyncio.run(history.compact(summarize))
        assert expected in history.summary

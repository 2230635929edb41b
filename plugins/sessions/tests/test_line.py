"""A line that outlives its connections, over a transport whose connections end as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield import Mode
from jackfield.transport.events import Closed, Event, TextDelta, Trouble
from jackfield.transport.protocol import Connection, Opening, TransportError, Utterance
from jackfield_sessions import line as lines
from jackfield_sessions.ledger import BYTES_PER_MS, Ledger
from jackfield_sessions.line import Line, Restored
from jackfield_sessions.memory import SUMMARY_LIMIT, TURNS_KEPT, Memory, digest


class Scripted:
    """A connection that gives these events; without a `Closed` at the end it waits to be closed."""

    def __init__(self, events: Sequence[Event], resume: str | None = None) -> None:
        self._events = events
        self.resume = resume
        self.closed = asyncio.Event()

    async def events(self) -> AsyncIterator[Event]:
        for event in self._events:
            yield event
        if not self._events or not isinstance(self._events[-1], Closed):
            await self.closed.wait()
            yield Closed()

    async def close(self) -> None:
        self.closed.set()

    def __getattr__(self, verb: str) -> Any:
        raise AssertionError(f"{verb} was not expected")


class Transport:
    """Hands out what a test prepared, in order; an error is raised instead of connecting."""

    modes: frozenset[Mode] = frozenset({"text"})

    def __init__(self, *prepared: Any) -> None:
        self._prepared = list(prepared)
        self.openings: list[Opening] = []

    def adapter(self, mode: str) -> str:
        return mode

    async def connect(self, opening: Opening) -> Connection:
        self.openings.append(opening)
        given = self._prepared.pop(0)
        if isinstance(given, TransportError):
            raise given
        connection: Connection = given
        return connection

    async def close(self) -> None: ...


def opening(resume: str | None) -> Opening:
    return Opening("text", "", {}, resume=resume)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "PAUSES", (0.0, 0.001, 0.001))


async def everything(transport: Any) -> list[Any]:
    line = await Line.open(transport, opening)
    return [event async for event in line.events()]


def test_a_broken_line_is_restored_and_nothing_in_between_is_lost() -> None:
    transport = Transport(
        Scripted([TextDelta("a"), Closed("network")]),
        TransportError("server_error"),
        Scripted([TextDelta("b"), Closed("authentication")]),
    )
    got = asyncio.run(everything(transport))
    assert got == [TextDelta("a"), Trouble("network"), Restored(), TextDelta("b"), Closed("authentication")]


def test_a_provider_session_is_taken_up_again_unless_it_no_longer_accepts_that() -> None:
    transport = Transport(
        Scripted([Closed("network")], resume="handle-1"),
        TransportError("network"),
        Scripted([Closed("authentication")]),
    )
    asyncio.run(everything(transport))
    assert [each.resume for each in transport.openings] == [None, "handle-1", None]


def test_an_expired_session_is_not_taken_up_again() -> None:
    transport = Transport(
        Scripted([Closed("session_expired")], resume="old"), Scripted([Closed("authentication")])
    )
    asyncio.run(everything(transport))
    assert [each.resume for each in transport.openings] == [None, None]


def test_what_cannot_be_mended_ends_the_line_with_its_reason() -> None:
    transport = Transport(Scripted([Closed("network")]), TransportError("quota_exhausted", "used up"))
    assert asyncio.run(everything(transport))[-1] == Closed("quota_exhausted", "used up")
    never = Transport(Scripted([Closed("network")]), *[TransportError("network") for _ in range(3)])
    assert asyncio.run(everything(never))[-1] == Closed("network")


def test_a_planned_renewal_opens_the_new_connection_before_it_drops_the_old() -> None:
    old = Scripted([TextDelta("old")])
    new = Scripted([TextDelta("new"), Closed("authentication")])

    class Watched(Transport):
        async def connect(self, opening: Opening) -> Connection:
            assert not old.closed.is_set()
            return await super().connect(opening)

    async def main() -> list[Any]:
        line = await Line.open(Watched(old, new), opening)
        got = []
        async for event in line.events():
            got.append(event)
            if event == TextDelta("old"):
                await line.renew()
        assert old.closed.is_set()
        assert line.renewals == 1
        return got

    assert asyncio.run(main()) == [TextDelta("old"), TextDelta("new"), Closed("authentication")]


def test_who_wants_to_speak_while_the_line_is_broken_waits_for_it() -> None:
    gate = asyncio.Event()
    second = Scripted([Closed("authentication")])

    class Slow(Transport):
        async def connect(self, opening: Opening) -> Connection:
            if self.openings:
                await gate.wait()
            return await super().connect(opening)

    async def main() -> None:
        line = await Line.open(Slow(Scripted([Closed("network")]), second), opening)
        events = line.events()
        assert await anext(events) == Trouble("network")
        reading = asyncio.ensure_future(anext(events))
        speaking = asyncio.ensure_future(line.connection())
        await asyncio.sleep(0.01)
        assert line.broken
        assert not speaking.done()
        gate.set()
        assert await speaking is second
        assert await reading == Restored()

    asyncio.run(main())


def test_hanging_up_is_the_end() -> None:
    async def main() -> list[Any]:
        line = await Line.open(Transport(Scripted([])), opening)
        asyncio.get_running_loop().call_later(0.01, lambda: asyncio.ensure_future(line.hang_up()))
        return [event async for event in line.events()]

    assert asyncio.run(main()) == [Closed()]


@given(st.lists(st.tuples(st.sampled_from(["sent", "heard"]), st.sampled_from("ab"), st.integers(0, 5000))))
def test_nobody_hears_more_than_was_sent(steps: list[tuple[str, str, int]]) -> None:
    ledger = Ledger()
    for kind, item, number in steps:
        if kind == "sent":
            ledger.sent(item, number * BYTES_PER_MS)
        else:
            ledger.heard(item, number)
        assert 0 <= ledger.heard_ms <= ledger.sent_ms
        assert 0 <= ledger.fraction <= 1


@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "assistant"]), st.text(min_size=1, max_size=300)), max_size=60
    )
)
def test_the_last_turns_are_kept_word_for_word_and_the_rest_in_short(said: list[tuple[Any, str]]) -> None:
    memory = Memory()
    for speaker, text in said:
        memory.add(speaker, text)
    before = memory.said
    asyncio.run(memory.condense(digest))
    kept = memory.said
    assert before[len(before) - len(kept) :] == kept
    asked = [each for each in before if each.speaker == "user"]
    assert [each for each in kept if each.speaker == "user"] == asked[-TURNS_KEPT:]
    assert len(memory.summary) <= SUMMARY_LIMIT
    if len(asked) <= TURNS_KEPT:
        assert kept == before


def test_a_summary_that_fails_is_replaced_and_one_that_works_is_used() -> None:
    async def fails(summary: str, older: Sequence[Utterance]) -> str:
        raise TimeoutError

    async def works(summary: str, older: Sequence[Utterance]) -> str:
        return f"{len(older)} things were said"

    for summarise, expected in ((fails, "user: question 0"), (works, "2 things were said")):
        memory = Memory()
        for number in range(TURNS_KEPT + 1):
            memory.add("user", f"question {number}")
            memory.add("assistant", f"answer {number}")
        asyncio.run(memory.condense(summarise))
        assert expected in memory.summary

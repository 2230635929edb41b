"""A model connection that survives the end of provider connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from jackfield import Mode
from jackfield.session.session import Session
from jackfield.store import MemoryStore
from jackfield.transport.events import Closed, Event, ProviderError, TextDelta
from jackfield.transport.protocol import Connection, ConnectionConfig, TransportError
from jackfield_sessions import model_connection
from jackfield_sessions.checkpoint import Checkpoint
from jackfield_sessions.model_connection import ModelConnection, Reconnected
from jackfield_sessions.summary import extractive_summary


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

    send_partial = None
    """Its model waits for its calls."""

    def __getattr__(self, verb: str) -> Any:
        raise AssertionError(f"{verb} was not expected")


class Transport:
    """Hands out what a test prepared, in order; an error is raised instead of connecting."""

    modes: frozenset[Mode] = frozenset({"text"})

    def __init__(self, *prepared: Any) -> None:
        self._prepared = list(prepared)
        self.openings: list[ConnectionConfig] = []

    def adapter(self, mode: str) -> str:
        return mode

    async def connect(self, opening: ConnectionConfig) -> Connection:
        self.openings.append(opening)
        given = self._prepared.pop(0)
        if isinstance(given, TransportError):
            raise given
        connection: Connection = given
        return connection

    async def close(self) -> None: ...


async def opened(transport: Any) -> ModelConnection:
    async def notify(code: str) -> None: ...

    checkpoint = Checkpoint(Session("text", "1.0.0", session_id="s"), MemoryStore())
    connection = ModelConnection(
        transport, ConnectionConfig("text", "", {}), checkpoint, summarize=extractive_summary, notify=notify
    )
    await connection.open()
    return connection


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_connection, "RECONNECT_SECONDS", (0.0, 0.001, 0.001))


async def everything(connection: ModelConnection) -> list[Any]:
    return [event async for event in connection.events()]


async def all_events(transport: Any) -> list[Any]:
    return await everything(await opened(transport))


def test_a_broken_connection_is_reopened_and_nothing_is_lost() -> None:
    transport = Transport(
        Scripted([TextDelta("a"), Closed("network")]),
        TransportError("server_error"),
        Scripted([TextDelta("b"), Closed("authentication")]),
    )
    got = asyncio.run(all_events(transport))
    assert got == [
        TextDelta("a"),
        ProviderError("network"),
        Reconnected(),
        TextDelta("b"),
        Closed("authentication"),
    ]


def test_a_provider_session_is_resumed_unless_the_provider_rejects_it() -> None:
    transport = Transport(
        Scripted([Closed("network")], resume="handle-1"),
        TransportError("network"),
        Scripted([Closed("authentication")]),
    )
    asyncio.run(all_events(transport))
    assert [each.resume for each in transport.openings] == [None, "handle-1", None]


def test_an_expired_provider_session_is_not_resumed() -> None:
    transport = Transport(
        Scripted([Closed("session_expired")], resume="old"), Scripted([Closed("authentication")])
    )
    asyncio.run(all_events(transport))
    assert [each.resume for each in transport.openings] == [None, None]


def test_an_error_that_cannot_be_recovered_ends_the_connection_with_its_reason() -> None:
    transport = Transport(Scripted([Closed("network")]), TransportError("quota_exhausted", "used up"))
    assert asyncio.run(all_events(transport))[-1] == Closed("quota_exhausted", "used up")
    never = Transport(Scripted([Closed("network")]), *[TransportError("network") for _ in range(3)])
    assert asyncio.run(all_events(never))[-1] == Closed("network")


def test_a_planned_renewal_opens_the_new_connection_before_it_closes_the_old_one() -> None:
    old = Scripted([TextDelta("old")])
    new = Scripted([TextDelta("new"), Closed("authentication")])

    class Watched(Transport):
        async def connect(self, opening: ConnectionConfig) -> Connection:
            assert not old.closed.is_set()
            return await super().connect(opening)

    async def main() -> list[Any]:
        connection = await opened(Watched(old, new))
        got = []
        async for event in connection.events():
            got.append(event)
            if event == TextDelta("old"):
                await connection.renew()
        assert old.closed.is_set()
        assert connection.renewals == 1
        return got

    assert asyncio.run(main()) == [TextDelta("old"), TextDelta("new"), Closed("authentication")]


class GatedTransport(Transport):
    """Opens its second connection only when the gate does."""

    def __init__(self, *prepared: Any) -> None:
        super().__init__(*prepared)
        self.gate = asyncio.Event()

    async def connect(self, opening: ConnectionConfig) -> Connection:
        connection = await super().connect(opening)
        if len(self.openings) == 2:
            await self.gate.wait()
        return connection


def test_a_message_waits_for_a_renewal_that_has_begun() -> None:
    async def main() -> None:
        old, new = Scripted([]), Scripted([])
        transport = GatedTransport(old, new)
        connection = await opened(transport)
        connection.schedule_renewal("registry", 60)
        waiting = asyncio.ensure_future(connection.wait_renewed())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        transport.gate.set()
        await waiting
        assert await connection.current() is new

    asyncio.run(main())


def test_a_message_does_not_wait_for_a_renewal_that_waits_for_the_model() -> None:
    async def main() -> None:
        connection = await opened(Transport(Scripted([])))
        connection.idle.clear()
        connection.schedule_renewal("registry", 60)
        async with asyncio.timeout(1):
            await connection.wait_renewed()
        await connection.close()

    asyncio.run(main())


def test_a_configuration_that_changes_during_a_renewal_is_used() -> None:
    async def main() -> None:
        transport = GatedTransport(Scripted([]), Scripted([]), Scripted([]))
        connection = await opened(transport)
        connection.reconfigure(ConnectionConfig("text", "second", {}))
        renewal = connection.schedule_renewal("registry", 60)
        await asyncio.sleep(0.01)
        connection.reconfigure(ConnectionConfig("text", "third", {}))
        assert connection.schedule_renewal("registry", 60) is renewal
        transport.gate.set()
        await renewal
        assert [each.instructions for each in transport.openings] == ["", "second", "third"]

    asyncio.run(main())


def test_sending_waits_while_the_connection_is_broken() -> None:
    gate = asyncio.Event()
    second = Scripted([Closed("authentication")])

    class Slow(Transport):
        async def connect(self, opening: ConnectionConfig) -> Connection:
            if self.openings:
                await gate.wait()
            return await super().connect(opening)

    async def main() -> None:
        connection = await opened(Slow(Scripted([Closed("network")]), second))
        events = connection.events()
        assert await anext(events) == ProviderError("network")
        reading = asyncio.ensure_future(anext(events))
        speaking = asyncio.ensure_future(connection.current())
        await asyncio.sleep(0.01)
        assert connection.broken
        assert not speaking.done()
        gate.set()
        assert await speaking is second
        assert await reading == Reconnected()

    asyncio.run(main())


def test_a_closed_connection_ends_the_events() -> None:
    async def main() -> list[Any]:
        connection = await opened(Transport(Scripted([])))
        asyncio.get_running_loop().call_later(0.01, lambda: asyncio.ensure_future(connection.close()))
        return await everything(connection)

    assert asyncio.run(main()) == [Closed()]


class Ended:
    """A connection that has broken already, or is open until it is closed."""

    resume = None

    def __init__(self, code: str = "") -> None:
        self._code = code
        self.closed = asyncio.Event()

    async def events(self) -> AsyncIterator[Event]:
        if not self._code:
            await self.closed.wait()
        yield Closed(self._code)

    async def close(self) -> None:
        self.closed.set()


class Gated:
    """Breaks once; the second connection stays open, and comes when a test lets it."""

    modes: frozenset[Mode] = frozenset({"text"})

    def __init__(self) -> None:
        self.made: list[Ended] = []
        self.connecting, self.may_connect = asyncio.Event(), asyncio.Event()

    async def connect(self, opening: ConnectionConfig) -> Connection:
        if self.made:
            self.connecting.set()
            await self.may_connect.wait()
        self.made.append(Ended("" if self.made else "network"))
        connection: Any = self.made[-1]
        return connection  # type: ignore[no-any-return]


def test_closing_during_a_pause_ends_the_connection_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_connection, "RECONNECT_SECONDS", (3600.0,))

    async def main() -> None:
        transport = Gated()
        connection = await opened(transport)
        reading = asyncio.create_task(everything(connection))
        while not connection.broken:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0)
        await connection.close()
        assert await asyncio.wait_for(reading, 20) == [ProviderError("network"), Closed()]
        assert len(transport.made) == 1

    asyncio.run(main())


def test_a_provider_connection_opened_after_close_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_connection, "RECONNECT_SECONDS", (0.0,))

    async def main() -> None:
        transport = Gated()
        connection = await opened(transport)
        reading = asyncio.create_task(everything(connection))
        await transport.connecting.wait()
        await connection.close()
        transport.may_connect.set()
        assert await asyncio.wait_for(reading, 20) == [ProviderError("network"), Closed()]
        assert transport.made[1].closed.is_set()

    asyncio.run(main())

"""Events are stored once and in order, whatever the store does, and delivered in the order of the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
import pytest
from jackfield.protocol.close_codes import ENDED
from jackfield.session.session import Session
from jackfield.store import MemoryStore, StoreUnavailableError, StreamEntry
from jackfield_sessions import events, hub
from jackfield_sessions.events import EventLog, QueuedEvent, replay
from jackfield_sessions.hub import ClientQueue, EventHub, Frame


class Writer(MemoryStore):
    """A store that begins at once and writes later, like one with a writer thread."""

    def __init__(self, available: int) -> None:
        super().__init__()
        self.available = available
        """How many more entries it accepts; then it is unavailable."""
        self.batches: list[int] = []
        """How many entries each append had."""

    def append(self, stream: str, *values: bytes, ttl: float | None = None) -> Awaitable[int]:  # type: ignore[override]
        return asyncio.ensure_future(self._write(stream, values, ttl))

    async def _write(self, stream: str, values: tuple[bytes, ...], ttl: float | None) -> int:
        await asyncio.sleep(0)
        if self.available < len(values):
            raise StoreUnavailableError("the store is away")
        self.available -= len(values)
        self.batches.append(len(values))
        return await super().append(stream, *values, ttl=ttl)


class Awaited(Writer):
    """A store that begins when it is awaited."""

    async def append(self, stream: str, *values: bytes, ttl: float | None = None) -> int:
        return await self._write(stream, values, ttl)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry at once while the store is unavailable."""
    for module in (events, hub):
        monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)


@asynccontextmanager
async def attached(hub: EventHub) -> AsyncIterator[list[dict[str, Any]]]:
    """A client of the hub; what it gets."""
    client, got = ClientQueue(100_000), list[dict[str, Any]]()

    async def send(frame: Frame) -> None:
        got.append(orjson.loads(frame))

    hub.attach(client)
    sending = asyncio.create_task(client.run(send))
    yield got
    client.close(ENDED)
    await sending


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("kind", [Writer, Awaited])
@pytest.mark.parametrize("available", range(5))
def test_events_are_stored_once_and_in_order_across_an_outage(
    kind: type[Writer], available: int, owned: bool
) -> None:
    async def main() -> None:
        store, session = kind(available), Session("text", "1", session_id="s")
        hub = EventHub(EventLog(session, store, owned=owned))
        async with attached(hub) as got:
            for number in range(3):
                hub.publish("note", {"number": number})
            hub.publish("tool_decisions", {"callId": "c"})
            hub.publish("note", {"number": 3})
            assert await hub.flush(0.05) is (available >= 4)
            hub.publish("note", {"number": 4})
            store.available = 100
            assert await hub.flush(5)
        stored = (await replay(session, store, 0)).messages
        assert [each["fields"]["number"] for each in stored] == [0, 1, 2, 3, 4]
        if owned:
            assert [each.get("id") for each in got] == [1, 2, 3, None, 4, 5]
            assert [each for each in got if "id" in each] == stored

    asyncio.run(main())


def test_events_that_wait_at_the_same_time_are_appended_together() -> None:
    async def main() -> None:
        store, session = Writer(100), Session("text", "1", session_id="s")
        hub = EventHub(EventLog(session, store))
        for number in range(3):
            hub.publish("note", {"number": number})
        assert await hub.flush(5)
        assert store.batches == [3]

    asyncio.run(main())


def test_an_event_is_stored_once_if_those_of_other_hosts_cannot_be_read() -> None:
    class Unreadable(Writer):
        failures = 2

        async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[StreamEntry]:
            if self.failures:
                self.failures -= 1
                raise StoreUnavailableError("the store is away")
            return await super().read(stream, after=after, limit=limit)

    async def main() -> None:
        store, session = Unreadable(100), Session("text", "1", session_id="s")
        other = EventLog(session, store, owned=False)
        await other.append([QueuedEvent("note", {"text": "from another host"})])
        hub = EventHub(EventLog(session, store))
        async with attached(hub) as got:
            hub.publish("note", {"text": "one"})
            hub.publish("note", {"text": "two"})
            assert await hub.flush(5)
        assert [each["fields"]["text"] for each in got] == ["from another host", "one", "two"]
        assert (await replay(session, store, 0)).messages == got

    asyncio.run(main())


@pytest.mark.parametrize("owned", [True, False])
def test_an_event_that_another_host_has_published_is_not_stored_again(owned: bool) -> None:
    async def main() -> None:
        store, session = Writer(100), Session("text", "1", session_id="s")
        outcome = {"tool": "t", "callId": "c", "durationMs": 1, "data": {}}
        other = EventLog(session, store, owned=False)
        await other.append([QueuedEvent("tool_complete", outcome)])
        hub = EventHub(EventLog(session, store, owned=owned))
        hub.publish("tool_start", {"tool": "t", "callId": "d"})
        hub.publish("tool_complete", {**outcome, "durationMs": 2}, once=True)
        hub.publish("tool_complete", {**outcome, "callId": "d"}, once=True)
        assert await hub.flush(5)
        stored = (await replay(session, store, 0)).messages
        assert [(each["type"], each["callId"]) for each in stored] == [
            ("tool_complete", "c"),
            ("tool_start", "d"),
            ("tool_complete", "d"),
        ]

    asyncio.run(main())


class Looking(MemoryStore):
    """A store in which two hosts look at the log at the same moment, unless something keeps them apart."""

    def __init__(self) -> None:
        super().__init__()
        self._looks = asyncio.Barrier(2)

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[StreamEntry]:
        found = await super().read(stream, after=after, limit=limit)
        with suppress(TimeoutError, asyncio.BrokenBarrierError):
            async with asyncio.timeout(0.2):
                await self._looks.wait()
        return found


def test_two_hosts_that_have_an_outcome_at_the_same_moment_publish_it_once() -> None:
    async def main() -> None:
        store, session = Looking(), Session("text", "1", session_id="s")
        hubs = [EventHub(EventLog(session, store, owned=owned)) for owned in (False, True)]
        for milliseconds, each in enumerate(hubs):
            outcome = {"tool": "t", "callId": "c", "durationMs": milliseconds, "data": {}}
            each.publish("tool_complete", outcome, once=True)
        for each in hubs:
            assert await each.flush(30)
        stored = (await replay(session, store, 0)).messages
        assert [event["type"] for event in stored] == ["tool_complete"]

    asyncio.run(main())


def test_a_host_that_lost_its_turn_to_publish_looks_again() -> None:
    async def main() -> None:
        store, session = MemoryStore(), Session("text", "1", session_id="s")
        outcome = {"tool": "t", "callId": "c", "durationMs": 1, "data": {}}
        holds = store.holds

        async def paused(key: str) -> bool:
            # Meanwhile its lock expired, and another host has published the outcome.
            store.holds = holds  # type: ignore[method-assign]
            await store.release(key)
            other = EventLog(session, store, owned=False)
            await other.append([QueuedEvent("tool_complete", outcome)])
            return await holds(key)

        store.holds = paused  # type: ignore[method-assign]
        hub = EventHub(EventLog(session, store, owned=False))
        hub.publish("tool_complete", outcome, once=True)
        assert await hub.flush(30)
        assert len((await replay(session, store, 0)).messages) == 1

    asyncio.run(main())


def test_an_event_that_the_store_rejects_does_not_stop_the_next_one() -> None:
    class Small(Writer):
        def append(self, stream: str, *values: bytes, ttl: float | None = None) -> Awaitable[int]:  # type: ignore[override]
            if any(b"large" in value for value in values):
                raise ValueError("too large")
            return super().append(stream, *values, ttl=ttl)

    async def main() -> None:
        store, session = Small(100), Session("text", "1", session_id="s")
        hub = EventHub(EventLog(session, store))
        for text in ("one", "large", "two"):
            hub.publish("note", {"text": text})
        assert await hub.flush(5)
        stored = (await replay(session, store, 0)).messages
        assert [each["fields"]["text"] for each in stored] == ["one", "two"]

    asyncio.run(main())

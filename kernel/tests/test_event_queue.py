"""The queue of events: order, back pressure, removal and its one end."""

from __future__ import annotations

import asyncio

from jackfield.transport.events import Closed, Event, Interrupted, TextDelta, TurnComplete
from jackfield.transport.queue import EventQueue


async def _rest(queue: EventQueue) -> list[Event]:
    async with asyncio.timeout(10):
        return [event async for event in queue]


def test_events_are_read_in_order_up_to_the_first_end() -> None:
    async def main() -> None:
        queue = EventQueue()
        await queue.put(TextDelta("one"))
        queue.put_nowait(TextDelta("two"))
        queue.close(Closed("first"))
        queue.close(Closed("second"))
        queue.put_nowait(TextDelta("too late"))
        assert queue.closed
        assert await _rest(queue) == [TextDelta("one"), TextDelta("two"), Closed("first")]

    asyncio.run(main())


def test_a_writer_waits_for_a_slow_reader() -> None:
    async def main() -> None:
        queue = EventQueue(limit=2)
        for text in "ab":
            await queue.put(TextDelta(text))
        writing = asyncio.create_task(queue.put(TextDelta("c")))
        await asyncio.wait((writing,), timeout=0.05)
        assert not writing.done()
        events = aiter(queue)
        assert await anext(events) == TextDelta("a")
        await writing
        queue.put_nowait(Interrupted())  # Events that cannot wait are accepted in any case.
        queue.close(Closed())
        assert [event async for event in events] == [TextDelta("b"), TextDelta("c"), Interrupted(), Closed()]

    asyncio.run(main())


def test_closing_the_queue_releases_a_waiting_writer() -> None:
    async def main() -> None:
        queue = EventQueue(limit=1)
        await queue.put(TextDelta("a"))
        writing = asyncio.create_task(queue.put(TextDelta("b")))
        await asyncio.wait((writing,), timeout=0.05)
        queue.close(Closed())
        await writing
        assert await _rest(queue) == [TextDelta("a"), Closed()]

    asyncio.run(main())


def test_unread_events_can_be_withdrawn_and_free_space() -> None:
    async def main() -> None:
        queue = EventQueue(limit=2)
        for event in (TextDelta("a"), TurnComplete()):
            await queue.put(event)
        assert queue.remove(lambda event: isinstance(event, TextDelta)) == [TextDelta("a")]
        async with asyncio.timeout(10):
            await queue.put(Interrupted())
        queue.close(Closed())
        assert await _rest(queue) == [TurnComplete(), Interrupted(), Closed()]

    asyncio.run(main())

"""The outcome of a call whose host died is published once, by the session's owner or by another host."""

from __future__ import annotations

import asyncio

from jackfield.session.session import Session
from jackfield.store import MemoryStore
from jackfield_sessions.checkpoint import Checkpoint
from jackfield_sessions.events import may_publish_outcome


def test_of_several_hosts_one_publishes_an_outcome() -> None:
    async def main() -> None:
        store = MemoryStore()
        asked = await asyncio.gather(*(may_publish_outcome(store, "s", "call_1") for _ in range(5)))
        assert sum(asked) == 1
        assert await may_publish_outcome(store, "s", "call_2")

    asyncio.run(main())


def test_the_next_publisher_takes_over_from_one_that_died() -> None:
    async def main() -> None:
        store = MemoryStore()
        assert await may_publish_outcome(store, "s", "call_1")
        # What a store reports when the process that claimed is gone.
        await store.abandon("outcome/s/call_1")
        assert await may_publish_outcome(store, "s", "call_1")

    asyncio.run(main())


def test_a_resumed_session_skips_outcomes_that_another_host_publishes() -> None:
    async def main() -> None:
        store = MemoryStore()
        checkpoint = Checkpoint(Session("text", "1.0.0", session_id="s"), store)
        assert await may_publish_outcome(store, "s", "taken")
        await checkpoint.skip_published_outcomes(["taken", "free"])
        assert checkpoint.published_outcomes == {"taken"}

    asyncio.run(main())
